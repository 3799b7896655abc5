// The page in Firefox: what it shows is what Chromium shows.
import { readFileSync } from "node:fs";
import { join } from "node:path";
import { Firefox, FIREFOX } from "./bidi";
import { expect, facts, test } from "./page";

const INDEX = `file://${join(import.meta.dirname, "../dist/index.html")}`;
const SHORT = "#stack=reno&stack=cubic&duration_s=10";
const DONE = 'document.body.dataset.state === "done"';
const text = (selector: string) => `document.querySelector(${JSON.stringify(selector)}).textContent`;

let firefox: Firefox;

test.beforeAll(async () => {
  test.skip(FIREFOX === undefined, "Firefox is not installed (Debian: firefox-esr)");
  firefox = await Firefox.start(1280, 900);
});

test.afterAll(async () => firefox?.close());

test("Firefox runs the page from a file, with the packets of Chromium", async ({ lab }) => {
  const chromium = await facts(await lab(SHORT));
  await firefox.open(INDEX + SHORT);
  await firefox.until(DONE);
  expect(await firefox.evaluate(text("#facts"))).toBe(chromium.text);
  expect(chromium.hash).toMatch(/^[0-9a-f]{16}$/);
  const hashes = JSON.parse(readFileSync(join(import.meta.dirname, "../core/trace_hashes.json"), "utf8"));
  const found = await firefox.evaluate(
    `${JSON.stringify(hashes)}.map(({ name, text, overrides, seed }) => [name, window.lab.hash(text, overrides, seed)])`);
  expect(found).toEqual(hashes.map(({ name, hash }: { name: string; hash: string }) => [name, hash]));
});

test("Firefox: a longer round trip changes the run, and charts zoom", async () => {
  await firefox.open("about:blank");
  await firefox.open(INDEX + SHORT);
  await firefox.until(DONE);
  const before = await firefox.evaluate(text("#facts"));
  const queue = 'Number(document.querySelector("[data-chart=queue]").dataset.max)';
  const deepest = await firefox.evaluate<number>(queue);
  const box = (selector: string) =>
    firefox.evaluate<DOMRect>(`document.querySelector("${selector}").getBoundingClientRect().toJSON()`);
  const slider = await box("#rtt_ms");
  const y = slider.y + slider.height / 2;
  await firefox.evaluate('void (document.body.dataset.state = "")');
  await firefox.drag([0.59, 0.7, 0.8].map((share) => ({ x: slider.x + share * slider.width, y })));
  await firefox.until(DONE);
  expect(await firefox.evaluate(text("#facts"))).not.toBe(before);
  expect(await firefox.evaluate<number>(queue)).toBeGreaterThan(1.5 * deepest);

  await firefox.evaluate('document.querySelector("[data-chart=window] .u-over").scrollIntoView({ block: "center" })');
  const chart = await box("[data-chart=window] .u-over");
  // A click goes to a time, and a range that was dragged is shown.
  await firefox.drag([{ x: chart.x + chart.width / 2, y: chart.y + 50 }]);
  await firefox.until(`Math.abs(Number.parseFloat(${text("#time")}) - 5) < 0.05`);
  await firefox.drag([0.2, 0.3, 0.4].map((share) => ({ x: chart.x + share * chart.width, y: chart.y + 50 })));
  await firefox.drag([{ x: chart.x + chart.width / 2, y: chart.y + 50 }]);
  await firefox.until(`Math.abs(Number.parseFloat(${text("#time")}) - 3) < 0.05`);
});

test("Firefox plays, follows a dropped packet and opens a qlog", async () => {
  await firefox.open("about:blank");
  await firefox.open(INDEX + SHORT);
  await firefox.until(DONE);
  await firefox.evaluate('document.querySelector("#play").click()');
  await firefox.until(`Number.parseFloat(${text("#time")}) > 0.01`);
  await firefox.evaluate('document.querySelector("#play").click()');
  await firefox.evaluate('document.querySelector("#loss").click()');
  await firefox.until("window.lab.lastDrop()");
  const place = await firefox.evaluate<{ x: number; y: number }>("window.lab.lastDrop()");
  const canvas = await firefox.evaluate<DOMRect>('document.querySelector("#network").getBoundingClientRect().toJSON()');
  await firefox.drag([{ x: canvas.x + place.x, y: canvas.y + place.y }]);
  expect(await firefox.evaluate(text("#packet"))).toContain("Dropped at bottleneck");
  await firefox.evaluate('void (document.body.dataset.state = "")');
  await firefox.choose("#file", [join(import.meta.dirname, "qlogs/quinn.sqlog")]);
  await firefox.until(DONE);
  expect(await firefox.evaluate(text("#status"))).toContain("quinn.sqlog");
  expect(await firefox.evaluate(text("#facts"))).toMatch(/^\d+ packets · [1-9]\d* lost$/);
});

test("Firefox reports no error, and the page requests nothing", async () => {
  expect(firefox.requests.length).toBeGreaterThan(2);
  expect(firefox.requests.filter((url) => !/^(file|data|blob|about):/.test(url))).toEqual([]);
  expect(firefox.problems).toEqual([]);
});
