// As much of a recording as a chart can show: the rows of a range of time, or bins of them.
import { FlowSamples, Store, type Description } from "./store";

/** Whether charts show bins, with the range of values in each. */
export function isBinned({ is_tabled, is_recorded }: Description): boolean {
  return Boolean(is_tabled || is_recorded);
}

/** The samples of a store from `from` to `to`, in at most `bins` bins or twice as many rows. */
export function thinned(store: Store, from: number, to: number, bins: number): Store {
  const shown = new Store(store.about);
  store.samples.forEach((samples, flow) => fill(shown.samples[flow], samples, from, to, bins));
  return shown;
}

function fill(shown: FlowSamples, samples: FlowSamples, from: number, to: number, bins: number): void {
  const { t } = samples;
  // One more row on each side, so that lines reach the edges.
  const first = Math.max(0, t.firstAbove(from) - 1);
  const last = Math.min(t.length, t.firstAbove(to) + 1);
  const target = shown.columns();
  if (last - first <= 2 * bins || to <= from) {
    samples.columns().forEach((column, index) => {
      target[index].values = column.values.slice(first, Math.min(last, column.length));
      target[index].length = target[index].values.length;
    });
    return;
  }
  const begins = beginsOf(t.values, first, last, from, bins / (to - from));
  [shown.low, shown.high] = [{}, {}];
  const names = Object.keys(samples).filter((name) => samples.columns().includes(samples[name as "t"]));
  names.forEach((name, index) => {
    const { mean, low, high } = reduced(samples[name as "t"].values, begins, last);
    target[index].values = mean;
    target[index].length = mean.length;
    shown.low![name] = low;
    shown.high![name] = high;
  });
}

/** The first row of each bin that has any. */
function beginsOf(times: Float64Array, first: number, last: number, from: number, perSecond: number): number[] {
  const begins: number[] = [];
  let bin = NaN;
  for (let row = first; row < last; row++) {
    const next = Math.floor((times[row] - from) * perSecond);
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
