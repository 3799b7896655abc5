// Networks, loss models and cross traffic of the controls.
import { scenarioText } from "../src/scenario";
import { CROSS_TRAFFICS, defaults, fromFragment, LOSS_MODELS, toFragment, TOPOLOGIES, type Settings } from "../src/settings";
import { Fate, isLost, type Store } from "../src/store";
import { simulate } from "./native";
import { expect, facts, test } from "./page";

/** Datagrams fill the bottleneck for a minute, about 50,000 of them, so that all losses are those of the model. */
const DATAGRAMS: Partial<Settings> = { stacks: ["udp"], duration_s: 60, loss_percent: 2 };

/** How many packets were lost in a row at the first link, in the order of entering it. */
function runsOfLosses(store: Store): { sent: number; runs: number[] } {
  const { enter, fate, length } = { ...store.crossings[0], length: store.crossings[0].leave.length };
  const rows = Array.from({ length }, (_, row) => row).sort((a, b) => enter.values[a] - enter.values[b]);
  const runs: number[] = [];
  let isInRun = false;
  for (const row of rows) {
    const isLossHere = isLost(fate.values[row]);
    if (isLossHere && isInRun) runs[runs.length - 1]++;
    else if (isLossHere) runs.push(1);
    isInRun = isLossHere;
  }
  return { sent: length, runs };
}

const sum = (values: number[]) => values.reduce((total, value) => total + value, 0);

test("each loss model loses its share, in runs of its length", () => {
  const of = (more: Partial<Settings>) => runsOfLosses(simulate({ ...defaults(), ...DATAGRAMS, ...more }));
  for (const [model, length] of [["single", 1 / 0.98], ["damage", 1 / 0.98], ["bursts", 8]] as const) {
    const { sent, runs } = of({ loss_model: model, loss_burst: 8 });
    expect(runs.length, model).toBeGreaterThan(50);
    // Lengths of runs are geometric, so that their deviation is below their mean: four errors of the mean.
    const tolerance = 4 / Math.sqrt(runs.length);
    expect(Math.abs(sum(runs) / runs.length / length - 1), model).toBeLessThan(tolerance);
    // The number of runs and their lengths both vary.
    expect(Math.abs(sum(runs) / sent / 0.02 - 1), model).toBeLessThan(1.5 * tolerance);
  }
});

test("damaged packets arrive, and count as lost", () => {
  const store = simulate({ ...defaults(), ...DATAGRAMS, loss_model: "damage" });
  const damaged = store.fate.values.slice(0, store.fate.length).filter((fate) => fate === Fate.Damaged).length;
  expect(damaged).toBeGreaterThan(50);
  expect(store.losses.length).toBe(damaged);
});

test("cross traffic has its share of the rate", () => {
  for (const cross_traffic of CROSS_TRAFFICS.slice(1)) {
    const store = simulate({ ...defaults(), stacks: ["reno"], cross_traffic, cross_percent: 20, queue_bdp: 10 });
    expect(store.about.flows.map(({ name }) => name)).toEqual(["reno", "cross traffic"]);
    const { sent, flow, direction, payload } = store;
    let bytes = 0;
    for (let at = 0; at < sent.length; at++) if (flow.values[at] === 1 && direction.values[at] === 0) bytes += payload.values[at];
    const mbps = (8 * bytes) / 60e6;
    // 60 periods of a second, half of each silent, or 300 requests: four deviations are about half of the mean.
    const tolerance = cross_traffic === "constant" ? 0.02 : 0.5;
    expect(Math.abs(mbps / 2 - 1), cross_traffic).toBeLessThan(tolerance);
  }
});

test("a link holds every choice, and what it has wrong is the default", () => {
  for (const topology of TOPOLOGIES) {
    for (const loss_model of LOSS_MODELS) {
      for (const cross_traffic of CROSS_TRAFFICS) {
        const settings: Settings = {
          ...defaults(), topology, loss_model, cross_traffic, hops: 5, loss_percent: 1.5, loss_burst: 7, cross_percent: 30,
        };
        const { settings: read } = fromFragment(toFragment(settings, 0));
        expect(read).toEqual(settings);
        expect(scenarioText(read)).toBe(scenarioText(settings));
      }
    }
  }
  const { settings } = fromFragment("topology=torus&loss_model=few&cross_traffic=x&hops=99");
  expect(settings).toEqual({ ...defaults(), hops: 8 });
});

test("controllers with feedback from routers have it", () => {
  const feedback = (...stacks: string[]) => /feedback = .*/.exec(scenarioText({ ...defaults(), stacks }))?.[0];
  expect(feedback("rack/muzha(levels=3)", "reno")).toBe('feedback = { kind = "drai" }');
  expect(feedback("cubic", "xcp")).toBe('feedback = { kind = "xcp" }');
  expect(feedback("reno", "cubic")).toBeUndefined();
});

test("the controls choose network, loss model and cross traffic", async ({ lab }) => {
  const page = await lab("#stack=reno&stack=cubic&duration_s=6");
  let shown = await facts(page);
  /** Changes a control, and waits for the run of the change: an earlier one may end first. */
  const change = async (act: () => Promise<unknown>) => {
    const { hash } = shown;
    await act();
    await expect.poll(async () => (await facts(page)).hash).not.toBe(hash);
    await expect(page.locator("#error")).toBeEmpty();
    return (shown = await facts(page));
  };
  const choose = (id: string, value: string) => change(() => page.locator(`#${id}`).selectOption(value));
  const label = () => page.locator("#network").getAttribute("aria-label");
  await expect(page.locator("#hops")).toBeHidden();
  await choose("topology", "parking-lot");
  await expect(page.locator("#hops")).toBeVisible();
  expect(await label()).toMatch(/hop0: .*hop1: .*hop2: /);
  await choose("topology", "dumbbell");
  await choose("cross_traffic", "constant");
  await expect(page.locator("#flow option")).toHaveText(["reno", "cubic", "cross traffic"]);
  await expect(page.locator("#cross_percent")).toBeVisible();
  await expect(page.locator("#loss_burst")).toBeHidden();
  const single = await change(() => page.locator("#loss_percent").fill("2"));
  const bursts = await choose("loss_model", "bursts");
  expect(single.dropped).toBeGreaterThan(0);
  expect(bursts.dropped).toBeGreaterThan(0);
  await expect(page.locator("#loss_burst")).toBeVisible();
  const radio = await choose("topology", "radio");
  expect(radio.text).toContain("frames");
  await expect(page.locator("#rate_mbps")).toBeHidden();
  await page.evaluate(() => (window.prompt = () => null));
  await page.locator("#command").click();
  const copied = await page.waitForFunction(() => document.body.dataset.copied);
  expect(await copied.jsonValue()).toContain('packet_error = "2%"');
});
