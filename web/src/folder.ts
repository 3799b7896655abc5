// A result folder that a reader opened: its tables are read in a thread of their own.
import type { EngineState, Group, RunSource, TabledRun } from "./engine";
import type { NamedFile } from "./tables";
import type { Question } from "./tablesworker";
import TablesWorker from "./tablesworker?worker&inline";

type Asked = { resolve: (found: never) => void; reject: (problem: Error) => void };
type Methods = { [Name in keyof RunSource]: Parameters<RunSource[Name]> };

export class Folder implements RunSource {
  private readonly worker = new TablesWorker();
  private readonly asked = new Map<number, Asked>();
  private asks = 0;

  private constructor() {
    this.worker.onmessage = ({ data }: MessageEvent<{ id: number; found?: never; problem?: string }>) => {
      const { resolve, reject } = this.asked.get(data.id)!;
      this.asked.delete(data.id);
      if (data.problem === undefined) resolve(data.found as never);
      else reject(new Error(data.problem));
    };
    this.worker.onerror = ({ message }) => this.refuse(message);
  }

  /** Reads which runs there are; throws the message of what is wrong with the files. */
  static async open(files: NamedFile[]): Promise<Folder> {
    const folder = new Folder();
    try {
      await folder.send({ files });
    } catch (problem) {
      folder.close();
      throw problem;
    }
    return folder;
  }

  close(): void {
    this.worker.terminate();
    this.refuse("another folder was opened");
  }

  state(): Promise<EngineState> {
    return this.ask("state", []);
  }

  about(run: number): Promise<TabledRun> {
    return this.ask("about", [run]);
  }

  next(run: number, what: "drops" | "marks", after: number): Promise<number | null> {
    return this.ask("next", [run, what, after]);
  }

  detail(run: number, from: number, to: number, bins: number): Promise<Group[]> {
    return this.ask("detail", [run, from, to, bins]);
  }

  /** Nothing that was asked will be answered. */
  private refuse(reason: string): void {
    for (const { reject } of this.asked.values()) reject(new Error(reason));
    this.asked.clear();
  }

  private ask<T, Name extends keyof Methods>(method: Name, given: Methods[Name]): Promise<T> {
    return this.send({ method, given });
  }

  private send<T>(question: { files: NamedFile[] } | { method: keyof RunSource; given: unknown[] }): Promise<T> {
    const id = this.asks++;
    return new Promise<T>((resolve, reject) => {
      this.asked.set(id, { resolve, reject });
      this.worker.postMessage({ id, ...question } satisfies Question);
    });
  }
}
