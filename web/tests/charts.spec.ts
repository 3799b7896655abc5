// What the charts of a run show.
import { topOf } from "../src/charts";
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
