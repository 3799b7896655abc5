// Reads a qlog in a thread of its own, so that the page answers meanwhile.
import { readQlog } from "./qlog";

onmessage = async ({ data }: MessageEvent<File>) => {
  try {
    postMessage({ store: readQlog(data.name, await data.text()).columns() });
  } catch (problem) {
    postMessage({ problem: (problem as Error).message });
  }
};
