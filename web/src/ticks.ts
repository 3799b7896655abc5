// What an axis says at its ticks.

const MOST_DIGITS = 12;

/** Each tick times `factor`, with all digits that their distance needs, so that no two are alike. */
export function labels(ticks: number[], distance: number, factor = 1): string[] {
  const apart = distance * factor;
  const isWhole = (value: number) => Math.abs(value - Math.round(value)) < 1e-6 * value;
  let digits = 0;
  while (digits < MOST_DIGITS && !isWhole(apart * 10 ** digits)) digits++;
  return ticks.map((tick) => (tick * factor || 0).toLocaleString("en", { maximumFractionDigits: digits }));
}
