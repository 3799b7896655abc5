// Files that a reader opens: chosen, or dropped on the page.
import { element } from "./dom";
import QlogWorker from "./qlogworker?worker&inline";
import { Store, type Columns } from "./store";
import type { NamedFile } from "./tables";

/** What the page does with each kind of file. */
interface Opened {
  /** The text of a scenario file. */
  scenario: (text: string) => void;
  qlog: (file: File) => void;
  /** The files of a folder of results. */
  folder: (files: NamedFile[]) => void;
  fail: (message: string) => void;
}

type Found = NamedFile & { file: File };

export function bindFiles(opened: Opened): void {
  for (const id of ["file", "folder"]) {
    const input = element<HTMLInputElement>(id);
    input.addEventListener("change", () => {
      const files = [...(input.files ?? [])].map((file) => ({ path: file.webkitRelativePath || file.name, file }));
      if (files.length > 0) void open(files, id === "folder", opened);
      input.value = "";
    });
  }
  addEventListener("dragover", (event) => event.preventDefault());
  addEventListener("drop", (event) => {
    event.preventDefault();
    if (!event.dataTransfer) return;
    const isFolder = [...event.dataTransfer.items].some((item) => item.webkitGetAsEntry()?.isDirectory);
    void dropped(event.dataTransfer).then(
      (files) => void open(files, isFolder, opened),
      (problem: unknown) => opened.fail((problem as Error).message),
    );
  });
}

async function open(files: Found[], isFolder: boolean, opened: Opened): Promise<void> {
  const [{ file } = { file: undefined }] = files;
  if (isFolder || files.length > 1) opened.folder(files);
  else if (file && isQlog(file)) opened.qlog(file);
  else if (file?.name.endsWith(".parquet")) opened.fail(`${file.name}: open its folder: a table alone is not enough`);
  else if (file) opened.scenario(await file.text());
}

/** Files and those of folders, with their paths. */
async function dropped({ items, files }: DataTransfer): Promise<Found[]> {
  const entries = [...items].map((item) => item.webkitGetAsEntry());
  // A script that drops files gives no entries.
  if (entries.some((entry) => entry === null)) return [...files].map((file) => ({ path: file.name, file }));
  const found: Found[] = [];
  const visit = async (entry: FileSystemEntry): Promise<void> => {
    if (found.length > MOST_FILES) throw new Error(`this folder has more than ${MOST_FILES} files; open a result folder`);
    if (entry.isFile) {
      const file = await new Promise<File>((resolve, reject) => (entry as FileSystemFileEntry).file(resolve, reject));
      found.push({ path: entry.fullPath.replace(/^\//, ""), file });
    } else for (const inside of await listed(entry as FileSystemDirectoryEntry)) await visit(inside);
  };
  for (const entry of entries) await visit(entry!);
  return found;
}

/** All entries of a folder, which a browser lists in parts. */
async function listed(folder: FileSystemDirectoryEntry): Promise<FileSystemEntry[]> {
  const reader = folder.createReader();
  const found: FileSystemEntry[] = [];
  for (;;) {
    const part = await new Promise<FileSystemEntry[]>((resolve, reject) => reader.readEntries(resolve, reject));
    if (part.length === 0) return found;
    found.push(...part);
  }
}

/** Whether a file is a qlog: the others are scenarios. */
function isQlog(file: File): boolean {
  return /\.(s?qlog|json|jsonl)$/i.test(file.name);
}

/** Reads a qlog; throws the message of what is wrong with it. */
export function openQlog(file: File): Promise<Store> {
  if (file.size > MAX_BYTES) {
    const size = `${Math.round(file.size / 1e6)} MB`;
    return Promise.reject(new Error(`${file.name}: ${size} is too long; a qlog may have ${MAX_BYTES / 1e6} MB`));
  }
  const worker = new QlogWorker();
  return new Promise<Store>((resolve, reject) => {
    worker.onmessage = ({ data }: MessageEvent<{ store?: Columns; problem?: string }>) => {
      if (data.store) resolve(Store.of(data.store));
      else reject(new Error(data.problem));
    };
    worker.onerror = (event) => reject(new Error(`${file.name}: ${event.message}`));
    worker.postMessage(file);
  }).finally(() => worker.terminate());
}

/** A string of JavaScript has at most half a gigabyte. */
const MAX_BYTES = 400e6;
/** Of a dropped folder: results have some dozens. */
const MOST_FILES = 1_000;
