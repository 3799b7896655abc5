// The lines of each chart: which values of a run, in which unit and colour.
import { SHORT_S } from "./player";
import type { FlowInfo, FlowSamples, QueueSamples, Store } from "./store";
import { PALETTE, theme } from "./theme";
import { isBinned } from "./thin";

/** A line of a chart: its values at the times of flow or link `index`. */
export interface Line {
  label: string;
  colour: string;
  dash?: number[];
  width?: number;
  times: Float64Array;
  values: ArrayLike<number | null>;
  fill?: string;
  /** The scale need not contain all of it. */
  isCut?: boolean;
  /** Smallest and largest values, where a value is the mean of a bin. */
  low?: ArrayLike<number | null>;
  high?: ArrayLike<number | null>;
}

/** Nodes of a radio network whose own queues are drawn. */
const MOST_SENDERS = 4;
/** Of the height of a phase, what lies between two of its lines, and all of them at most: a line is near its phase's name. */
const PHASE_STEP = 0.12;
const PHASE_SPREAD = 0.4;
/** Links whose queues are drawn: of more than these, the ones with the longest queues. */
const MOST_QUEUES = PALETTE.length;
/** The rates of a short run are means over this part of it. */
const SHORT_SHARE = 0.05;
/** Of the first three links, the next three, and so on. */
const LINK_DASHES = [undefined, [6, 4], [1, 3]];

/** Datagrams have no window and no acknowledgements. */
function hasWindow({ stack }: FlowInfo): boolean {
  return stack !== "udp";
}

export function windows(store: Store, colours: string[]): Line[] {
  return store.about.flows.flatMap((info, flow) => {
    if (!hasWindow(info)) return [];
    const { name } = info;
    const samples = store.samples[flow];
    const { fine = samples } = samples;
    const colour = colours[flow];
    return [
      { label: `${name} cwnd`, colour, ...over(fine, "cwnd", 1e-3) },
      { label: `${name} ssthresh`, colour, dash: [6, 4], width: 1, ...over(fine, "ssthresh", 1e-3) },
      { label: `${name} in flight`, colour, dash: [1, 3], width: 1, ...over(samples, "inFlight", 1e-3) },
    ];
  });
}

export function roundTrips(store: Store, colours: string[]): Line[] {
  return store.about.flows.flatMap((info, flow) => {
    if (!hasWindow(info)) return [];
    const { name } = info;
    const samples = store.samples[flow];
    const colour = colours[flow];
    return [
      { label: `${name} newest`, colour, width: 0.7, ...over(samples, "rtt", 1) },
      { label: `${name} smoothed`, colour, ...over(samples.fine ?? samples, "srtt", 1) },
    ];
  });
}

/** What the chart of queues shows: of many ports, some. */
export function queueTitle({ about }: Store): string {
  const ports = about.links.filter((link) => link.is_monitored).length;
  return ports > MOST_QUEUES ? `Queue: the ${MOST_QUEUES} of ${ports} ports with the highest peaks` : "Queue";
}

export function queues(store: Store): Line[] {
  const { links } = store.about;
  const shown = links.flatMap((link, index) => (link.is_monitored ? [index] : []));
  const lines = shown.map((link) => ({ label: links[link].name, ...over(store.queues[link], "bytes", 1e-3) }));
  if (lines.length > MOST_QUEUES) {
    const longest = new Map(lines.map((line) => [line, line.values.reduce((most: number, value) => Math.max(most, value ?? 0), 0)]));
    const first = lines.sort((a, b) => longest.get(b)! - longest.get(a)!).slice(0, MOST_QUEUES);
    return first.map((line, at) => ({ ...line, colour: PALETTE[at] }));
  }
  const { ink, soft, warn } = theme();
  return lines.map((line, at) => {
    const colour = [ink, soft, warn][at % 3];
    return { ...line, colour, dash: LINK_DASHES[Math.floor(at / 3) % LINK_DASHES.length] };
  });
}

/** When each of their frames ended: packets at the senders of flows, and at the node of the others that has the most. */
export function waiting({ frames, about }: Store): Line[] {
  if (!frames) return [];
  const senders = [...new Set(about.radio!.ends.map(([from]) => from))].slice(0, MOST_SENDERS);
  const lines = senders.map((node, at) => {
    const pick = (values: ArrayLike<number>) => Float64Array.from(frames.own[node], (row) => values[row]);
    return { label: `node ${node}`, colour: PALETTE[at], times: pick(frames.end.values), values: pick(frames.waiting.values) };
  });
  const values = frames.longestQueue(senders);
  const times = frames.end.values.slice(0, frames.length);
  return [...lines, { label: "longest of the others", colour: theme().soft, width: 1, times, values }];
}

export function rates(store: Store, colours: string[]): Line[] {
  return store.about.flows.flatMap(({ name }, flow) => {
    const samples = store.samples[flow];
    const goodput = over(samples, "goodput", 1);
    const colour = colours[flow];
    return [
      { label: `${name} goodput`, colour, ...goodput, values: rateOf(store, goodput.times, samples.goodput.values) },
      { label: `${name} pacing`, colour, dash: [6, 4], width: 1, isCut: true, ...over(samples, "pacing", 1) },
    ];
  });
}

/** The number of each phase; flows in one phase are drawn below each other. */
export function phases(store: Store, colours: string[]): Line[] {
  const { flows } = store.about;
  const spread = Math.min(PHASE_SPREAD, PHASE_STEP * (flows.length - 1));
  return flows.flatMap((info, flow) => {
    if (!hasWindow(info)) return [];
    const line = over(store.samples[flow], "phase", 1);
    const shift = flows.length > 1 ? spread * (0.5 - flow / (flows.length - 1)) : 0;
    return { label: info.name, colour: colours[flow], ...line, values: Array.from(line.values, (value) => (value ?? NaN) + shift) };
  });
}

export function acknowledged(store: Store, colours: string[]): Line[] {
  return store.about.flows.map(({ name }, flow) => {
    const samples = store.samples[flow];
    return { label: name, colour: colours[flow], ...over(samples.fine ?? samples, "acked", 1e-6) };
  });
}

/** Stacked from below: the line of a flow is the sum of the shares up to its own. */
export function shares(store: Store, colours: string[]): Line[] {
  const flows = store.samples.map(({ t, goodput }) => {
    const times = t.values.slice(0, t.length);
    return { times, values: rateOf(store, times, goodput.values) };
  });
  const at = flows.map(() => 0);
  const all = [...new Set(flows.flatMap(({ times }) => [...times]))].sort((a, b) => a - b);
  const sums = flows.map(() => [] as (number | null)[]);
  for (const time of all) {
    const now = flows.map(({ times, values }, flow) => {
      while (at[flow] < times.length && times[at[flow]] < time) at[flow]++;
      return times[at[flow]] === time ? values[at[flow]] : 0;
    });
    const total = now.reduce((sum, value) => sum + value, 0);
    let sum = 0;
    now.forEach((value, flow) => {
      sum += value;
      sums[flow].push(total > 0 ? (100 * sum) / total : null);
    });
  }
  const times = Float64Array.from(all);
  // The widest area first, so that the others are drawn on top of it.
  return store.about.flows
    .map(({ name }, flow) => ({
      label: name, colour: colours[flow], fill: colours[flow], times, values: sums[flow], width: 0,
    }))
    .reverse();
}

/** Goodput over a second, of a short run over a part of it: a recorded one is that already. One of tables is a mean over each bin. */
function rateOf({ about }: Store, times: Float64Array, values: Float64Array): Float64Array {
  if (isBinned(about)) return values.slice(0, times.length);
  return smoothed(times, values, about.duration_s < SHORT_S ? SHORT_SHARE * about.duration_s : 1);
}

/** The mean over the last `window` seconds. */
function smoothed(times: Float64Array, values: Float64Array, window: number): Float64Array {
  const result = new Float64Array(times.length);
  let [from, sum] = [0, 0];
  for (let at = 0; at < times.length; at++) {
    sum += values[at];
    while (times[at] - times[from] >= window) sum -= values[from++];
    result[at] = Math.max(0, sum / (at - from + 1));
  }
  return result;
}

/** A column over time, in another unit. */
function over<T extends FlowSamples | QueueSamples>(samples: T, name: keyof T & string, factor: number) {
  const { t, low, high } = samples;
  const limit = (values?: Float64Array) => values && scaled({ values, length: values.length }, factor);
  return {
    times: t.values.slice(0, t.length),
    values: scaled(samples[name] as { values: Float64Array; length: number }, factor),
    low: limit(low?.[name]),
    high: limit(high?.[name]),
  };
}

/** Values in another unit; what is unknown is a gap. */
function scaled(column: { values: Float64Array; length: number }, factor: number): (number | null)[] {
  const { values, length } = column;
  return Array.from({ length }, (_, at) => (Number.isNaN(values[at]) ? null : values[at] * factor));
}
