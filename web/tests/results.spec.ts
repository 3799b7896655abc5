// Result folders that a reader opens, next to what the native engine reads of them.
import { execFileSync } from "node:child_process";
import { cpSync, existsSync, mkdtempSync, readdirSync, readFileSync, realpathSync, rmSync, writeFileSync } from "node:fs";
import { tmpdir } from "node:os";
import { basename, join } from "node:path";
import { ResultTables, type NamedFile } from "../src/tables";
import { done, expect, test } from "./page";

const TOOLS = join(import.meta.dirname, "../../.venv/bin");
const [WEIR, PYTHON] = [join(TOOLS, "weir"), join(TOOLS, "python")];
const OPTIONS = ["--repeat", "2", "--no-report", "--out", "results", ...[
  "measure.duration=12s", "measure.warmup=1s", "flow.1.start=1s", "measure.sample_interval=2ms", "measure.acks=3000",
].flatMap((set) => ["--set", set])];
const EXPLORE = `
import json, sys
from weir.results.results import load
from weir.laboratory.explorer import Explorer
explorer = Explorer(load(sys.argv[1]))
run = explorer._of(1)
def groups(start, end, bins):
    found = run.detail(start, end, bins)
    return [{**what, "times": d.t_s.tolist(), "low": d.low and {k: v.tolist() for k, v in d.low.items()},
             "mean": {k: v.tolist() for k, v in d.mean.items()}} for what, d in found]
print(json.dumps({"runs": explorer.runs, "about": explorer.about(1), "rows": groups(3.0005, 3.2005, 400),
                  "bins": groups(2.0005, 10.0005, 100), "drops": explorer.next(1, "drops", 2.0)}))
`;
/** What the tests make, which is removed after them. */
const places: string[] = [];
let folder = "";
let native: any;

test.beforeAll(() => {
  test.skip(!existsSync(WEIR), "result folders are made by weir in .venv");
  const place = made();
  execFileSync(WEIR, ["run", "two-flows", ...OPTIONS], { cwd: place, stdio: "ignore" });
  folder = realpathSync(join(place, "results/two-flows/latest"));
  native = JSON.parse(execFileSync(PYTHON, ["-c", EXPLORE, folder], { encoding: "utf8" }).replace(/\bNaN\b/g, "null"));
});

test.afterAll(() => places.forEach((made) => rmSync(made, { recursive: true })));

function made(): string {
  const place = mkdtempSync(join(tmpdir(), "weir-results-"));
  places.push(place);
  return place;
}

/** The files of a folder, as the page finds them. */
function files(of: string, without: string[] = []): NamedFile[] {
  return readdirSync(of)
    .filter((name) => !without.includes(name))
    .map((name) => ({ path: `${basename(of)}/${name}`, file: new Blob([readFileSync(join(of, name))]) }));
}

/** Which flow or link a group of columns is of; the order does not count. */
const place = ({ of, index }: { of: string; index: number }) => `${of} ${index}`;
const sorted = <T extends { of: string; index: number }>(groups: T[]) =>
  groups.toSorted((a, b) => place(a).localeCompare(place(b)));

const known = (values: Iterable<number>) => [...values].map((value) => (Number.isNaN(value) ? null : value));

test("runs, flows and values are those that weir ui serves", async () => {
  const tables = await ResultTables.open(files(folder));
  expect(await tables.state()).toMatchObject({ phase: "ready", runs: native.runs });
  expect(await tables.about(1)).toEqual(native.about);
  expect(await tables.next(1, "drops", 2)).toBe(native.drops);
  const rows = sorted(await tables.detail(1, 3.0005, 3.2005, 400));
  expect(rows.map(place)).toEqual(sorted(native.rows as typeof rows).map(place));
  expect(rows.length).toBeGreaterThanOrEqual(6);
  for (const [at, { columns }] of rows.entries()) {
    const { times, mean } = sorted<any>(native.rows)[at];
    expect(known(columns.get("t_s")!)).toEqual(times);
    expect([...columns.keys()].slice(1)).toEqual(Object.keys(mean));
    for (const [name, values] of Object.entries(mean)) expect(known(columns.get(name)!), name).toEqual(values);
  }
});

test("bins have the limits and means that weir ui serves", async () => {
  const tables = await ResultTables.open(files(folder));
  const bins = sorted(await tables.detail(1, 2.0005, 10.0005, 100));
  expect(bins.map(place)).toEqual(sorted(native.bins as typeof bins).map(place));
  let compared = 0;
  for (const [at, { columns }] of bins.entries()) {
    const { low, mean } = sorted<any>(native.bins)[at];
    // A link that is not monitored has no samples.
    if (columns.get("t_s")!.length === 0) continue;
    compared++;
    expect(low.bytes ?? low.cwnd_bytes).toHaveLength(100);
    // The page has the nearest row on each side too.
    const inner = (name: string) => known(columns.get(name)!.slice(1, -1));
    for (const name of Object.keys(mean)) {
      expect(inner(`${name}.low`), name).toEqual(low[name]);
      for (const [bin, value] of inner(name).entries()) {
        if (value === null) expect(mean[name][bin]).toBeNull();
        else expect(value / (mean[name][bin] || 1)).toBeCloseTo(mean[name][bin] ? 1 : 0, 9);
      }
    }
  }
  expect(compared).toBeGreaterThanOrEqual(3);
});

test("what is no result folder is a message with the reason", async () => {
  const of = async (found: NamedFile[]) => ResultTables.open(found).then(() => "", (problem: Error) => problem.message);
  const none = [{ path: "pictures/a.png", file: new Blob() }];
  expect(await of(none)).toBe("pictures: this folder has no table runs.parquet, so it is no result folder");
  const two = ["a", "b"].map((name) => ({ path: `results/${name}/runs.parquet`, file: new Blob() }));
  expect(await of(two)).toBe("results: this folder has 2 result folders; open one of them: results/a, results/b");
  expect(await of(files(folder, ["manifest.json"]))).toContain("manifest.json: not of schema 1");
  const name = basename(folder);
  const tables = await ResultTables.open(files(folder, ["queues.parquet"]));
  await expect(tables.about(1)).rejects.toThrow(`${name}: queues.parquet is missing`);
  const changed = files(folder).map((one) =>
    one.path.endsWith("samples.parquet") ? { ...one, file: new Blob([one.file.slice(0, 100), "x", one.file.slice(101)]) } : one);
  await expect((await ResultTables.open(changed)).about(0)).rejects.toThrow(`${name}: samples.parquet is damaged`);
});

test("a folder opens in the page: its runs, zoom and losses", async ({ lab }) => {
  const page = await lab("#stack=reno&duration_s=1");
  await page.evaluate(() => (document.body.dataset.state = ""));
  await page.locator("#folder").setInputFiles(folder);
  await done(page);
  await expect(page.locator("#status")).toHaveText("two-flows, seed 1: 12 s");
  await expect(page.locator("#facts")).toContainText(`trace hash ${native.runs[0].trace_hash}`);
  await expect(page.locator("#runs option")).toHaveCount(2);
  await expect(page.locator("#diagram")).toBeHidden();
  // A long name of a run stays in its panel.
  const widths = await page.evaluate(() => {
    document.querySelector("#runs option")!.textContent = "a long name ".repeat(9);
    return ["#runs", "#results"].map((id) => document.querySelector(id)!.getBoundingClientRect().right);
  });
  expect(widths[0]).toBeLessThanOrEqual(widths[1]);
  await page.locator("#runs").selectOption("1");
  await expect(page.locator("#status")).toHaveText("two-flows, seed 2: 12 s");
  const highest = async () => Number(await page.locator('[data-chart="queue"]').getAttribute("data-max"));
  const whole = await highest();
  expect(whole).toBeGreaterThan(10);
  const over = page.locator('[data-chart="window"] .u-over');
  await over.scrollIntoViewIfNeeded();
  const box = (await over.boundingBox())!;
  for (const end of [0.1, 0.05]) {
    await page.mouse.move(box.x + 1, box.y + 40);
    await page.mouse.down();
    await page.mouse.move(box.x + box.width * end, box.y + 40, { steps: 4 });
    await page.mouse.up();
  }
  // At the start there is less in the queue.
  await expect.poll(highest).toBeLessThan(whole);
  await page.evaluate(() => scrollTo(0, 0));
  await page.locator("#scrub").fill("2");
  await page.locator("#loss").click();
  await expect(page.locator("#time")).toHaveText(`${native.drops.toFixed(4)} s`);
});

test("a dropped folder opens", async ({ lab }) => {
  const page = await lab("#stack=reno&duration_s=1");
  await page.evaluate(() => (document.body.dataset.state = ""));
  const session = await page.context().newCDPSession(page);
  const data = { items: [], files: [folder], dragOperationsMask: 1 };
  for (const type of ["dragEnter", "dragOver", "drop"] as const) {
    await session.send("Input.dispatchDragEvent", { type, x: 400, y: 200, data });
  }
  await done(page);
  await expect(page.locator("#status")).toHaveText("two-flows, seed 1: 12 s");
  await expect(page.locator("#runs option")).toHaveCount(2);
});

test("dropped tables open too, and another folder is a message", async ({ lab }) => {
  const page = await lab("#stack=reno&duration_s=1");
  const wanted = files(folder).filter(({ path }) => /(parquet|json)$/.test(path));
  const contents = await Promise.all(wanted.map(async ({ path, file }) =>
    [basename(path), Buffer.from(await file.arrayBuffer()).toString("base64")]));
  await page.evaluate((all) => {
    document.body.dataset.state = "";
    const dataTransfer = new DataTransfer();
    for (const [name, text] of all) {
      dataTransfer.items.add(new File([Uint8Array.from(atob(text), (letter) => letter.charCodeAt(0))], name));
    }
    dispatchEvent(new DragEvent("drop", { dataTransfer, cancelable: true }));
  }, contents);
  await done(page);
  await expect(page.locator("#status")).toHaveText("two-flows, seed 1: 12 s");
  const place = made();
  cpSync(folder, join(place, "a"), { recursive: true });
  rmSync(join(place, "a/runs.parquet"));
  writeFileSync(join(place, "note.txt"), "nothing");
  await page.locator("#folder").setInputFiles(place);
  await expect(page.locator("#error")).toContainText("no table runs.parquet");
  await expect(page.locator("#status")).toHaveText("These results cannot be shown.");
});
