// Runs of the page's simulator in Node.js, without a browser.
import { readFileSync } from "node:fs";
import { join } from "node:path";
import { catalogue as coreCatalogue, initSync, Lab } from "../core/weir_web.js";
import { setCatalogue } from "../src/catalogue";
import { scenarioText } from "../src/scenario";
import { overrides, type Settings } from "../src/settings";
import { Store, takeRows, type Description } from "../src/store";

initSync({ module: readFileSync(join(import.meta.dirname, "../core/weir_web_bg.wasm")) });
setCatalogue(coreCatalogue());

/** The run of these settings, with all that the page records. */
export function simulate(settings: Settings): Store {
  const lab = new Lab(scenarioText(settings), overrides(settings), settings.seed);
  const store = new Store(JSON.parse(lab.describe()) as Description);
  while (lab.advance(Infinity, 100_000) !== 2) takeRows(lab, store);
  takeRows(lab, store);
  store.losses.sort((a, b) => a - b);
  store.marks.sort((a, b) => a - b);
  lab.free();
  return store;
}
