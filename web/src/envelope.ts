// The time–sequence diagram of many packets: what each column of pixels covers.
import { isLost, Kind, type Store } from "./store";

/** The lowest and the highest offset in each column of pixels; where there is none, low is above high. */
export interface Span {
  low: Float64Array;
  high: Float64Array;
}

export interface Envelope {
  sent: Span;
  again: Span;
  acked: Span;
  /** An offset that was dropped in each column; NaN where there is none. */
  dropped: Float64Array;
}

/** The packets of a flow in `columns` columns from `from` to `to`. */
export function envelope(store: Store, flow: number, from: number, to: number, columns: number): Envelope {
  const found: Envelope = {
    sent: empty(columns), again: empty(columns), acked: empty(columns), dropped: new Float64Array(columns).fill(NaN),
  };
  const { sent, ended, kind, fate, offset, payload } = store;
  const perSecond = columns / (to - from);
  visit(store, flow, from, to, (packet) => {
    const isAck = kind.values[packet] === Kind.Ack;
    const time = isAck ? ended.values[packet] : sent.values[packet];
    const at = Math.floor((time - from) * perSecond);
    if (!(at >= 0 && at < columns) || kind.values[packet] === Kind.Handshake) return;
    const [start, isDropped] = [offset.values[packet], isLost(fate.values[packet])];
    if (isAck) return isDropped ? undefined : widen(found.acked, at, start, start);
    const isAgain = kind.values[packet] >= Kind.Fast && kind.values[packet] <= Kind.Route;
    widen(isAgain ? found.again : found.sent, at, start, start + payload.values[packet]);
    if (isDropped) found.dropped[at] = start;
  });
  return found;
}

/** Calls `each` for the packets of a flow from `from` to `to`, in the order of sending. */
export function visit(store: Store, own: number, from: number, to: number, each: (packet: number) => void): void {
  const { sent, flow } = store;
  // An acknowledgement is drawn when it arrives, up to seconds after it was sent.
  for (let at = sent.firstAbove(from - 2); at < sent.length && sent.values[at] <= to; at++) {
    if (flow.values[at] === own) each(at);
  }
}

/** At most this many packets between two times, counted without looking at their flows. */
export function mostBetween({ sent }: Store, from: number, to: number): number {
  return sent.firstAbove(to) - sent.firstAbove(from);
}

function empty(columns: number): Span {
  return { low: new Float64Array(columns).fill(Infinity), high: new Float64Array(columns).fill(-Infinity) };
}

function widen({ low, high }: Span, at: number, from: number, to: number): void {
  if (from < low[at]) low[at] = from;
  if (to > high[at]) high[at] = to;
}
