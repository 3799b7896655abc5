// What a run has recorded so far. The numbers are those of `crates/web/src/rows.rs`.
import type { Lab } from "../core/weir_web.js";
import { bytes, Column, floats, integers } from "./columns";
import { Frames, type RadioInfo } from "./frames";

/** Why a packet was sent: `PacketKind` of the Rust code. */
export const Kind = {
  New: 0, Fast: 1, Timeout: 2, Probe: 3, Route: 4, Ack: 5, Handshake: 6, Datagram: 7, Duplicate: 8,
} as const;

/** What a link did to a packet: `Fate` of the Rust code. From `Dropped` on it was dropped. `Lost`: a qlog says so. */
export const Fate = { Delivered: 0, Marked: 1, Damaged: 2, Dropped: 10, Lost: 20 } as const;

/** Whether its receiver does not get it: dropped, or damaged, which its checksum detects. */
export function isLost(fate: number): boolean {
  return fate >= Fate.Dropped || fate === Fate.Damaged;
}

export interface LinkInfo {
  name: string;
  is_monitored: boolean;
  /** The rate at the beginning. */
  rate_mbps: number | null;
  /** Times in s and the rates from then on. */
  rate_steps?: [t_s: number, rate_mbps: number][];
  delay_ms: number;
  limit_packets: number | null;
  limit_bytes: number | null;
}

/** The rate of a link in Mbit/s at a time; null where it is not known. */
export function rateAt({ rate_mbps, rate_steps }: LinkInfo, time: number): number | null {
  return rate_steps?.findLast(([from]) => from <= time)?.[1] ?? rate_mbps;
}

export interface FlowInfo {
  name: string;
  stack: string;
  start_s: number;
  forward: number[];
  reverse: number[];
}

export interface Description {
  name: string;
  duration_s: number;
  /** The nodes, where packets cross no links. */
  radio: RadioInfo | null;
  /** Read from a qlog, not simulated: there is no network, and rates are means over a second. */
  is_recorded?: boolean;
  /** Read from result tables: values are those of a range of time, and there are no packets. */
  is_tabled?: boolean;
  links: LinkInfo[];
  flows: FlowInfo[];
}

interface RunEvent {
  t_s: number;
  flow: number | null;
  kind: string;
  detail: string;
}

/** Ways over one link, in the order of leaving. */
class Crossings {
  readonly packet = integers();
  readonly enter = floats();
  readonly start = floats();
  readonly leave = floats();
  readonly fate = bytes();
  /** The longest time between entering and leaving. */
  longest = 0;

  add(packet: number, enter: number, start: number, leave: number, fate: number): void {
    this.packet.push(packet);
    this.enter.push(enter);
    this.start.push(start);
    this.leave.push(leave);
    this.fate.push(fate);
    this.longest = Math.max(this.longest, leave - enter);
    // A drop may be reported after a later packet has left.
    for (let at = this.leave.length - 1; at > 0 && this.leave.values[at - 1] > leave; at--) {
      for (const column of [this.packet, this.enter, this.start, this.leave, this.fate]) {
        const { values } = column;
        [values[at - 1], values[at]] = [values[at], values[at - 1]];
      }
    }
  }

  /** Calls `visit` for each packet that is in the link at `time`. */
  at(time: number, visit: (row: number) => void): void {
    for (let row = this.leave.firstAbove(time); row < this.leave.length; row++) {
      if (this.leave.values[row] - this.longest > time) return;
      if (this.enter.values[row] <= time) visit(row);
    }
  }
}

/** By the name of a column: its smallest or largest value in each bin, where samples are bins. */
export type Limits = Record<string, Float64Array>;

/** Samples of one flow. */
export class FlowSamples {
  readonly t = floats();
  readonly cwnd = floats();
  readonly ssthresh = floats();
  readonly inFlight = floats();
  readonly srtt = floats();
  readonly rtt = floats();
  readonly pacing = floats();
  readonly goodput = floats();
  readonly resent = floats();
  readonly acked = floats();
  readonly phase = floats();
  /** Values per acknowledgement, if they were recorded. */
  fine?: FlowSamples;
  low?: Limits;
  high?: Limits;

  columns(): Column<Float64Array>[] {
    return Object.values(this).filter((part) => part instanceof Column);
  }
}

/** Samples of one link. */
export class QueueSamples {
  readonly t = floats();
  readonly packets = floats();
  readonly bytes = floats();
  readonly delay = floats();
  /** Of what the rate allows since the sample before; NaN if that is nothing. */
  readonly use = floats();
  low?: Limits;
  high?: Limits;
}

/** The columns of a store, to pass between threads. */
export interface Columns {
  about: Description;
  values: (Float64Array | Uint32Array | Uint8Array)[];
  losses: number[];
}

export class Store {
  // Packets, by number: the order of sending. Flows of a workload of many connections have numbers above a byte.
  readonly flow = integers();
  readonly direction = bytes();
  readonly kind = bytes();
  readonly offset = floats();
  readonly payload = integers();
  readonly length = integers();
  readonly sent = floats();
  /** When the packet arrived or was dropped; NaN before. */
  readonly ended = floats();
  readonly fate = bytes();
  readonly crossings: Crossings[];
  readonly samples: FlowSamples[];
  readonly queues: QueueSamples[];
  /** Of a radio network. */
  readonly frames?: Frames;
  readonly events: RunEvent[] = [];
  /** SACK blocks by the packet that carries them: pairs of offsets. */
  readonly sacks = new Map<number, number[]>();
  readonly losses: number[] = [];
  readonly marks: number[] = [];
  readonly timeouts: number[] = [];
  phases: string[] = [];
  /** Up to where the run has got, in seconds. */
  simulated = 0;
  /** Up to where packets or frames are recorded, in seconds: of a long run only the first ones are. Samples go on. */
  recordedUntil = Infinity;

  constructor(readonly about: Description) {
    this.crossings = about.links.map(() => new Crossings());
    this.samples = about.flows.map(() => new FlowSamples());
    this.queues = about.links.map(() => new QueueSamples());
    this.frames = about.radio ? new Frames(about.radio) : undefined;
  }

  /** Takes over the columns of another thread. */
  static of(columns: Columns): Store {
    const store = new Store(columns.about);
    const own = store.listed();
    columns.values.forEach((values, index) => {
      own[index].values = values as never;
      own[index].length = values.length;
    });
    store.losses.push(...columns.losses);
    store.simulated = columns.about.duration_s;
    return store;
  }

  /** What another thread needs to make the same store: packets, samples of flows, losses. */
  columns(): Columns {
    const values = this.listed().map((column) => column.values.slice(0, column.length));
    return { about: this.about, values, losses: this.losses };
  }

  private listed() {
    const flows = this.samples.flatMap((flow) => flow.columns());
    const { flow, direction, kind, offset, payload, length, sent, ended, fate } = this;
    return [flow, direction, kind, offset, payload, length, sent, ended, fate, ...flows];
  }

  addPackets(rows: Float64Array): void {
    for (let at = 0; at < rows.length; at += 7) {
      this.flow.push(rows[at]);
      this.direction.push(rows[at + 1]);
      this.kind.push(rows[at + 2]);
      this.offset.push(rows[at + 3]);
      this.payload.push(rows[at + 4]);
      this.length.push(rows[at + 5]);
      this.sent.push(rows[at + 6]);
      this.ended.push(NaN);
      this.fate.push(Fate.Delivered);
    }
  }

  addCrossings(rows: Float64Array): void {
    const end = this.about.duration_s;
    for (let at = 0; at < rows.length; at += 6) {
      const [link, packet, enter, start, leave, fate] = rows.subarray(at, at + 6);
      // What the end of the run finds in a link never leaves it.
      this.crossings[link].add(packet, enter, Math.min(start, end), Math.min(leave, end), fate);
      if (leave <= end) this.noteEnd(link, packet, leave, fate);
    }
  }

  addSacks(rows: Float64Array): void {
    for (let at = 0; at < rows.length; at += 3) {
      const blocks = this.sacks.get(rows[at]) ?? [];
      blocks.push(rows[at + 1], rows[at + 2]);
      this.sacks.set(rows[at], blocks);
    }
  }

  addSamples(rows: Float64Array): void {
    for (let at = 0; at < rows.length; at += 12) {
      const flow = this.samples[rows[at]];
      flow?.t.push(rows[at + 1]);
      flow?.cwnd.push(rows[at + 2]);
      flow?.ssthresh.push(rows[at + 3]);
      flow?.inFlight.push(rows[at + 4]);
      flow?.srtt.push(rows[at + 5]);
      flow?.rtt.push(rows[at + 6]);
      flow?.pacing.push(rows[at + 7]);
      flow?.goodput.push(rows[at + 8]);
      flow?.resent.push(rows[at + 9]);
      flow?.acked.push(rows[at + 10]);
      flow?.phase.push(rows[at + 11]);
    }
  }

  addQueues(rows: Float64Array): void {
    for (let at = 0; at < rows.length; at += 8) {
      const link = this.queues[rows[at]];
      link.t.push(rows[at + 1]);
      link.packets.push(rows[at + 2]);
      link.bytes.push(rows[at + 3]);
      link.delay.push(rows[at + 4]);
      link.use.push(rows[at + 7]);
    }
  }

  addEvents(events: RunEvent[]): void {
    this.events.push(...events);
    const times = (kind: string) => events.filter((event) => event.kind === kind).map(({ t_s }) => t_s);
    this.timeouts.push(...times("timeout"));
    this.losses.push(...times("dropped"));
  }

  /** The next time in `times`, which ascend, after `time`. */
  static next(times: number[], time: number): number | undefined {
    return times.find((at) => at > time + 1e-9);
  }

  /** When something next enters or leaves a link or the air; with `back`, when something last did. */
  neighbour(time: number, back = false): number | undefined {
    if (this.frames) return this.frames.neighbour(time, back);
    const columns = [this.sent, ...this.crossings.map((crossings) => crossings.leave)];
    const found = columns.flatMap((column) => {
      const limit = back ? time - 1e-9 : time + 1e-9;
      const at = column.firstAbove(limit) - (back ? 1 : 0);
      return at >= 0 && at < column.length ? [column.values[at]] : [];
    });
    if (found.length === 0) return undefined;
    return back ? Math.max(...found) : Math.min(...found);
  }

  /** The last sample of a flow at or before `time`. */
  sampleAt(flow: number, time: number): number | undefined {
    const at = this.samples[flow].t.firstAbove(time) - 1;
    return at >= 0 ? at : undefined;
  }

  private noteEnd(link: number, packet: number, time: number, fate: number): void {
    if (packet >= this.fate.length) return;
    if (isLost(fate)) this.losses.push(time);
    else if (fate === Fate.Marked) this.marks.push(time);
    // A damaged packet goes on, and may be marked later.
    if (fate !== Fate.Delivered && !isLost(this.fate.values[packet])) this.fate.values[packet] = fate;
    const flow = this.about.flows[this.flow.values[packet]];
    const route = this.direction.values[packet] === 0 ? flow?.forward : flow?.reverse;
    if (fate >= Fate.Dropped || route?.at(-1) === link) this.ended.values[packet] = time;
  }
}

/** Moves what the simulator has recorded since the last call. */
export function takeRows(lab: Lab, store: Store): void {
  store.addPackets(lab.take_packets());
  store.addCrossings(lab.take_crossings());
  store.addSacks(lab.take_sacks());
  store.frames?.add(lab.take_frames());
  store.addSamples(lab.take_samples());
  store.addQueues(lab.take_queues());
  store.addEvents(JSON.parse(lab.take_events()) as RunEvent[]);
  store.phases = JSON.parse(lab.phases()) as string[];
  store.simulated = lab.now();
  store.recordedUntil = lab.recorded_until();
}
