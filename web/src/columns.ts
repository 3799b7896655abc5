// Columns of numbers that grow.

type Numbers = Float64Array | Uint32Array | Uint8Array;

/** A typed array with space for more. */
export class Column<T extends Numbers> {
  length = 0;
  constructor(public values: T) {}

  push(value: number): void {
    if (this.length === this.values.length) {
      const grown = new (this.values.constructor as new (size: number) => T)(this.length * 2);
      grown.set(this.values as never);
      this.values = grown;
    }
    this.values[this.length++] = value;
  }

  /** Index of the first value above `limit`, where values ascend. */
  firstAbove(limit: number): number {
    return firstAbove(this.values, this.length, limit);
  }
}

/** Index of the first of `length` ascending values that is above `limit`. */
export function firstAbove(values: Numbers, length: number, limit: number): number {
  return firstWhere(length, (at) => values[at] > limit);
}

/** The first of `length` indices for which `holds`, as it does for all after it; `length` if there is none. */
export function firstWhere(length: number, holds: (at: number) => boolean): number {
  let [low, high] = [0, length];
  while (low < high) {
    const middle = (low + high) >> 1;
    if (holds(middle)) high = middle;
    else low = middle + 1;
  }
  return low;
}

export const floats = () => new Column(new Float64Array(1024));
export const integers = () => new Column(new Uint32Array(1024));
export const bytes = () => new Column(new Uint8Array(1024));
