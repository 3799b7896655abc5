// The compiled simulator: `make lab` writes it to ../core.
import wasm from "virtual:core";
import { Lab, catalogue as coreCatalogue, initSync } from "../core/weir_web.js";
import { setCatalogue } from "./catalogue";

export { Lab };

/** Compiles the simulator, which is part of this script: nothing is fetched. */
export async function startCore(): Promise<void> {
  const packed = Uint8Array.from(atob(wasm), (letter) => letter.charCodeAt(0));
  const unpacked = new Blob([packed]).stream().pipeThrough(new DecompressionStream("gzip"));
  initSync({ module: await new Response(unpacked).arrayBuffer() });
  setCatalogue(coreCatalogue());
}
