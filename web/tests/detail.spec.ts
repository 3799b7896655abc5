// What charts and the time–sequence diagram show of more data than they have pixels.
import { expect, test } from "@playwright/test";
import { envelope, mostBetween } from "../src/envelope";
import { Fate, Kind, Store } from "../src/store";
import { thinned } from "../src/thin";

const ABOUT = {
  name: "made", duration_s: 10, radio: null, is_recorded: true, links: [],
  flows: [{ name: "a", stack: "x", start_s: 0, forward: [], reverse: [] }],
};

/** Samples of which none is like its neighbour; every seventh value is unknown. */
function sampled(rows: number): Store {
  const store = new Store(ABOUT);
  for (let row = 0; row < rows; row++) {
    const value = (row * 7919) % 1009;
    const rtt = row % 7 === 0 ? NaN : value;
    store.addSamples(Float64Array.of(0, (10 * row) / rows, value, NaN, 0, 0, rtt, 0, 0, 0, 0, 0));
  }
  return store;
}

test("bins have the mean and the limits of their rows", () => {
  const store = sampled(5_000);
  const [from, to, bins] = [2.0005, 7.0005, 50];
  const { t, cwnd, rtt, ssthresh, low, high } = thinned(store, from, to, bins).samples[0];
  expect(t.length).toBeGreaterThanOrEqual(bins);
  expect(t.length).toBeLessThanOrEqual(bins + 2);
  let compared = 0;
  for (let bin = 1; bin + 1 < t.length; bin++) {
    const rows = Array.from({ length: 5_000 }, (_, row) => row).filter((row) => {
      const at = (10 * row) / 5_000;
      return Math.floor((at - from) * (bins / (to - from))) === bin - 1;
    });
    const values = rows.map((row) => (row * 7919) % 1009);
    const known = values.filter((_, index) => rows[index] % 7 !== 0);
    expect(cwnd.values[bin]).toBeCloseTo(values.reduce((a, b) => a + b) / values.length, 9);
    expect([low!.cwnd[bin], high!.cwnd[bin]]).toEqual([Math.min(...values), Math.max(...values)]);
    expect([low!.rtt[bin], high!.rtt[bin]]).toEqual([Math.min(...known), Math.max(...known)]);
    expect(rtt.values[bin]).toBeCloseTo(known.reduce((a, b) => a + b) / known.length, 9);
    expect(ssthresh.values[bin]).toBeNaN();
    compared++;
  }
  expect(compared).toBeGreaterThan(40);
});

test("the end of a range is in its last bin, and one row on each side is added", () => {
  const { t, low, high } = thinned(sampled(5_000), 2.0005, 8, 50).samples[0];
  expect(t.length).toBe(52);
  for (const row of [0, 51]) expect(low!.cwnd[row]).toBe(high!.cwnd[row]);
  expect(t.values[0]).toBeLessThan(2.0005);
  expect(t.values[51]).toBeGreaterThan(8);
});

test("few rows are shown as they are, with one more on each side", () => {
  const { t, cwnd, low } = thinned(sampled(5_000), 2, 2.1, 50).samples[0];
  expect(low).toBeUndefined();
  expect(t.length).toBe(52);
  expect(t.values[0]).toBeLessThanOrEqual(2);
  expect(t.values[t.length - 1]).toBeGreaterThan(2.1);
  expect(cwnd.values[0]).toBe((1_000 * 7919) % 1009);
});

test("a column of pixels covers the packets of its time", () => {
  const store = new Store(ABOUT);
  const kinds = [Kind.New, Kind.New, Kind.Fast, Kind.Ack];
  for (let packet = 0; packet < 20_000; packet++) {
    const kind = kinds[packet % 4];
    store.addPackets(Float64Array.of(0, 0, kind, packet * 1000, kind === Kind.Ack ? 0 : 1000, 1040, packet / 2_000));
    if (kind === Kind.Ack) store.ended.values[packet] = packet / 2_000 + 0.01;
    if (packet % 1_000 === 1) store.fate.values[packet] = Fate.Dropped;
  }
  expect(mostBetween(store, 0, 10)).toBeGreaterThan(19_000);
  const { sent, again, acked, dropped } = envelope(store, 0, 1, 9, 80);
  let compared = 0;
  for (let column = 0; column < 80; column++) {
    const inside = (time: number) => Math.floor((time - 1) * 10) === column;
    const all = Array.from({ length: 20_000 }, (_, packet) => packet);
    const of = (...wanted: number[]) => all.filter((packet) => wanted.includes(kinds[packet % 4]) && inside(packet / 2_000));
    const arrived = all.filter((packet) => kinds[packet % 4] === Kind.Ack && inside(packet / 2_000 + 0.01));
    expect(sent.low[column]).toBe(Math.min(...of(Kind.New)) * 1000);
    expect(sent.high[column]).toBe(Math.max(...of(Kind.New)) * 1000 + 1000);
    expect(again.high[column]).toBe(Math.max(...of(Kind.Fast)) * 1000 + 1000);
    expect(acked.low[column]).toBe(Math.min(...arrived) * 1000);
    const lost = of(Kind.New).filter((packet) => packet % 1_000 === 1);
    expect(dropped[column]).toBe(lost.length > 0 ? lost.at(-1)! * 1000 : NaN);
    compared++;
  }
  expect(compared).toBe(80);
});
