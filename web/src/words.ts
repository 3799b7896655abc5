// Numbers in words.

/** A time in a unit of its own size. */
export function timeInWords(seconds: number): string {
  if (seconds >= 1 || seconds === 0) return `${short(seconds)} s`;
  return seconds >= 1e-3 ? `${short(seconds * 1e3)} ms` : `${short(seconds * 1e6)} µs`;
}

/** At most three digits that count. */
export function short(value: number): string {
  return String(Number(value.toPrecision(3)));
}
