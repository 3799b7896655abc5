// Charts by fingers and by keys.
import type { CDPSession, Page } from "@playwright/test";
import { expect, test } from "./page";

const RUN = "#stack=reno&stack=cubic&duration_s=10";

/** The first and the last time of a chart. */
async function range(page: Page, chart = "window"): Promise<[number, number]> {
  const { from, to } = await page.locator(`[data-chart=${chart}]`).evaluate(({ dataset }) => ({ ...dataset }));
  return [Number(from), Number(to)];
}

async function centre(page: Page, chart: string): Promise<{ left: number; width: number; y: number }> {
  const over = page.locator(`[data-chart=${chart}] .u-over`);
  await over.scrollIntoViewIfNeeded();
  const box = (await over.boundingBox())!;
  return { left: box.x, width: box.width, y: box.y + box.height / 2 };
}

/** Fingers at shares of the width of a chart. */
async function touch(session: CDPSession, type: "touchStart" | "touchMove" | "touchEnd", xs: number[], y: number) {
  await session.send("Input.dispatchTouchEvent", { type, touchPoints: xs.map((x, id) => ({ x, y, id })) });
}

test("two fingers zoom, one moves, and up and down scrolls the page", async ({ lab }) => {
  const page = await lab(RUN);
  const session = await page.context().newCDPSession(page);
  await session.send("Emulation.setTouchEmulationEnabled", { enabled: true, maxTouchPoints: 2 });
  const { left, width, y } = await centre(page, "window");
  const at = (...shares: number[]) => shares.map((share) => left + share * width);
  expect(await range(page)).toEqual([0, 10]);

  // From 4 and 6 s to a quarter and three quarters: the chart has 4 s, around 5 s.
  await touch(session, "touchStart", at(0.4, 0.6), y);
  for (const share of [0.38, 0.33, 0.28, 0.25]) await touch(session, "touchMove", at(share, 1 - share), y);
  await touch(session, "touchEnd", [], y);
  await expect.poll(async () => (await range(page))[0]).toBeCloseTo(3, 1);
  expect((await range(page))[1]).toBeCloseTo(7, 1);
  // All charts show the same times.
  expect(await range(page, "rtt")).toEqual(await range(page));

  // A quarter of 4 s to the left shows a second later times.
  const begun = await range(page);
  await touch(session, "touchStart", at(0.6), y);
  for (const share of [0.55, 0.45, 0.35]) await touch(session, "touchMove", at(share), y);
  await touch(session, "touchEnd", [], y);
  await expect.poll(async () => (await range(page))[0]).toBeGreaterThan(begun[0] + 0.7);
  const moved = await range(page);
  expect(moved[1] - moved[0]).toBeCloseTo(begun[1] - begun[0], 6);

  // At the end of the run the length stays too.
  for (let swipe = 0; swipe < 5; swipe++) {
    await touch(session, "touchStart", at(0.9), y);
    for (const share of [0.7, 0.4, 0.1]) await touch(session, "touchMove", at(share), y);
    await touch(session, "touchEnd", [], y);
  }
  await expect.poll(async () => (await range(page))[1]).toBe(10);
  expect((await range(page))[0]).toBeCloseTo(10 - (begun[1] - begun[0]), 6);

  const before = await page.evaluate(() => scrollY);
  await touch(session, "touchStart", at(0.5), y);
  for (const dy of [20, 60, 100]) await touch(session, "touchMove", at(0.5), y + (before > 100 ? dy : -dy));
  await touch(session, "touchEnd", [], y);
  await expect.poll(() => page.evaluate(() => scrollY)).not.toBe(before);
  expect((await range(page))[1]).toBe(10);

  // Two taps show everything.
  const again = await centre(page, "window");
  for (let tap = 0; tap < 2; tap++) {
    await touch(session, "touchStart", [again.left + again.width / 2], again.y);
    await touch(session, "touchEnd", [], again.y);
  }
  await expect.poll(() => range(page)).toEqual([0, 10]);
});

test("a chart with the focus is explored by keys", async ({ lab }) => {
  const page = await lab(RUN);
  const chart = page.locator("[data-chart=window]");
  const time = page.locator("#time");
  const shown = await time.textContent();
  await page.locator("#all").focus();
  await expect(chart).toHaveAttribute("aria-label", "Window in kB over time");
  await chart.focus();
  await page.keyboard.press("Shift+ArrowRight");
  await page.keyboard.press("ArrowRight");
  // The cursor of all charts has moved by 11 hundredths of ten seconds, the time shown has not.
  const seconds = (name: string) => page.locator(`[data-chart=${name}] .u-series:first-child .u-value`);
  for (const name of ["window", "rtt", "queue"]) {
    await expect.poll(async () => Number(await seconds(name).textContent()), name).toBeCloseTo(1.1, 1);
  }
  await expect(chart.locator(".spoken")).toHaveText(/^1\.1\d\d s, reno cwnd \d.*cubic in flight/);
  expect(await time.textContent()).toBe(shown);
  await page.keyboard.press("+");
  await expect.poll(async () => { const [from, to] = await range(page); return to - from; }).toBeCloseTo(10 / 1.5, 1);
  expect(await range(page, "queue")).toEqual(await range(page));
  await expect.poll(async () => Number(await seconds("rtt").textContent())).toBeCloseTo(1.1, 1);
  await page.keyboard.press("-");
  await page.keyboard.press("+");
  await page.keyboard.press("0");
  await expect.poll(() => range(page)).toEqual([0, 10]);
  await page.keyboard.press("Enter");
  await expect.poll(async () => Number.parseFloat((await time.textContent())!)).toBeCloseTo(1.1, 1);
  // Other keys mean the same as elsewhere.
  await page.keyboard.press("l");
  await expect.poll(async () => Number.parseFloat((await time.textContent())!)).toBeGreaterThan(1.11);
  // Every chart and the diagram can have the focus.
  const figures = page.locator("figure");
  expect(await figures.count()).toBeGreaterThan(5);
  for (const figure of await figures.all()) await expect(figure).toHaveAttribute("tabindex", "0");
});
