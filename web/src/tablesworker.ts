// Reads result tables in a thread of its own, so that the page answers meanwhile.
import { ResultTables, type NamedFile } from "./tables";

/** A question of the page: the files of a folder first, then methods of `RunSource`. */
export type Question = { id: number } & ({ files: NamedFile[] } | { method: keyof ResultTables; given: unknown[] });

let tables: ResultTables | undefined;

async function answer(question: Question): Promise<unknown> {
  if ("files" in question) tables = await ResultTables.open(question.files);
  else return (tables![question.method] as (...given: unknown[]) => Promise<unknown>)(...question.given);
  return undefined;
}

onmessage = async ({ data }: MessageEvent<Question>) => {
  try {
    postMessage({ id: data.id, found: await answer(data) });
  } catch (problem) {
    postMessage({ id: data.id, problem: (problem as Error).message });
  }
};
