// As much of a recording as a chart can show: the rows of a range of time, or bins of them.
import { Column, firstAbove } from "./columns";
import { FlowSamples, Store, type Description, type Limits } from "./store";

/** Whether charts show bins, with the range of values in each. */
export function isBinned({ is_tabled, is_recorded }: Description): boolean {
  return Boolean(is_tabled || is_recorded);
}

/** Columns in a range of time, by name; `low` and `high` limit each bin, where there are bins. */
export interface Shown {
  times: Float64Array;
  columns: Record<string, Float64Array>;
  low?: Limits;
  high?: Limits;
}

/** The samples of a store from `from` to `to`, as `shown` selects them. */
export function thinned(store: Store, from: number, to: number, bins: number): Store {
  const thin = new Store(store.about);
  store.samples.forEach((samples, flow) => fill(thin.samples[flow], samples, from, to, bins));
  return thin;
}

function fill(target: FlowSamples, samples: FlowSamples, from: number, to: number, bins: number): void {
  const { t } = samples;
  const named = Object.entries(samples).filter(([name, part]) => part instanceof Column && name !== "t");
  const values = Object.fromEntries(named.map(([name, { values, length }]) => [name, values.subarray(0, length)]));
  const { times, columns, low, high } = shown(t.values.subarray(0, t.length), values, from, to, bins);
  for (const [name, found] of Object.entries({ ...columns, t: times })) {
    Object.assign(target[name as "t"], { values: found, length: found.length });
  }
  [target.low, target.high] = [low, high];
}

/**
 * Columns from `from` to `to`, in at most `bins` bins or twice as many rows, and the nearest row on each side, so that
 * lines reach the edges. `times` ascend.
 */
export function shown(
  times: Float64Array, columns: Record<string, Float64Array>, from: number, to: number, bins: number,
): Shown {
  const first = Math.max(0, firstAbove(times, times.length, from) - 1);
  const last = Math.min(times.length, firstAbove(times, times.length, to) + 1);
  const each = (change: (values: Float64Array) => Float64Array) =>
    Object.fromEntries(Object.entries(columns).map(([name, values]) => [name, change(values)]));
  if (last - first <= 2 * bins + 2 || to <= from) {
    return { times: times.slice(first, last), columns: each((values) => values.slice(first, last)) };
  }
  const begins = beginsOf(times, first, last, from, to, bins);
  const [low, high]: Limits[] = [{}, {}];
  const means = Object.entries(columns).map(([name, values]) => {
    const bin = reduced(values, begins, last);
    [low[name], high[name]] = [bin.low, bin.high];
    return [name, bin.mean];
  });
  return { times: reduced(times, begins, last).mean, columns: Object.fromEntries(means), low, high };
}

/** The first row of each bin that has any, and of what is before and after the range. */
function beginsOf(times: Float64Array, first: number, last: number, from: number, to: number, bins: number): number[] {
  const begins: number[] = [];
  const perSecond = bins / (to - from);
  let bin = NaN;
  for (let row = first; row < last; row++) {
    const time = times[row];
    // The end of the range is in its last bin.
    const next = time < from ? -1 : time > to ? bins : Math.min(bins - 1, Math.floor((time - from) * perSecond));
    if (next !== bin) begins.push(row);
    bin = next;
  }
  return begins;
}

/** Mean, smallest and largest value of each bin; NaN where all are unknown. */
function reduced(values: Float64Array, begins: number[], end: number) {
  const [mean, low, high] = [0, 1, 2].map(() => new Float64Array(begins.length).fill(NaN));
  begins.forEach((begin, bin) => {
    let [sum, count, least, most] = [0, 0, Infinity, -Infinity];
    for (let row = begin; row < (begins[bin + 1] ?? end); row++) {
      const value = values[row];
      if (Number.isNaN(value)) continue;
      sum += value;
      count++;
      if (value < least) least = value;
      if (value > most) most = value;
    }
    if (count === 0) return;
    mean[bin] = sum / count;
    low[bin] = least;
    high[bin] = most;
  });
  return { mean, low, high };
}
