// The compiled simulator: `make lab` writes it to ../core.
import wasm from "virtual:core";
import { Lab, catalogue as coreCatalogue, initSync } from "../core/weir_web.js";

export { Lab };

/** An entry of the catalogue. */
export interface Entry {
  name: string;
  description: string;
  parameters: string | object[];
}

export interface Catalogue {
  controllers: Entry[];
  recoveries: Entry[];
  queues: Entry[];
}

/** Everything that a scenario may name. */
export let catalogue: Catalogue = { controllers: [], recoveries: [], queues: [] };

/** Compiles the simulator, which is part of this script: nothing is fetched. */
export function startCore(): void {
  const text = atob(wasm);
  const bytes = Uint8Array.from(text, (letter) => letter.charCodeAt(0));
  initSync({ module: bytes });
  catalogue = JSON.parse(coreCatalogue()) as Catalogue;
}
