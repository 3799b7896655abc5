// qlog: what another stack recorded of its connection, as what this page records of a run.
//
// Sources: draft-ietf-quic-qlog-main-schema (files, times), draft-ietf-quic-qlog-quic-events (events). Names with and
// without a namespace are read, and events as arrays of qlog 0.2 and earlier. mvfst writes such arrays (its draft-00),
// with events of its own: `QLoggerTypes.cpp` has their fields.
import { Fate, Kind, Store } from "./store";

type Data = Record<string, any>;

interface Event {
  /** In ms. */
  time: number;
  name: string;
  data: Data;
}

interface Log {
  events: Event[];
  /** What times of events were multiplied by to be in ms. */
  timeScale: number;
}

/** Reads a file: JSON, or a sequence of JSON texts. Throws the message of what is wrong with it. */
export function readQlog(name: string, text: string): Store {
  const isSequence = text.startsWith("\x1e") || /^\s*\{[^\n]*"(JSON-SEQ|NDJSON)"/.test(text);
  const log = isSequence ? sequence(text) : contained(text);
  if (log.events.length === 0) throw new Error(`${name}: this qlog has no events`);
  log.events.sort((a, b) => a.time - b.time);
  return new Connection(name, log).store;
}

/** One JSON text per line, with or without a record separator (RFC 7464). The last may be cut off. */
function sequence(text: string): Log {
  const events: Event[] = [];
  const clock = new Clock({});
  for (let from = 0; from < text.length; ) {
    const end = text.indexOf("\n", from);
    const line = text.slice(from, end < 0 ? text.length : end).replace("\x1e", "");
    from = end < 0 ? text.length : end + 1;
    if (line.trim() === "") continue;
    let record: Data;
    try {
      record = JSON.parse(line) as Data;
    } catch {
      if (end < 0) break;
      throw new Error(`line ${events.length + 2} of this qlog is not JSON: ${line.slice(0, 60)}`);
    }
    if (record.name === undefined) clock.set(record.trace ?? {});
    else events.push({ time: clock.at(record.time), name: record.name, data: record.data ?? {} });
  }
  return { events, timeScale: clock.scale };
}

/** One document, whose first trace is shown. */
function contained(text: string): Log {
  let log: Data;
  try {
    log = JSON.parse(text) as Data;
  } catch (problem) {
    throw new Error(`this qlog is not JSON: ${(problem as Error).message}`);
  }
  const trace = (log.traces ?? [log.trace])[0] as Data | undefined;
  if (!Array.isArray(trace?.events)) throw new Error("this JSON file has no traces with events, so it is no qlog");
  const clock = new Clock(trace);
  const fields = trace.event_fields as string[] | undefined;
  const events = trace.events.map((event: Data) => {
    if (!fields || !Array.isArray(event)) return { time: clock.at(event.time), name: event.name, data: event.data ?? {} };
    const part = (...names: string[]) => event[fields.findIndex((field) => names.includes(field))];
    const name = `${part("category", "CATEGORY")}:${part("event", "event_type", "EVENT_TYPE")}`;
    return { time: clock.at(part("relative_time", "time", "delta_time")), name, data: part("data", "DATA") ?? {} };
  });
  return { events, timeScale: clock.scale };
}

/** Times as milliseconds: of a trace in ms or µs, absolute or since the event before. */
class Clock {
  scale = 1;
  private isDelta = false;
  private now = 0;

  constructor(trace: Data) {
    this.set(trace);
  }

  set(trace: Data): void {
    const units = trace.configuration?.time_units ?? "ms";
    const format = String(trace.common_fields?.time_format ?? "");
    const fields = (trace.event_fields ?? []) as string[];
    this.scale = units === "us" ? 1e-3 : 1;
    this.isDelta = /delta|previous/.test(format) || fields.includes("delta_time");
  }

  at(time: unknown): number {
    const value = Number(time) * this.scale;
    if (Number.isNaN(value)) throw new Error(`an event of this qlog has the time '${String(time)}', which is no number`);
    this.now = this.isDelta ? this.now + value : value;
    return this.now;
  }
}

/** The connection of the events: the end that sends most of the data. */
class Connection {
  readonly store: Store;
  private readonly begin: number;
  private readonly packets = new Map<string, number>();
  /** The ranges of the newest acknowledgement, by packet number space. */
  private readonly ranges = new Map<string, number[][]>();
  /** Bytes in the order of sending, for a log without the offsets of streams. */
  private sum = 0;
  private highest = 0;
  private acked = 0;
  /** The length of the longest packet sent. */
  private longest = 0;
  /** The newest values, which an event changes in part. */
  private readonly state = { cwnd: NaN, ssthresh: NaN, inFlight: NaN, srtt: NaN, rtt: NaN, pacing: NaN };
  private readonly hasOffsets: boolean;
  private readonly isReceiver: boolean;
  /** What round-trip times and other spans of time are multiplied by to be in ms. */
  private readonly rttScale: number;
  private readonly timeScale: number;
  private readonly delivered: { time: number; bytes: number }[] = [];
  private window = 0;
  private oldest = 0;
  /** Up to when the last sample is replaced. */
  private sampled = -Infinity;

  constructor(name: string, { events, timeScale }: Log) {
    this.begin = events[0].time;
    const duration_s = Math.max(1e-3, (events.at(-1)!.time - this.begin) / 1000);
    const volume = (kind: string) =>
      events.reduce((sum, { name: of, data }) => (short(of) === kind ? sum + lengthOf(data) : sum), 0);
    this.isReceiver = volume("packet_received") > volume("packet_sent");
    this.hasOffsets = events.some(({ name: of, data }) => short(of) === this.dataEvent && streamOf(data));
    // quinn writes seconds. Its first value is the initial RTT of 333 ms (RFC 9002 §6.2.2).
    const first = events.find(({ data }) => data.smoothed_rtt !== undefined)?.data.smoothed_rtt;
    this.rttScale = first === 0.333 ? 1000 : timeScale;
    this.timeScale = timeScale;
    const flow = { name: "sender", stack: "qlog", start_s: 0, forward: [], reverse: [] };
    this.store = new Store({ name, duration_s, radio: null, is_recorded: true, links: [], flows: [flow] });
    for (const event of events) this.add((event.time - this.begin) / 1000, short(event.name), event.data);
    this.store.simulated = duration_s;
  }

  private get dataEvent(): string {
    return this.isReceiver ? "packet_received" : "packet_sent";
  }

  private add(t: number, name: string, data: Data): void {
    if (name === this.dataEvent) this.addData(t, data);
    else if (name === "packet_sent" || name === "packet_received") this.addAcks(t, data);
    else if (name === "packet_lost") this.addLosses(t, 1, numberOf(data));
    else if (name === "packets_lost") this.addLosses(t, data.lost_packets, `data:${data.largest_lost_packet_num}`);
    else if (name === "pacing_metric_update") this.addPacing(t, data);
    else if (/^(recovery_)?metrics?_updated?$|^congestion_metric_update$/.test(name)) this.addMetrics(t, data);
  }

  private addData(t: number, data: Data): void {
    const stream = streamOf(data);
    const length = lengthOf(data);
    const payload = this.hasOffsets ? Number(stream?.length ?? 0) : length;
    const offset = this.hasOffsets ? Number(stream?.offset ?? this.highest) : this.sum;
    const isAgain = this.hasOffsets && payload > 0 && offset < this.highest;
    const kind = payload === 0 ? Kind.Handshake : isAgain ? Kind.Fast : Kind.New;
    const packet = this.store.sent.length;
    this.store.addPackets(Float64Array.of(0, 0, kind, offset, payload, length, t));
    this.packets.set(numberOf(data), packet);
    this.sum += length;
    this.longest = Math.max(this.longest, length);
    this.highest = Math.max(this.highest, offset + payload);
    if (!this.hasOffsets || this.isReceiver) this.deliver(t, payload);
  }

  private addAcks(t: number, data: Data): void {
    let newly = 0;
    const space = spaceOf(data);
    for (const { frame_type, acked_ranges } of (data.frames ?? []) as Data[]) {
      if (frame_type !== "ack") continue;
      const before = this.ranges.get(space) ?? [];
      const ranges = ((acked_ranges ?? []) as number[][]).map(([low, high = low]) => [low, high]);
      this.ranges.set(space, ranges);
      // A range repeats what the frame before acknowledged, which may be very long.
      for (const [low, high] of ranges) {
        for (let number = high; number >= low; number--) {
          const known = before.find(([from, to]) => from <= number && number <= to);
          if (known) number = known[0];
          else newly += this.acknowledge(t, `${space}:${number}`);
        }
      }
    }
    if (newly === 0) return;
    const packet = this.store.sent.length;
    this.store.addPackets(Float64Array.of(0, 1, Kind.Ack, this.acked, 0, lengthOf(data), t));
    this.store.ended.values[packet] = t;
    if (this.hasOffsets && !this.isReceiver) this.deliver(t, newly);
  }

  /** Returns the bytes that are acknowledged for the first time. */
  private acknowledge(t: number, key: string): number {
    const { ended, offset, payload } = this.store;
    const packet = this.packets.get(key);
    if (packet === undefined || !Number.isNaN(ended.values[packet])) return 0;
    ended.values[packet] = t;
    this.acked = Math.max(this.acked, offset.values[packet] + payload.values[packet]);
    return payload.values[packet];
  }

  /** Packets that are declared lost, of which a log may name one. */
  private addLosses(t: number, count: unknown, key: string): void {
    const packet = this.packets.get(key);
    for (let lost = Math.min(Number(count), this.store.sent.length); lost > 0; lost--) this.store.losses.push(t);
    if (packet === undefined) return;
    this.store.fate.values[packet] = Fate.Lost;
    this.store.ended.values[packet] = t;
  }

  private addMetrics(t: number, data: Data): void {
    const { state } = this;
    const take = (key: keyof typeof state, ...names: string[]) => {
      const found = names.map((name) => data[name]).find((value) => value !== undefined);
      // Some stacks write the largest integer for «no threshold yet».
      if (found !== undefined) state[key] = Number(found) < 1e15 ? Number(found) : NaN;
    };
    take("cwnd", "congestion_window", "cwnd", "current_cwnd");
    take("ssthresh", "ssthresh");
    take("inFlight", "bytes_in_flight");
    take("srtt", "smoothed_rtt");
    take("rtt", "latest_rtt");
    if (data.smoothed_rtt !== undefined) state.srtt *= this.rttScale;
    if (data.latest_rtt !== undefined) state.rtt *= this.rttScale;
    take("pacing", "pacing_rate");
    this.sample(t);
  }

  /** mvfst's pacing: a number of packets per interval. */
  private addPacing(t: number, { pacing_burst_size, pacing_interval }: Data): void {
    const seconds = (Number(pacing_interval) * this.timeScale) / 1000;
    this.state.pacing = seconds > 0 ? (8 * Number(pacing_burst_size) * this.longest) / seconds : NaN;
    this.sample(t);
  }

  /** A second's worth of delivered bytes is the rate at its end. */
  private deliver(t: number, bytes: number): void {
    this.delivered.push({ time: t, bytes });
    this.window += bytes;
    this.sample(t);
  }

  private sample(t: number): void {
    // Samples that look the same in a chart are one: the newest values count.
    if (t - this.sampled > this.store.about.duration_s / SAMPLES) this.sampled = t;
    else for (const column of this.store.samples[0].columns()) column.length--;
    while (this.oldest < this.delivered.length && this.delivered[this.oldest].time <= t - 1) {
      this.window -= this.delivered[this.oldest++].bytes;
    }
    const { cwnd, ssthresh, inFlight, srtt, rtt, pacing } = this.state;
    const span = Math.min(1, Math.max(t, 0.05));
    const rate = (this.window * 8e-6) / span;
    this.store.addSamples(Float64Array.of(0, t, cwnd, ssthresh, inFlight, srtt, rtt, pacing / 1e6, rate, 0, 0, 0));
  }
}

/** Of a log, at most: a chart has some thousand pixels, and a reader zooms. */
const SAMPLES = 50_000;

/** `recovery:metrics_updated` and `quic:recovery_metrics_updated` without their namespace. */
function short(name: string): string {
  return name.slice(name.lastIndexOf(":") + 1);
}

function streamOf(data: Data): Data | undefined {
  return ((data.frames ?? []) as Data[]).find(({ frame_type, length }) => frame_type === "stream" && length > 0);
}

function lengthOf(data: Data): number {
  return Number(data.raw?.length ?? data.header?.length ?? data.header?.packet_size ?? data.packet_size ?? 0);
}

/** Handshake packets are numbered for themselves (RFC 9000 §12.3). */
function spaceOf(data: Data): string {
  const type = String(data.header?.packet_type ?? data.packet_type ?? "1RTT").toLowerCase();
  return type === "initial" || type === "handshake" ? type : "data";
}

function numberOf(data: Data): string {
  return `${spaceOf(data)}:${data.header?.packet_number ?? data.packet_number}`;
}
