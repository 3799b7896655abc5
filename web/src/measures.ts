// Numbers of a run: what a tour or a score states is computed from what was recorded.
import type { Column } from "./columns";
import type { Store } from "./store";

/** A value of a run. */
export type Measure = Value | Count;

/** A series at a time, or over a range of time. */
interface Value {
  of: Series;
  /** Number of a flow, or of a link for the queue's series. */
  index?: number;
  at?: number;
  from?: number;
  to?: number;
  /** What is made of a range; `ratio` divides the last value by the first. */
  how?: "mean" | "min" | "max" | "ratio";
}

/** The number of events of a kind. */
interface Count {
  count: "losses" | "marks" | "timeouts";
  from?: number;
  to?: number;
}

export type Series =
  | "cwnd_kb" | "ssthresh_kb" | "in_flight_kb" | "rtt_ms" | "pacing_mbps" | "goodput_mbps" | "goodput_kbps"
  | "share_percent" | "resent_packets"
  | "queue_ms" | "queue_packets";

export function measure(store: Store, wanted: Measure): number {
  const [from, to] = [wanted.from ?? 0, wanted.to ?? store.about.duration_s];
  if ("count" in wanted) return store[wanted.count].filter((at) => at >= from && at <= to).length;
  const { of, index = 0, at } = wanted;
  if (of === "share_percent") return share(store, index, from, to);
  const { times, values, factor } = series(store, of, index);
  if (at !== undefined) return last(times, values, at) * factor;
  if (wanted.how === "ratio") return last(times, values, to) / last(times, values, from);
  const inside = values.values
    .slice(times.firstAbove(from), times.firstAbove(to))
    .filter((value) => !Number.isNaN(value));
  if (inside.length === 0) return NaN;
  if (wanted.how === "min") return factor * inside.reduce((least, value) => Math.min(least, value));
  if (wanted.how === "max") return factor * inside.reduce((most, value) => Math.max(most, value));
  return (factor * inside.reduce((sum, value) => sum + value, 0)) / inside.length;
}

/** The share of a flow in all that was delivered from `from` to `to`, in percent. */
function share(store: Store, flow: number, from: number, to: number): number {
  const rates = store.samples.map((_, index) => measure(store, { of: "goodput_mbps", index, from, to }) || 0);
  return (100 * rates[flow]) / rates.reduce((sum, rate) => sum + rate, 0);
}

function series(store: Store, of: Series, index: number): { times: Floats; values: Floats; factor: number } {
  if (of === "queue_ms" || of === "queue_packets") {
    const queue = store.queues[index];
    return { times: queue.t, values: of === "queue_ms" ? queue.delay : queue.packets, factor: 1 };
  }
  const flow = store.samples[index];
  const columns: Record<string, [Floats, number]> = {
    cwnd_kb: [flow.cwnd, 1e-3],
    ssthresh_kb: [flow.ssthresh, 1e-3],
    in_flight_kb: [flow.inFlight, 1e-3],
    rtt_ms: [flow.rtt, 1],
    pacing_mbps: [flow.pacing, 1],
    goodput_mbps: [flow.goodput, 1],
    goodput_kbps: [flow.goodput, 1e3],
    resent_packets: [flow.resent, 1],
  };
  const [values, factor] = columns[of];
  return { times: flow.t, values, factor };
}

/** The newest value at `time`. */
function last(times: Floats, values: Floats, time: number): number {
  const at = times.firstAbove(time + 1e-9) - 1;
  return at >= 0 ? values.values[at] : NaN;
}

type Floats = Column<Float64Array>;
