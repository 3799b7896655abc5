// The frames of a radio network, in the order of their ends, and what they say about nodes.
import { bytes, firstWhere, floats, integers } from "./columns";
import { between, type Point } from "./shapes";

/** Kinds of frames: `FRAME_KINDS` of the Rust code. */
export const FrameKind = { Rts: 0, Cts: 1, Data: 2, Ack: 3, Broadcast: 4 } as const;

/** No node, flow or mark. */
export const NONE = 0xffffffff;

/** The nodes of a radio network, in metres, and who talks to whom. */
export interface RadioInfo {
  nodes: [number, number][];
  /** Sender and receiver of each flow. */
  ends: [number, number][];
  /** Up to where frames can be read, and up to where they are sensed. */
  read_m: number;
  sense_m: number;
  /** Levels of the index that nodes write into packets, if they do. */
  levels: number | null;
}

const COLUMNS = 13;
/** Frames of a node in which its index is looked for. */
const MOST_LOOKED_AT = 200;

export class Frames {
  readonly start = floats();
  readonly end = floats();
  readonly node = integers();
  readonly x = floats();
  readonly y = floats();
  readonly waiting = integers();
  readonly to = integers();
  readonly kind = bytes();
  readonly flow = integers();
  /** Where the data of the packet begins in the stream; NaN if it has none. */
  readonly offset = floats();
  readonly isReverse = bytes();
  readonly mark = integers();
  readonly readers = integers();
  /** The frames of each node. */
  readonly own: number[][];
  /** Smallest and largest coordinates so far, in metres. */
  readonly ground: { low: Point; high: Point };
  lost = 0;
  private longest = 0;

  constructor(private readonly radio: RadioInfo) {
    this.own = radio.nodes.map(() => []);
    const axis = (at: 0 | 1, pick: (...values: number[]) => number) => pick(...radio.nodes.map((node) => node[at]));
    this.ground = {
      low: { x: axis(0, Math.min), y: axis(1, Math.min) },
      high: { x: axis(0, Math.max), y: axis(1, Math.max) },
    };
  }

  get length(): number {
    return this.start.length;
  }

  add(rows: Float64Array): void {
    const known = (value: number) => (Number.isNaN(value) ? NONE : value);
    for (let at = 0; at < rows.length; at += COLUMNS) {
      const [start, end, node, x, y, waiting, to, kind, flow, offset, isReverse, mark, readers] = rows.subarray(at, at + COLUMNS);
      this.own[node].push(this.length);
      this.start.push(start);
      this.end.push(end);
      this.node.push(node);
      this.x.push(x);
      this.y.push(y);
      this.waiting.push(waiting);
      this.to.push(known(to));
      this.kind.push(kind);
      this.flow.push(known(flow));
      this.offset.push(offset);
      this.isReverse.push(isReverse);
      this.mark.push(known(mark));
      this.readers.push(readers);
      this.longest = Math.max(this.longest, end - start);
      this.lost += Number(readers === 0);
      const { low, high } = this.ground;
      [low.x, low.y] = [Math.min(low.x, x), Math.min(low.y, y)];
      [high.x, high.y] = [Math.max(high.x, x), Math.max(high.y, y)];
    }
  }

  /** The frames that are on the air at some time after `from` and up to `to`. */
  between(from: number, to: number): number[] {
    const found: number[] = [];
    for (let row = this.end.firstAbove(from); row < this.length; row++) {
      if (this.end.values[row] - this.longest > to) break;
      if (this.start.values[row] <= to) found.push(row);
    }
    return found;
  }

  /** The last frame of a node that has begun at `time`. */
  lastOf(node: number, time: number): number | undefined {
    const at = this.nextOf(node, time) - 1;
    return at >= 0 ? this.own[node][at] : undefined;
  }

  /** The index in the packet towards a receiver that the node sent last. */
  lastMark(node: number, time: number): number | undefined {
    const own = this.own[node];
    for (let at = this.nextOf(node, time) - 1, left = MOST_LOOKED_AT; at >= 0 && left > 0; at--, left--) {
      const mark = this.mark.values[own[at]];
      if (mark !== NONE && !this.isReverse.values[own[at]]) return mark;
    }
    return undefined;
  }

  /** Where a node is: on the straight line between the places of its previous and its next frame. */
  place(node: number, time: number): Point {
    const own = this.own[node];
    const next = this.nextOf(node, time);
    const [x, y] = this.radio.nodes[node];
    const seen = (at: number) => {
      const row = own[at];
      return row === undefined ? undefined : { t: this.start.values[row], x: this.x.values[row], y: this.y.values[row] };
    };
    const [before, after] = [seen(next - 1) ?? { t: 0, x, y }, seen(next)];
    if (!after) return { x: before.x, y: before.y };
    const share = (time - before.t) / Math.max(1e-9, after.t - before.t);
    return between(before, after, share);
  }

  /** When a frame next begins or ends; with `back`, when one last did. */
  neighbour(time: number, back: boolean): number | undefined {
    let best: number | undefined;
    const take = (at: number) => {
      const isNearer = best === undefined || (back ? at > best : at < best);
      if ((back ? at < time - 1e-9 : at > time + 1e-9) && isNearer) best = at;
    };
    const first = this.end.firstAbove(time + (back ? -1e-9 : 1e-9));
    if (back && first > 0) take(this.end.values[first - 1]);
    for (let row = first; row < this.length; row++) {
      if (this.end.values[row] - this.longest > (back ? time : (best ?? Infinity))) break;
      take(this.start.values[row]);
      if (!back) take(this.end.values[row]);
    }
    // A frame that has ended may have begun last.
    for (let row = first - 1; back && row >= 0 && this.end.values[row] > (best ?? 0) - this.longest; row--) {
      take(this.start.values[row]);
    }
    return best;
  }

  /** The data frames that carried the same packet as `row`, in order of time; none if it has no data. */
  journey(row: number): number[] {
    const { flow, offset, isReverse, kind } = this;
    if (flow.values[row] === NONE || Number.isNaN(offset.values[row])) return [];
    const found: number[] = [];
    for (let other = 0; other < this.length; other++) {
      const isSame =
        kind.values[other] === FrameKind.Data &&
        flow.values[other] === flow.values[row] &&
        offset.values[other] === offset.values[row] &&
        isReverse.values[other] === isReverse.values[row];
      if (isSame) found.push(other);
    }
    return found;
  }

  /** At the end of each frame, the most packets that wait at a node which is not among `except`. */
  longestQueue(except: number[]): Float64Array {
    const queues = new Float64Array(this.own.length);
    return Float64Array.from({ length: this.length }, (_, row) => {
      const node = this.node.values[row];
      if (!except.includes(node)) queues[node] = this.waiting.values[row];
      return Math.max(...queues);
    });
  }

  /** Index among a node's frames of the first that begins after `time`. */
  private nextOf(node: number, time: number): number {
    const own = this.own[node];
    return firstWhere(own.length, (at) => this.start.values[own[at]] > time);
  }
}
