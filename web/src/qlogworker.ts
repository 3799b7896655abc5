// Reads a qlog in a thread of its own, so that the page answers meanwhile.
import { readQlog } from "./qlog";

onmessage = async ({ data }: MessageEvent<File>) => {
  try {
    const store = readQlog(data.name, await data.text()).columns();
    // The columns move: a copy of a long log would stop the page.
    postMessage({ store }, { transfer: store.values.map(({ buffer }) => buffer) });
  } catch (problem) {
    postMessage({ problem: (problem as Error).message });
  }
};
