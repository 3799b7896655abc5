// What the charts of a run show.
import { topOf } from "../src/charts";
import { rates } from "../src/lines";
import { Store } from "../src/store";
import { expect, test } from "./page";

const RUN = "#stack=reno&stack=cubic&stack=bbr&duration_s=12";

test("a burst of pacing does not flatten the goodput", () => {
  const lines = [{}, { isCut: true }];
  const top = (...shown: number[]) => topOf({ series: [{}, ...shown.map((max) => ({ max }))] }, lines);
  expect(top(10, 8)).toBe(10);
  expect(top(10, 29)).toBe(29);
  expect(top(10, 300)).toBe(30);
  // Before anything has arrived only the pacing rate is there.
  expect(top(0, 300)).toBe(300);
});

test("goodput is a mean over a second, and of a short run over a twentieth of it", () => {
  const goodputs = (duration_s: number) => {
    const flow = { name: "far", stack: "reno", start_s: 0, forward: [], reverse: [] };
    const store = new Store({ name: "", duration_s, radio: null, links: [], flows: [flow] });
    // Nothing in the first half, 100 Mbit/s in the second.
    const rows = Array.from({ length: 200 }, (_, at) => [0, (duration_s * (at + 1)) / 200, 0, 0, 0, 0, 0, 0, at < 100 ? 0 : 100, 0, 0, 0]);
    store.addSamples(Float64Array.from(rows.flat()));
    return rates(store, ["black"])[0].values;
  };
  expect(Math.abs(goodputs(0.05)[104]! - 50)).toBeLessThan(6);
  expect(Math.round(goodputs(0.05)[115]!)).toBe(100);
  expect(Math.round(goodputs(20)[115]!)).toBe(100);
  expect(Math.round(goodputs(0.5)[199]!)).toBe(50);
});

test("a cursor reads phases by their names, and the share of each flow", async ({ lab }) => {
  const page = await lab(RUN);
  const chart = page.locator("[data-chart=phases] .u-over");
  await chart.scrollIntoViewIfNeeded();
  const box = (await chart.boundingBox())!;
  await page.mouse.move(box.x + box.width / 2, box.y + box.height / 2);
  const values = (name: string) => page.locator(`[data-chart=${name}] .u-series:not(:first-child) .u-value`);
  await expect(values("phases")).toHaveText(["congestion avoidance", "congestion avoidance", "probe bw"]);
  const shares = (await values("shares").allTextContents()).map(Number);
  expect(shares).toHaveLength(3);
  for (const share of shares) expect(share).toBeGreaterThan(0);
  expect(shares.reduce((sum, share) => sum + share, 0)).toBeCloseTo(100, 0);
});
