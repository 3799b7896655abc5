// The ports of a fabric of a data centre: which nodes a link joins, how much of it is used, and what waits for it.
// Samples of links are a millisecond apart or more, and such a run often has only a few: ways of packets over links are
// complete.
import { Fate, type Description, type Store } from "./store";

/** How far above the hosts a node stands, by the letters of its name: `_TIERS` of `python/weir/plots/fabric.py`. */
const TIERS: Record<string, number> = { h: 0, leaf: 1, edge: 1, spine: 2, agg: 2, core: 3 };
const NODE = `(${Object.keys(TIERS).join("|")})(\\d+)`;
const LINK = new RegExp(`^${NODE}-${NODE}$`);
/** The use of a link is that of this part of the run, around the time shown. */
export const WINDOW_SHARE = 0.05;
/** Times of a run at which a chart has the queues. */
const CHART_TIMES = 1_000;

export interface FabricNode {
  name: string;
  /** The name without its number. */
  kind: string;
  number: number;
  tier: number;
}

export interface Fabric {
  /** By tier, and then by number. */
  nodes: FabricNode[];
  /** The nodes from which and to which each link leads, as places in `nodes`. */
  ends: [from: number, to: number][];
  /** The links of each pair of nodes: both directions. */
  pairs: number[][];
}

/** What waits at a port. */
export interface Waiting {
  link: number;
  packets: number;
  bytes: number;
}

const known = new WeakMap<Description, { fabric?: Fabric }>();

/** The fabric that the links make; undefined if the network is another one, or was not simulated here. */
export function fabricOf(about: Description): Fabric | undefined {
  let found = known.get(about);
  if (!found) known.set(about, (found = { fabric: read(about) }));
  return found.fabric;
}

function read({ links, is_recorded, is_tabled }: Description): Fabric | undefined {
  const names = links.map(({ name }) => LINK.exec(name));
  if (is_recorded || is_tabled || names.length === 0 || names.includes(null)) return undefined;
  const found = new Map<string, FabricNode>();
  const add = (kind: string, number: string) => {
    const name = kind + number;
    if (!found.has(name)) found.set(name, { name, kind, number: Number(number), tier: TIERS[kind] });
    return name;
  };
  const joined = names.map((parts) => [add(parts![1], parts![2]), add(parts![3], parts![4])]);
  const nodes = [...found.values()].sort((a, b) => a.tier - b.tier || a.number - b.number);
  const places = new Map(nodes.map(({ name }, place) => [name, place]));
  const pairs = new Map<string, number[]>();
  joined.forEach((ends, link) => {
    const pair = [...ends].sort().join();
    pairs.set(pair, [...(pairs.get(pair) ?? []), link]);
  });
  const ends = joined.map(([from, to]): [number, number] => [places.get(from)!, places.get(to)!]);
  return { nodes, ends, pairs: [...pairs.values()] };
}

/** Whether packets belong to flows of the scenario: those of a workload's many connections do not. */
export function hasFlowPackets({ about, flow }: Store): boolean {
  return flow.values.subarray(0, flow.length).some((number) => number < about.flows.length);
}

/** The times over which the use of links is a mean. */
export function windowAround({ about }: Store, time: number): [from: number, to: number] {
  const half = (WINDOW_SHARE * about.duration_s) / 2;
  return [Math.max(0, time - half), Math.min(about.duration_s, time + half)];
}

/** The used part of a link around a time, in percent: what arrived over it, of what its rate allows. */
export function useOf(store: Store, link: number, time: number): number {
  const [from, to] = windowAround(store, time);
  const { leave, packet, fate } = store.crossings[link];
  const { rate_mbps } = store.about.links[link];
  let bytes = 0;
  for (let row = leave.firstAbove(from); row < leave.length && leave.values[row] <= to; row++) {
    // What the end of the run finds in a link has not arrived.
    const isThere = fate.values[row] < Fate.Dropped && leave.values[row] < store.about.duration_s;
    if (isThere) bytes += store.length.values[packet.values[row]];
  }
  return rate_mbps && to > from ? Math.min(100, (100 * 8 * bytes) / (rate_mbps * 1e6 * (to - from))) : 0;
}

/** What waits at each port at a time; ports where nothing waits are left out. */
export function waitingAt(store: Store, time: number): Waiting[] {
  return store.about.links.flatMap(({ delay_ms }, link) => {
    const crossings = store.crossings[link];
    // Of packets that the end of the run finds in a link it is not known which were on their way.
    const shown = Math.min(time, Math.max(0, store.about.duration_s - (2 * delay_ms) / 1000));
    let [packets, bytes] = [0, 0];
    crossings.at(shown, (row) => {
      if (crossings.start.values[row] <= shown) return;
      packets++;
      bytes += store.length.values[crossings.packet.values[row]];
    });
    return packets > 0 ? [{ link, packets, bytes }] : [];
  });
}

/** The port with the most bytes that wait at a time. */
export function longestAt(store: Store, time: number): Waiting | undefined {
  return waitingAt(store, time).reduce<Waiting | undefined>(
    (most, waiting) => (waiting.bytes > (most?.bytes ?? 0) ? waiting : most), undefined,
  );
}

/** How long what waits takes to leave, in seconds; NaN where the rate is not known. */
export function drainTime({ about }: Store, { link, bytes }: Waiting): number {
  return (8 * bytes) / ((about.links[link].rate_mbps ?? NaN) * 1e6);
}

/** Bytes that wait at each port, at times of equal distance up to where packets are recorded. */
export function queuesOverTime(store: Store): { times: Float64Array; bytes: Float64Array[] } {
  const end = store.about.duration_s;
  const until = Math.min(end, store.recordedUntil);
  const times = Float64Array.from({ length: CHART_TIMES }, (_, at) => (until * at) / CHART_TIMES);
  // The first of the times at which something has happened.
  const after = (time: number) => Math.ceil((time / until) * CHART_TIMES);
  const bytes = store.crossings.map(({ packet, enter, start }) => {
    const queue = new Float64Array(CHART_TIMES);
    for (let row = 0; row < enter.length; row++) {
      const length = store.length.values[packet.values[row]];
      const [from, to] = [after(enter.values[row]), after(start.values[row])];
      if (from < CHART_TIMES) queue[from] += length;
      if (to < CHART_TIMES) queue[to] -= length;
    }
    for (let at = 1; at < CHART_TIMES; at++) queue[at] += queue[at - 1];
    return queue;
  });
  return { times, bytes };
}
