// Files that a reader opens.
import QlogWorker from "./qlogworker?worker&inline";
import { Store, type Columns } from "./store";

/** Whether a file is a qlog: the others are scenarios. */
export function isQlog(file: File): boolean {
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
