// A fabric of a data centre: the use of its links, the longest queue, and its charts.
import type { Page } from "@playwright/test";
import { fabricInWords, placesOf } from "../src/fabric";
import { fabricOf, hasFlowPackets, longestAt, useOf } from "../src/ports";
import { between, type Point } from "../src/shapes";
import { Store, type Description } from "../src/store";
import { done, expect, facts, test } from "./page";

/** Two hosts send to a third. With one spine there is one way only, and both meet at the port `leaf1-h3`. */
const MEETING = `
name = "meeting"
[topology]
kind = "leaf-spine"
leaves = 2
hosts = 2
spines = 1
rate = "1gbit"
delay = "10us"
queue = "100p"
[[flow]]
name = "far"
stack = "reno"
from = "h0"
to = "h3"
[[flow]]
name = "near"
stack = "reno"
from = "h2"
to = "h3"
[measure]
duration = "50ms"
`;

/** Many connections of a workload. */
const WORKLOAD = `
name = "workload"
[topology]
kind = "leaf-spine"
leaves = 4
hosts = 4
spines = 2
rate = "10gbit"
delay = "1us"
queue = "1000p"
routing = "ecmp"
[[flow]]
name = "background"
stack = "dctcp"
workload = { kind = "flow-sizes", sizes = "fb-hadoop", load = "50%" }
[measure]
duration = "3ms"
`;

/** One flow over four links at 100 Gbit/s: 50 million ways over links in each second. */
const FAST = `
name = "fast"
[topology]
kind = "leaf-spine"
leaves = 2
hosts = 1
spines = 1
rate = "100gbit"
delay = "1us"
queue = { kind = "ecn-step", threshold = "300kb", limit = "2mb" }
[[topology.port]]
link = "leaf1-h1"
impair = { rate = "80gbit" }
[[flow]]
stack = "dctcp"
from = "h0"
to = "h1"
[measure]
duration = "60ms"
`;

/** As many over one bottleneck. */
const FASTER = `
name = "faster"
[topology]
rate = "100gbit"
rtt = "100us"
queue = { kind = "ecn-step", threshold = "300kb", limit = "2mb" }
[[flow]]
stack = "dctcp"
[measure]
duration = "250ms"
`;

/** The ends of the scale of uses, in light and in dark colours. */
const [UNUSED, FULL] = ["rgb(234, 238, 242)", "rgb(127, 39, 4)"];
const [UNUSED_DARK, FULL_DARK] = ["rgb(48, 54, 61)", "rgb(255, 227, 194)"];

function network(...names: string[]): Description {
  const links = names.map((name) => ({
    name, is_monitored: true, rate_mbps: 8, delay_ms: 1, limit_packets: null, limit_bytes: null,
  }));
  return { name: "test", duration_s: 1, radio: null, links, flows: [] };
}

/** One flow's packets of these lengths over link 0: times of entry, of the end of waiting and of leaving. Rows as of `rows.rs`. */
function made(...ways: [bytes: number, enter: number, start: number, leave: number, fate?: number][]): Store {
  const store = new Store(network("h0-leaf0", "leaf0-h0"));
  store.addPackets(Float64Array.from(ways.flatMap(([bytes, enter]) => [300, 0, 0, 0, bytes, bytes, enter])));
  const rows = ways.flatMap(([, enter, start, leave, fate = 0], packet) => [0, packet, enter, start, leave, fate]);
  store.addCrossings(Float64Array.from(rows));
  store.simulated = 1;
  return store;
}

test("names of links tell a fabric, and the two directions of a pair", () => {
  const fabric = fabricOf(network("h10-leaf1", "leaf1-h10", "h9-leaf0", "leaf0-h9", "leaf1-spine0", "spine0-leaf1"))!;
  expect(fabric.nodes.map(({ name }) => name)).toEqual(["h9", "h10", "leaf0", "leaf1", "spine0"]);
  expect(fabric.pairs).toEqual([[0, 1], [2, 3], [4, 5]]);
  expect(fabric.ends[1]).toEqual([3, 1]);
  expect(fabricOf(network("h0-edge0", "edge0-agg0", "agg0-core0"))?.nodes.map(({ tier }) => tier)).toEqual([0, 1, 2, 3]);
  for (const names of [["bottleneck", "back"], ["hop0"], ["h0-leaf0", "a-b"], []]) {
    expect(fabricOf(network(...names)), names.join()).toBeUndefined();
  }
  const places = placesOf(fabric, { width: 800, height: 340 }, 1);
  expect(places[1].x - places[0].x).toBeCloseTo(places[3].x - places[2].x);
  expect([places[0].y > places[2].y, places[2].y > places[4].y]).toEqual([true, true]);
});

/** Rows of samples of a link, as of `rows.rs`: packets and bytes in the queue, use. */
function samples(link: number, ...rows: [time: number, packets: number, bytes: number, use: number][]): Float64Array {
  return Float64Array.from(rows.flatMap(([time, packets, bytes, use]) => [link, time, packets, bytes, 0, 0, 0, use]));
}

test("use comes from samples, queues from the ways of packets, and after the last one from samples", () => {
  // A link of 8 Mbit/s takes 1 ms for 1000 bytes.
  const ways = [[5_000, 0.4, 0.4, 0.48], [7_500, 0.5, 0.51, 0.52], [9_000, 0.505, 0.505, 0.505, 10], [20_000, 0.49, 0.52, 0.6]];
  const store = made(...(ways as Parameters<typeof made>));
  expect(useOf(store, 0, 0.5)).toBe(0);
  store.addQueues(samples(0, [0.47, 9, 9, 1], [0.48, 3, 4_500, 0.6], [0.52, 2, 3_000, 0.2], [0.53, 9, 9, 1]));
  store.addQueues(samples(1, [0.48, 1, 60_000, NaN], [0.52, 1, 60_000, NaN]));
  // The mean at 0.5 s is over 0.475 s to 0.525 s. A blackout allows nothing.
  expect(useOf(store, 0, 0.5)).toBeCloseTo(40);
  expect(useOf(store, 1, 0.5)).toBe(0);
  expect(longestAt(store, 0.45)).toBeUndefined();
  expect(longestAt(store, 0.495)).toEqual({ link: 0, packets: 1, bytes: 20_000 });
  expect(longestAt(store, 0.505)).toEqual({ link: 0, packets: 2, bytes: 27_500 });
  expect(longestAt(store, 0.515)).toEqual({ link: 0, packets: 1, bytes: 20_000 });
  expect(fabricInWords(store, 0.505)).toContain("Longest queue: h0-leaf0: 2 packets, 27.5 kB, 27.5 ms. ");
  store.recordedUntil = 0.502;
  // One packet alone is being sent, and does not wait.
  expect(longestAt(store, 0.505)).toEqual({ link: 0, packets: 3, bytes: 4_500 });
  expect(fabricInWords(store, 0.505)).toContain("h0-leaf0: 3 packets, 4.5 kB, 4.5 ms (sampled, with the packet being sent). Most used");
});

test("packets of connections with high numbers are none of the first flow", () => {
  const store = made([1_000, 0.1, 0.1, 0.2]);
  expect(store.flow.values[0]).toBe(300);
  store.about.flows.push({ name: "background", stack: "dctcp", start_s: 0, forward: [], reverse: [] });
  expect(hasFlowPackets(store)).toBe(false);
  store.addPackets(Float64Array.from([0, 0, 0, 0, 1, 1, 0.3]));
  expect(hasFlowPackets(store)).toBe(true);
});

/** Opens a scenario as a file. */
async function open(page: Page, text: string): Promise<void> {
  await page.evaluate(() => (document.body.dataset.state = ""));
  await page.locator("#file").setInputFiles({ name: "fabric.toml", mimeType: "text/plain", buffer: Buffer.from(text) });
  await done(page);
}

/** Colours of the pixels around a point of the picture. */
function pixels(page: Page, { x, y }: Point): Promise<number[][]> {
  return page.locator("#network").evaluate((canvas: HTMLCanvasElement, [x, y]) => {
    const { data } = canvas.getContext("2d")!.getImageData(Math.round(x) - 2, Math.round(y) - 2, 5, 5);
    return Array.from({ length: 25 }, (_, at) => [...data.slice(4 * at, 4 * at + 3)]);
  }, [x, y]);
}

/** How far the nearest of the colours is from one, at most 255 per part. */
function distance(colours: number[][], wanted: string): number {
  const parts = wanted.match(/\d+/g)!.map(Number);
  return Math.min(...colours.map((colour) => Math.max(...colour.map((value, at) => Math.abs(value - parts[at])))));
}

/** What is written into pictures from now on. */
async function listen(page: Page): Promise<() => Promise<string[]>> {
  await page.evaluate(() => {
    const written: string[] = [];
    const { fillText } = CanvasRenderingContext2D.prototype;
    CanvasRenderingContext2D.prototype.fillText = function (...words) {
      written.push(words[0]);
      fillText.apply(this, words);
    };
    Object.assign(window, { written });
  });
  return () => page.evaluate(() => (window as unknown as { written: string[] }).written);
}

test("the picture shows which links are used, and the port with the longest queue", async ({ lab }) => {
  const page = await lab("#duration_s=1");
  await open(page, MEETING);
  const network = page.locator("#network");
  await page.locator("#scrub").fill("0");
  await expect(network).toHaveAttribute("aria-label", /A fabric of 4 hosts and 3 switches at 0 s\. No packet waits/);
  const written = await listen(page);
  await page.locator("#scrub").fill("0.03");
  await expect(network).toHaveAttribute("aria-label", /Longest queue: leaf1-h3: \d+ packets, [\d.]+ kB, [\d.]+ m?s\. /);
  const words = (await network.getAttribute("aria-label"))!;
  expect(words).toMatch(/Most used link from 28\.[78] ms to 31\.[23] ms: leaf1 to h3, (9[5-9]|100) %$/);
  // Up to 100 packets of 1500 bytes, each of which takes 12 µs.
  const [, packets, kilobytes] = /(\d+) packets, ([\d.]+) kB/.exec(words)!.map(Number);
  expect(packets).toBeGreaterThan(50);
  expect(packets).toBeLessThanOrEqual(100);
  expect(kilobytes / packets).toBeCloseTo(1.5, 1);
  const port = words.slice(words.indexOf("leaf1-h3"), words.indexOf(". Most used"));
  const texts = await written();
  for (const text of ["hosts", "leaves", "spines", "h0", "spine0", "mean over 2.5 ms around the time shown", port]) expect(texts).toContain(text);

  const names = ["h0-leaf0", "h1-leaf0", "h2-leaf1", "h3-leaf1", "leaf0-spine0", "leaf1-spine0"];
  const fabric = fabricOf({ name: "", duration_s: 1, radio: null, flows: [], links: names.map((name) => ({ name })) as never })!;
  const size = await network.evaluate(({ clientWidth: width, clientHeight: height }) => ({ width, height }));
  const places = placesOf(fabric, size, 1);
  const on = (from: string, to: string, share: number) => {
    const [one, other] = [from, to].map((name) => places[fabric.nodes.findIndex((node) => node.name === name)]);
    return between(one, other, share);
  };
  // Far from the dot and its words, which are near leaf1.
  const from = async (colour: string, one: string, other: string) => distance(await pixels(page, on(one, other, 0.8)), colour);
  expect(await from(FULL, "leaf1", "h3")).toBeLessThan(25);
  expect(await from(UNUSED, "leaf0", "h1")).toBeLessThan(8);
  expect(await from(FULL, "leaf0", "h1")).toBeGreaterThan(80);
  // The direction from the host is used by data, the other one by acknowledgements.
  expect(await from(UNUSED, "leaf1", "h2")).toBeGreaterThan(8);
  expect(distance(await pixels(page, on("leaf1", "h3", 0.3)), "rgb(31, 35, 40)")).toBeLessThan(8);
  await page.locator("#scheme").click();
  await expect.poll(() => from(FULL_DARK, "leaf1", "h3")).toBeLessThan(25);
  expect(await from(UNUSED_DARK, "leaf0", "h1")).toBeLessThan(12);

  // Of 12 ports, in the order of their peaks.
  const queue = page.locator("[data-chart=queue]");
  await expect(queue.locator("figcaption")).toHaveText("Queue: the 8 of 12 ports with the highest peaks");
  const ports = await queue.locator(".u-series:not(:first-child) .u-label").allTextContents();
  expect(ports).toHaveLength(8);
  expect(ports.slice(0, 3)).toContain("leaf1-h3");
  const peak = Number(await queue.getAttribute("data-max"));
  expect(peak).toBeGreaterThan(100);
  expect(peak).toBeLessThanOrEqual(150.1);
  await expect(page.locator("#diagram")).toBeVisible();
  await expect(page.locator("#outcome tbody tr")).toHaveCount(2);
  await expect(page.locator("#time")).toHaveText("30.0000 ms");
  await open(page, MEETING.replace('kind = "leaf-spine"', 'kind = "dumbbell"').replace(/^(leaves|hosts|spines|from|to|delay) .*$/gm, ""));
  await expect(network).toHaveAttribute("aria-label", /^The network at/);
});

test("after a step use and queue are those of the rate at that time", async ({ lab }) => {
  const page = await lab("#duration_s=1");
  const step = `[[topology.port]]\nlink = "leaf1-h3"\nimpair = { rate_steps = [{ at = "20ms", rate = "100mbit" }] }\n[[flow]]`;
  await open(page, MEETING.replace("[[flow]]", step));
  await page.locator("#scrub").fill("0.04");
  const network = page.locator("#network");
  await expect(network).toHaveAttribute("aria-label", /Most used link from 38\.[78] ms to 41\.[23] ms: leaf1 to h3, (9[5-9]|100) %$/);
  const [, kilobytes, wait] = /leaf1-h3: \d+ packets, ([\d.]+) kB, ([\d.]+) ms/.exec((await network.getAttribute("aria-label"))!)!.map(Number);
  expect(wait).toBeCloseTo((8 * kilobytes) / 100, 1);
  // Of other networks the picture has the rate of that time.
  await open(page, `[topology.forward]\nrate_steps = [{ at = "20ms", rate = "3mbit" }]\n[[flow]]\nstack = "reno"\n[measure]\nduration = "50ms"`);
  const written = await listen(page);
  for (const [time, rate] of [["0.01", "10 Mbit/s"], ["0.03", "3 Mbit/s"]]) {
    await page.locator("#scrub").fill(time);
    await expect.poll(async () => (await written()).join()).toContain(`bottleneck · ${rate}`);
  }
});

test("sliders that a fabric has work, and the others are not there, with the reason", async ({ lab }) => {
  const page = await lab("#duration_s=1");
  const marked = MEETING.replace('queue = "100p"', 'queue = { kind = "ecn-step", threshold = "3p", limit = "100p" }').replaceAll('"reno"', '"dctcp"');
  await open(page, marked);
  for (const [dial, isShown] of [["rate_mbps", true], ["rtt_ms", false], ["queue_bdp", true], ["loss_percent", false]] as const) {
    await expect(page.locator(`#${dial}`), dial).toBeVisible({ visible: isShown });
  }
  await expect(page.locator("#why")).toHaveText(/^A fabric has no round-trip time or loss of its own: /);
  const move = async (dial: string, key: string) => {
    const { hash } = await facts(page);
    await page.evaluate(() => (document.body.dataset.state = ""));
    await page.locator(dial).focus();
    await page.keyboard.press(key);
    await done(page);
    await expect(page.locator("#error")).toHaveText("");
    expect((await facts(page)).hash).not.toBe(hash);
  };
  // From the 1 Gbit/s of the file on.
  const rate = page.locator("label[for=rate_mbps]");
  await expect(rate).toHaveText("Rate of hosts’ links as in the file");
  await move("#rate_mbps", "ArrowRight");
  await expect(rate).toHaveText("Rate of hosts’ links 1.1 Gbit/s");
  await move("#rate_mbps", "End");
  await expect(rate).toHaveText("Rate of hosts’ links 400 Gbit/s");
  await move("#rate_mbps", "Home");
  // Switches still mark: only the limit of their queue changes.
  expect((await facts(page)).text).toMatch(/ [1-9]\d* marked/);
  await move("#queue_bdp", "ArrowLeft");
  expect((await facts(page)).text).toMatch(/ [1-9]\d* marked/);
  const text = marked.replace("[topology]", "[topology]\npfc = true\nbuffer = { total = \"1mb\" }").replace('"100p"', '"infinite"');
  await open(page, text);
  await expect(page.locator("#error")).toHaveText("");
  await expect(page.locator("#queue_bdp")).toBeHidden();
  await expect(page.locator("#why")).toHaveText(/With PFC queues have no limit\.$/);
  await page.locator("#example").selectOption("two-flows");
  await expect(page.locator("#rtt_ms")).toBeVisible();
  await expect(page.locator("#why")).toBeHidden();
});

test("a workload of many connections has no empty charts", async ({ lab }) => {
  const page = await lab("#duration_s=1");
  await open(page, WORKLOAD);
  expect((await facts(page)).text).toMatch(/[1-9]\d+ packets · /);
  await expect(page.locator("#network")).toHaveAttribute("aria-label", /^A fabric of 16 hosts and 6 switches/);
  for (const box of ["#diagram", "#outcome", "#signs", "[data-chart=window]", "[data-chart=rates]"]) {
    await expect(page.locator(box), box).toBeHidden();
  }
  await expect(page.locator("#charts > p")).toContainText("have no samples");
  await expect(page.locator("[data-chart=queue]")).toBeVisible();
  // A run of 3 ms is over at once at the usual speed.
  await expect(page.locator("#speed")).toHaveValue("0.0003");
  await page.locator("#scheme").click();
  await expect(page.locator("[data-chart=window]")).toBeHidden();
});

test("links have their use and queues after the last packet that is recorded, and the page says where that is", async ({ lab }) => {
  const page = await lab("#duration_s=1");
  await open(page, FAST);
  const status = (await page.locator("#status").textContent())!;
  const [, until] = /; packets are recorded up to ([\d.]+) ms only: the first 2,000,000 ways of packets over links$/.exec(status) ?? [];
  expect(Number(until), status).toBeGreaterThan(20);
  expect(Number(until)).toBeLessThan(58);
  expect((await facts(page)).text).toContain(`all but timeouts up to ${until} ms`);
  await page.locator("#scrub").fill("0.0595");
  const network = page.locator("#network");
  await expect(network).toHaveAttribute("aria-label", /Longest queue: leaf1-h1: \d+ packets, [\d.]+ kB, [\d.]+ µs \(sampled, /);
  await expect(network).toHaveAttribute("aria-label", /Most used link from 58 ms to 60 ms: leaf1 to h1, (99|100) %$/);
  const queue = page.locator("[data-chart=queue]");
  expect(Number(await queue.getAttribute("data-max"))).toBeGreaterThan(300);
  expect(Number(await queue.getAttribute("data-to"))).toBeCloseTo(0.06);
  // Of other networks the picture says it, too.
  await open(page, FASTER);
  const written = await listen(page);
  await page.locator("#scrub").fill("0.249");
  await expect.poll(async () => (await written()).join()).toMatch(/No packets are recorded after [\d.]+ ms\./);
});
