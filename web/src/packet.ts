// A packet in words: why it was sent, and what became of it.
import { explainFrame } from "./radio";
import { Fate, isLost, Kind, type Store } from "./store";

const REASONS: Record<number, string> = {
  [Kind.New]: "new data",
  [Kind.Fast]: "retransmission: acknowledgements showed that it was lost",
  [Kind.Timeout]: "retransmission: the retransmission timer expired",
  [Kind.Probe]: "tail loss probe: no acknowledgement came for two round trips (RFC 8985 §7)",
  [Kind.Route]: "retransmission: the route came back",
  [Kind.Ack]: "acknowledgement",
  [Kind.Handshake]: "handshake, or the end of the connection",
  [Kind.Datagram]: "datagram",
  [Kind.Duplicate]: "a copy that a link made",
};

const DROPS: Record<number, string> = {
  10: "the queue was full",
  11: "the queue's law decided so, before the queue was full",
  12: "it was over the policer's rate",
  13: "random loss",
  14: "it was longer than the MTU",
};

/** Lines that explain a packet, or a frame of a radio network. */
export function explain(store: Store, packet: number): string[] {
  if (store.frames) return explainFrame(store, packet);
  const { about, flow, kind, offset, payload, length, sent, fate } = store;
  const name = about.flows[flow.values[packet]]?.name ?? "?";
  const code = kind.values[packet];
  const start = offset.values[packet];
  const what =
    code === Kind.Ack
      ? `Acknowledgement of ${name}: all bytes below ${start} arrived`
      : `Packet of ${name}: bytes ${start} to ${start + payload.values[packet]}`;
  const lines = [
    `${what} (${length.values[packet]} bytes with headers).`,
    `Sent at ${seconds(sent.values[packet])}: ${REASONS[code]}.`,
    ...blocks(store, packet),
    ...windowAt(store, packet),
    ...ways(store, packet),
  ];
  if (fate.values[packet] === Fate.Lost) lines.push(`Declared lost at ${seconds(store.ended.values[packet])}.`);
  if (isLost(fate.values[packet])) lines.push(...repair(store, packet));
  return lines;
}

function blocks(store: Store, packet: number): string[] {
  const found = store.sacks.get(packet);
  if (!found) return [];
  const ranges = found.flatMap((from, at) => (at % 2 === 0 ? [`${from} to ${found[at + 1]}`] : []));
  return [`SACK blocks: bytes ${ranges.join(", ")} arrived too.`];
}

/** The sender's window at the last sample before the packet was sent. */
function windowAt(store: Store, packet: number): string[] {
  if (store.direction.values[packet] !== 0) return [];
  const flow = store.flow.values[packet];
  const at = store.sampleAt(flow, store.sent.values[packet]);
  if (at === undefined) return [];
  const { cwnd, inFlight, phase, t } = store.samples[flow];
  const window = `${kilobytes(cwnd.values[at])} of window, ${kilobytes(inFlight.values[at])} in flight`;
  const named = store.phases[phase.values[at]];
  const suffix = named && named !== "none" ? `, phase ${named}` : "";
  return [`Its sender at ${seconds(t.values[at])}: ${window}${suffix}.`];
}

/** What each link did with it. */
function ways(store: Store, packet: number): string[] {
  const lines: string[] = [];
  store.crossings.forEach((crossings, link) => {
    const { enter, start, leave, fate } = crossings;
    const rows = crossings.packet.values.subarray(0, crossings.packet.length);
    const row = rows.indexOf(packet);
    if (row < 0) return;
    const { name } = store.about.links[link];
    const code = fate.values[row];
    if (code >= Fate.Dropped) {
      lines.push(`Dropped at ${name} at ${seconds(leave.values[row])}: ${DROPS[code]}.`);
      return;
    }
    const waited = ((start.values[row] - enter.values[row]) * 1e3).toFixed(3);
    const marked = code === Fate.Marked ? " It was marked there: the queue signals congestion (ECN)." : "";
    const damaged = code === Fate.Damaged ? " It was damaged there: its receiver finds a wrong checksum and ignores it." : "";
    lines.push(
      `Link ${name}: entered at ${seconds(enter.values[row])}, waited ${waited} ms, ` +
        `left at ${seconds(leave.values[row])}.${marked}${damaged}`,
    );
  });
  return lines;
}

/** When the data of a dropped packet was sent again. */
function repair(store: Store, packet: number): string[] {
  const { flow, direction, kind, offset, payload, sent } = store;
  if (payload.values[packet] === 0) return [];
  for (let at = packet + 1; at < sent.length; at++) {
    const same = flow.values[at] === flow.values[packet] && direction.values[at] === direction.values[packet];
    if (same && offset.values[at] === offset.values[packet] && payload.values[at] > 0) {
      return [`Its data was sent again at ${seconds(sent.values[at])}: ${REASONS[kind.values[at]]}.`];
    }
  }
  return ["Its data was not sent again before the end."];
}

const seconds = (time: number) => `${time.toFixed(6)} s`;
const kilobytes = (size: number) => `${(size / 1000).toFixed(1)} kB`;
