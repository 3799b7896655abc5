// qlogs of Weir, quinn and quiche, and one in the form of mvfst.
import { readFileSync } from "node:fs";
import { join } from "node:path";
import { measure } from "../src/measures";
import { readQlog } from "../src/qlog";
import { Fate, Kind, type Store } from "../src/store";
import { done, expect, test } from "./page";

const path = (name: string) => join(import.meta.dirname, "qlogs", name);
const read = (name: string) => readFileSync(path(name), "utf8");
/** Lines of a log with an event of this name. */
const lines = (name: string, event: string) => read(name).split("\n").filter((line) => line.includes(`"${event}"`));
const count = (store: Store, wanted: (packet: number) => boolean) =>
  Array.from({ length: store.sent.length }, (_, packet) => packet).filter(wanted).length;
const data = (store: Store) => count(store, (packet) => store.direction.values[packet] === 0);

test("each log has its packets, losses and metrics", () => {
  for (const name of ["weir.qlog", "quinn.sqlog", "quiche.sqlog"]) {
    const store = readQlog(name, read(name));
    expect(data(store), name).toBe(lines(name, "transport:packet_sent").length);
    expect(store.losses.length, name).toBe(lines(name, "recovery:packet_lost").length);
    const last = lines(name, "recovery:metrics_updated").findLast((line) => line.includes('"congestion_window"'))!;
    const window = Number(/"congestion_window": ?(\d+)/.exec(last)![1]);
    expect(measure(store, { of: "cwnd_kb", at: store.about.duration_s }), name).toBeCloseTo(window / 1000, 6);
    expect(measure(store, { of: "rtt_ms", from: 0, how: "max" }), name).toBeGreaterThan(10);
    expect(measure(store, { of: "goodput_mbps", from: 0, how: "max" }), name).toBeGreaterThan(0);
  }
});

test("offsets, retransmissions and acknowledgements come from the frames", () => {
  const own = readQlog("weir.qlog", read("weir.qlog"));
  expect(own.losses.length).toBeGreaterThan(0);
  expect(count(own, (packet) => own.kind.values[packet] === Kind.Fast)).toBe(own.losses.length);
  for (const name of ["weir.qlog", "quiche.sqlog"]) {
    const store = readQlog(name, read(name));
    const acks = count(store, (packet) => store.kind.values[packet] === Kind.Ack);
    expect(acks, name).toBeGreaterThan(10);
    const last = store.offset.values[store.kind.values.lastIndexOf(Kind.Ack)];
    expect(last, name).toBeGreaterThan(1000);
  }
  // quinn writes no frames: the diagram then counts what was sent.
  const quinn = readQlog("quinn.sqlog", read("quinn.sqlog"));
  expect(quinn.losses.length).toBeGreaterThan(0);
  expect(quinn.offset.values[data(quinn) - 1]).toBeGreaterThan(100_000);
});

test("mvfst has events of its own: packets lost, pacing, metrics", () => {
  const store = readQlog("mvfst.qlog", read("mvfst.qlog"));
  const of = (event: string) => lines("mvfst.qlog", event).map((line) => JSON.parse(line.replace(/,$/, ""))[3]);
  const at = store.about.duration_s;
  expect(data(store)).toBe(of("packet_sent").length);
  expect(count(store, (packet) => store.kind.values[packet] === Kind.Ack)).toBe(4);
  // Its times are those of a machine's clock, in microseconds and as text.
  expect(at).toBeGreaterThan(0.16);
  expect(at).toBeLessThan(0.3);
  const [{ lost_packets, largest_lost_packet_num }] = of("packets_lost");
  expect(store.losses.length).toBe(lost_packets);
  const lost = count(store, (packet) => store.fate.values[packet] === Fate.Lost);
  expect(lost).toBe(1);
  const [named] = of("packet_sent").filter(({ header, packet_type }) =>
    packet_type === "1RTT" && header.packet_number === largest_lost_packet_num);
  const packet = store.fate.values.indexOf(Fate.Lost);
  expect(store.offset.values[packet]).toBe(named.frames[0].offset);
  expect(count(store, (packet) => store.kind.values[packet] === Kind.Fast)).toBe(lost_packets);
  expect(measure(store, { of: "cwnd_kb", at })).toBeCloseTo(of("congestion_metric_update").at(-1).current_cwnd / 1000, 9);
  const { latest_rtt } = of("metric_update").findLast((event) => event.latest_rtt !== undefined);
  expect(measure(store, { of: "rtt_ms", at })).toBeCloseTo(latest_rtt / 1000, 9);
  const { pacing_burst_size, pacing_interval } = of("pacing_metric_update").at(-1);
  const pacing = store.samples[0].pacing.values[store.samples[0].pacing.length - 1];
  expect(pacing).toBeCloseTo((pacing_burst_size * 1240 * 8) / pacing_interval, 9);
});

test("times may be in microseconds, relative to the event before, and events may be arrays", () => {
  const old = {
    traces: [{
      configuration: { time_units: "us" },
      event_fields: ["relative_time", "category", "event", "data"],
      events: [
        ["1000", "recovery", "metric_update", { current_cwnd: 5000 }],
        ["3000", "transport", "packet_sent", { packet_size: 1200, header: { packet_number: 1 } }],
      ],
    }],
  };
  const store = readQlog("old", JSON.stringify(old));
  expect(store.about.duration_s).toBeCloseTo(0.002, 9);
  expect(measure(store, { of: "cwnd_kb", at: 0.001 })).toBe(5);
  const events = [10, 5, 5].map((time) => ({ time, name: "quic:packet_sent", data: { raw: { length: 100 } } }));
  const delta = { traces: [{ common_fields: { time_format: "relative_to_previous_event" }, events }] };
  expect(readQlog("delta", JSON.stringify(delta)).about.duration_s).toBeCloseTo(0.01, 9);
});

test("a file that is no qlog is a message with the reason", () => {
  expect(() => readQlog("a.json", "{}")).toThrow("no traces with events");
  expect(() => readQlog("a.qlog", "nothing")).toThrow("not JSON");
  expect(() => readQlog("a.sqlog", '\x1e{"qlog_format":"JSON-SEQ"}\n\x1e{"ti\n\x1e{}\n')).toThrow("line 2");
  expect(() => readQlog("a.qlog", '{"traces":[{"events":[]}]}')).toThrow("no events");
  expect(() => readQlog("a.qlog", '{"traces":[{"events":[{"time":"x","name":"a"}]}]}')).toThrow("'x'");
});

test("logs of Weir and quinn open in the page, and a wrong one is a message", async ({ lab }) => {
  const page = await lab("#stack=reno&duration_s=1");
  for (const name of ["weir.qlog", "quinn.sqlog"]) {
    await page.evaluate(() => (document.body.dataset.state = ""));
    await page.locator("#file").setInputFiles(path(name));
    await done(page);
    await expect(page.locator("#status")).toContainText(name);
    await expect(page.locator("#facts")).toContainText(`${lines(name, "recovery:packet_lost").length} lost`);
    const highest = await page.locator('[data-chart="window"]').getAttribute("data-max");
    expect(Number(highest)).toBeGreaterThan(10);
  }
  const bad = { name: "bad.qlog", mimeType: "application/json", buffer: Buffer.from("{}") };
  await page.locator("#file").setInputFiles(bad);
  await expect(page.locator("#error")).toContainText("no traces with events");
});
