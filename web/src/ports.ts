// The ports of a fabric of a data centre: which nodes a link joins, how much of it is used, and what waits for it.
// Use comes from samples of links, which a run has up to its end. What waits comes from the ways of packets over links,
// which have every moment, and after the last one that is recorded from samples too.
import { rateAt, type Description, type Store } from "./store";

/** How far above the hosts a node stands, by the letters of its name: `_TIERS` of `python/weir/plots/fabric.py`. */
const TIERS: Record<string, number> = { h: 0, leaf: 1, edge: 1, spine: 2, agg: 2, core: 3 };
const NODE = `(${Object.keys(TIERS).join("|")})(\\d+)`;
const LINK = new RegExp(`^${NODE}-${NODE}$`);
/** The use of a link is that of this part of the run, around the time shown. */
export const WINDOW_SHARE = 0.05;

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

/** What waits at a port; in a sample with the packet that is being sent. */
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

/** The used part of a link around a time, in percent of what its rate allows then: the mean of its samples. */
export function useOf(store: Store, link: number, time: number): number {
  const [from, to] = windowAround(store, time);
  const { t, use } = store.queues[link];
  let [sum, count] = [0, 0];
  for (let at = t.firstAbove(from); at < t.length && t.values[at] <= to; at++) {
    // Where a rate of zero allows nothing, nothing is used.
    if (!Number.isNaN(use.values[at])) [sum, count] = [sum + use.values[at], count + 1];
  }
  return count > 0 ? Math.min(100, (100 * sum) / count) : 0;
}

/** What waits at each port where anything does. */
export function waitingAt(store: Store, time: number): Waiting[] {
  return time > store.recordedUntil ? sampledAt(store, time) : recordedAt(store, time);
}

function recordedAt(store: Store, time: number): Waiting[] {
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

function sampledAt(store: Store, time: number): Waiting[] {
  return store.queues.flatMap(({ t, packets, bytes }, link) => {
    const at = t.firstAbove(time) - 1;
    // One packet alone does not wait: it is being sent.
    return at >= 0 && packets.values[at] > 1 ? [{ link, packets: packets.values[at], bytes: bytes.values[at] }] : [];
  });
}

/** The port with the most bytes that wait at a time. */
export function longestAt(store: Store, time: number): Waiting | undefined {
  return waitingAt(store, time).reduce<Waiting | undefined>(
    (most, waiting) => (waiting.bytes > (most?.bytes ?? 0) ? waiting : most), undefined,
  );
}

/** How long what waits takes to leave at the rate of that time, in seconds; NaN where there is none. */
export function drainTime({ about }: Store, { link, bytes }: Waiting, time: number): number {
  return (8 * bytes) / ((rateAt(about.links[link], time) || NaN) * 1e6);
}
