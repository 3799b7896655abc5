// The same scenario and seed give the same packets in Chromium, in Node.js and in this machine's code.
import { readFileSync } from "node:fs";
import { join } from "node:path";
import { expect, test } from "./page";

interface Row {
  name: string;
  text: string;
  overrides: string[];
  seed: number;
  hash: string;
}

const CORE = join(import.meta.dirname, "../core");
const rows = JSON.parse(readFileSync(join(CORE, "trace_hashes.json"), "utf8")) as Row[];

test("ten scenarios have the native trace hash in Node.js", async () => {
  const { Lab, initSync } = await import("../core/weir_web.js");
  initSync({ module: readFileSync(join(CORE, "weir_web_bg.wasm")) });
  expect(rows.length).toBe(10);
  for (const { name, text, overrides, seed, hash } of rows) {
    const lab = new Lab(text, overrides, BigInt(seed));
    while (lab.advance(Infinity, 100_000) !== 2);
    expect([name, lab.trace_hash()]).toEqual([name, hash]);
    lab.free();
  }
});

test("ten scenarios have the native trace hash in Chromium", async ({ lab }) => {
  const page = await lab("#duration_s=1");
  const found = await page.evaluate((wanted) => {
    const { hash } = (window as never as { lab: { hash(text: string, overrides: string[], seed: number): string } }).lab;
    return wanted.map(({ name, text, overrides, seed }) => [name, hash(text, overrides, seed)]);
  }, rows);
  expect(found).toEqual(rows.map(({ name, hash }) => [name, hash]));
});
