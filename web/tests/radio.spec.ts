// A radio network: its nodes, the frames in the air, and the way of a packet.
import { Frames, NONE } from "../src/frames";
import { done, expect, facts, test } from "./page";

/** Two nodes that are 100 m apart. Rows as of `crates/web/src/rows.rs`. */
function made(...rows: number[][]): Frames {
  const frames = new Frames({ nodes: [[0, 0], [100, 0]], ends: [[0, 1]], read_m: 250, sense_m: 550, levels: null });
  frames.add(Float64Array.from(rows.flat()));
  return frames;
}

const data = (start: number, end: number, node: number, x: number, offset: number, waiting = 0) =>
  [start, end, node, x, 0, waiting, 1 - node, 2, 0, offset, 0, NaN, 1];

test("frames are found by time, and times by frames", () => {
  const frames = made(data(1, 2, 0, 0, 10), data(1.5, 2.5, 1, 100, 20), data(4, 5, 0, 0, 10));
  expect(frames.between(1.7, 1.7)).toEqual([0, 1]);
  expect(frames.between(2, 2)).toEqual([1]);
  expect(frames.between(2.5, 4.5)).toEqual([2]);
  expect(frames.between(2.6, 3)).toEqual([]);
  const times = [0, 1, 1.5, 2, 2.5, 4, 5];
  for (let at = 1; at < times.length; at++) {
    expect(frames.neighbour(times[at - 1], false)).toBe(times[at]);
    if (at > 1) expect(frames.neighbour(times[at], true)).toBe(times[at - 1]);
  }
  expect([frames.neighbour(5, false), frames.neighbour(1, true)]).toEqual([undefined, undefined]);
});

test("a packet is followed over its frames, and a node over its places", () => {
  const frames = made(data(1, 2, 0, 0, 10, 3), data(3, 4, 1, 90, 10, 1), data(5, 6, 1, 80, 20, 7));
  expect(frames.journey(0)).toEqual([0, 1]);
  expect(frames.journey(2)).toEqual([2]);
  expect(frames.to.values[0]).toBe(1);
  expect(frames.mark.values[0]).toBe(NONE);
  expect(frames.place(1, 0)).toEqual({ x: 100, y: 0 });
  expect(frames.place(1, 1.5).x).toBeCloseTo(95);
  expect(frames.place(1, 4).x).toBeCloseTo(85);
  expect(frames.place(1, 9).x).toBe(80);
  expect([...frames.longestQueue([0])]).toEqual([0, 1, 7]);
  expect([...frames.longestQueue([])]).toEqual([3, 3, 7]);
});

test("the picture shows who sends to whom, and a click follows a packet", async ({ lab }) => {
  const page = await lab("#duration_s=1");
  await page.evaluate(() => (document.body.dataset.state = ""));
  await page.locator("#example").selectOption("radio-chain");
  await done(page);
  expect((await facts(page)).text).toMatch(/[1-9]\d+ frames · [1-9]\d* not read · [1-9]\d* dropped/);
  await expect(page.locator("#rate_mbps")).toBeHidden();
  await expect(page.locator("#diagram")).toBeHidden();
  const network = page.locator("#network");
  await page.locator("#scrub").fill("5");
  let found: RegExpExecArray | null = null;
  for (let step = 0; step < 100 && !found; step++) {
    await page.locator("#step").click();
    // The page shows the time with its next frame.
    await page.waitForTimeout(60);
    found = /On the air: data from node (\d) to node (\d)/.exec((await network.getAttribute("aria-label")) ?? "");
  }
  const [, from, to] = found!;
  // Five nodes of a chain, in one line around the middle; the arrow is between two of them.
  const box = (await network.boundingBox())!;
  const apart = Math.min((box.width - 88) / 800, (0.4 * box.height) / 250) * 200;
  const x = box.width / 2 + ((Number(from) + Number(to)) / 2 - 2) * apart;
  await network.click({ position: { x, y: 66 + (box.height - 122) / 2 } });
  const words = page.locator("#packet");
  await expect(words).toContainText(`Data frame from node ${from} to node ${to}`);
  await expect(words).toContainText(`Packets that waited at node ${from}`);
  await expect(words).toContainText("Data frames with the same packet: 0 → 1 at");
});

test("the next loss is a packet that a node dropped", async ({ lab }) => {
  const page = await lab("#duration_s=1");
  await page.evaluate(() => (document.body.dataset.state = ""));
  await page.locator("#example").selectOption("radio-chain");
  await done(page);
  await page.locator("#loss").click();
  await expect.poll(async () => Number.parseFloat((await page.locator("#time").textContent()) ?? "")).toBeGreaterThan(0);
});
