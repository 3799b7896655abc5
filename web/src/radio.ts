// A radio network as a picture: nodes at their places, frames in the air, packets that wait.
import { firstWhere } from "./columns";
import { FrameKind, NONE, type Frames, type RadioInfo } from "./frames";
import { between, circle, cross, type Point } from "./shapes";
import type { Store } from "./store";
import { theme, type Theme } from "./theme";

/** What a frame carries, by the names of the legend. */
const LOOKS = {
  rts: ["#e69f00", "RTS"],
  cts: ["#cc79a7", "CTS"],
  data: ["#0072b2", "data"],
  answer: ["#56b4e9", "data frame of the way back"],
  ack: ["#009e73", "ACK of the MAC"],
  routing: ["#8c7a5b", "routing, ARP"],
} as const;
type Look = keyof typeof LOOKS;

/** How long a frame that has ended is seen while the run plays, in seconds of the viewer. */
export const RADIO_GLOW_S = 0.35;
const RADIUS = 10;
/** Around the nodes, in pixels: queues above, names below. */
const MARGIN = { side: 44, top: 66, bottom: 56 };
/** A circle of the range of reception has at most this share of the height as its radius. */
const REACH_SHARE = 0.4;
/** Packets of a queue that are drawn. */
const MOST_IN_QUEUE = 50;
const QUEUE_COLUMNS = 5;

/** A thing that can be clicked. */
interface Spot extends Point {
  packet: number;
}

/** Draws the network at `time`, and what was sent within the last `glow` seconds; returns what can be clicked. */
export function drawRadio(
  context: CanvasRenderingContext2D, store: Store, size: { width: number; height: number },
  time: number, glow: number, followed?: number,
): Spot[] {
  const [frames, radio] = [store.frames!, store.about.radio!];
  const colour = theme();
  const { at, scale } = view(frames, radio, size);
  const nodes = radio.nodes.map((_, node) => at(frames.place(node, time)));
  const shown = frames.between(time - glow, time);
  const current = shown.filter((row) => frames.end.values[row] > time);
  for (const row of current) drawReach(context, nodes[frames.node.values[row]], LOOKS[lookOf(frames, row)][0], radio, scale);
  const spots: Spot[] = [];
  for (const row of shown) {
    context.globalAlpha = frames.end.values[row] > time ? 1 : 0.35;
    spots.push(...drawFrame(context, frames, row, nodes, time, colour));
  }
  context.globalAlpha = 1;
  nodes.forEach((place, node) => {
    const sends = current.find((row) => frames.node.values[row] === node);
    drawNode(context, store, place, node, time, sends, colour);
    const last = frames.lastOf(node, time);
    if (last !== undefined) spots.push({ ...place, packet: last });
  });
  drawDrops(context, store, nodes, time, glow, colour);
  drawLegend(context, size, colour);
  if (followed !== undefined) drawFollowed(context, frames, followed, nodes, time, colour);
  return spots;
}

/** From metres to pixels, with the y axis upwards. */
function view(frames: Frames, radio: RadioInfo, { width, height }: { width: number; height: number }) {
  const { low, high } = frames.ground;
  const [wide, tall] = [width - 2 * MARGIN.side, height - MARGIN.top - MARGIN.bottom];
  const fit = Math.min(wide / Math.max(1, high.x - low.x), tall / Math.max(1, high.y - low.y));
  const scale = Math.min(fit, (REACH_SHARE * height) / radio.read_m);
  const middle = { x: (low.x + high.x) / 2, y: (low.y + high.y) / 2 };
  const centre = { x: width / 2, y: MARGIN.top + tall / 2 };
  const at = ({ x, y }: Point): Point => ({ x: centre.x + (x - middle.x) * scale, y: centre.y - (y - middle.y) * scale });
  return { at, scale };
}

function lookOf(frames: Frames, row: number): Look {
  const kind = frames.kind.values[row];
  if (kind === FrameKind.Rts) return "rts";
  if (kind === FrameKind.Cts) return "cts";
  if (kind === FrameKind.Ack) return "ack";
  if (kind === FrameKind.Broadcast || frames.flow.values[row] === NONE) return "routing";
  return frames.isReverse.values[row] ? "answer" : "data";
}

function drawReach(
  context: CanvasRenderingContext2D, { x, y }: Point, colour: string, { read_m, sense_m }: RadioInfo, scale: number,
): void {
  context.fillStyle = context.strokeStyle = colour;
  context.lineWidth = 1;
  context.globalAlpha = 0.1;
  circle(context, { x, y }, read_m * scale);
  context.fill();
  context.globalAlpha = 0.6;
  context.stroke();
  context.setLineDash([3, 5]);
  circle(context, { x, y }, sense_m * scale);
  context.stroke();
  context.setLineDash([]);
  context.globalAlpha = 1;
}

function drawNode(
  context: CanvasRenderingContext2D, store: Store, { x, y }: Point, node: number, time: number,
  sends: number | undefined, colour: Theme,
): void {
  const frames = store.frames!;
  const role = roleOf(store, node);
  context.fillStyle = sends === undefined ? colour.paper : LOOKS[lookOf(frames, sends)][0];
  context.strokeStyle = colour.ink;
  context.lineWidth = role ? 3 : 1.5;
  circle(context, { x, y }, RADIUS);
  context.fill();
  context.stroke();
  context.textAlign = "center";
  context.fillStyle = sends === undefined ? colour.ink : "#fff";
  context.fillText(String(node), x, y + 4);
  if (role) write(context, role, x, y + RADIUS + 15, colour);
  const last = frames.lastOf(node, time);
  if (last === undefined) return;
  drawQueue(context, x, y, frames.waiting.values[last], colour);
  const mark = frames.lastMark(node, time);
  if (mark !== undefined) write(context, `DRAI ${mark}`, x, y + RADIUS + (role ? 29 : 15), colour);
}

/** The packets that waited at the node when its last frame began, from the node upwards. */
function drawQueue(context: CanvasRenderingContext2D, x: number, y: number, waiting: number, colour: Theme): void {
  const left = x - (QUEUE_COLUMNS * 5) / 2;
  context.fillStyle = colour.soft;
  for (let place = 0; place < Math.min(waiting, MOST_IN_QUEUE); place++) {
    const [column, row] = [place % QUEUE_COLUMNS, Math.floor(place / QUEUE_COLUMNS)];
    context.fillRect(left + column * 5, y - RADIUS - 8 - row * 5, 4, 4);
  }
}

/** Whether a node is the sender or the receiver of a flow, in words. */
function roleOf({ about }: Store, node: number): string {
  const { ends } = about.radio!;
  const named = (what: string, at: 0 | 1) =>
    ends.flatMap((pair, flow) => (pair[at] === node ? [about.flows.length > 1 ? `${what}, ${about.flows[flow].name}` : what] : []));
  const found = [...named("sender", 0), ...named("receiver", 1)];
  return found.length > 2 ? `${found.length} ends of flows` : found.join("; ");
}

/** Draws a frame; returns where it can be clicked. */
function drawFrame(
  context: CanvasRenderingContext2D, frames: Frames, row: number, nodes: Point[], time: number, colour: Theme,
): Spot[] {
  const [hue, name] = LOOKS[lookOf(frames, row)];
  const from = nodes[frames.node.values[row]];
  const share = progress(frames, row, time);
  context.strokeStyle = context.fillStyle = hue;
  context.lineWidth = 3;
  if (frames.to.values[row] === NONE) {
    const radius = RADIUS + 6 + share * RADIUS * 2;
    circle(context, from, radius);
    context.stroke();
    write(context, `${name}, to all`, from.x, from.y + radius + 14, colour);
    return [{ x: from.x + radius, y: from.y, packet: row }];
  }
  const to = nodes[frames.to.values[row]];
  const isLost = frames.readers.values[row] === 0;
  drawArrow(context, from, to, isLost);
  const point = between(from, to, share);
  circle(context, point, 5);
  context.fill();
  if (isLost) {
    context.strokeStyle = colour.warn;
    cross(context, between(from, to, 0.8), 6);
  }
  const middle = between(from, to, 0.5);
  write(context, LABELS[lookOf(frames, row)], middle.x, middle.y - 8, colour);
  return [0.2, 0.35, 0.5, 0.65, 0.8].map((part) => ({ ...between(from, to, part), packet: row }));
}

/** Share of a frame that was sent by `time`. */
function progress(frames: Frames, row: number, time: number): number {
  const [start, end] = [frames.start.values[row], frames.end.values[row]];
  return Math.min(1, (time - start) / Math.max(1e-9, end - start));
}

function drawArrow(context: CanvasRenderingContext2D, from: Point, to: Point, isDashed: boolean): void {
  const angle = Math.atan2(to.y - from.y, to.x - from.x);
  const tip = { x: to.x - Math.cos(angle) * (RADIUS + 3), y: to.y - Math.sin(angle) * (RADIUS + 3) };
  context.setLineDash(isDashed ? [6, 5] : []);
  context.beginPath();
  context.moveTo(from.x + Math.cos(angle) * RADIUS, from.y + Math.sin(angle) * RADIUS);
  context.lineTo(tip.x, tip.y);
  context.stroke();
  context.setLineDash([]);
  context.beginPath();
  context.moveTo(tip.x, tip.y);
  for (const turn of [2.6, -2.6]) context.lineTo(tip.x + Math.cos(angle + turn) * 10, tip.y + Math.sin(angle + turn) * 10);
  context.fill();
}

/** Packets that went no further, at the nodes that dropped them. */
function drawDrops(
  context: CanvasRenderingContext2D, store: Store, nodes: Point[], time: number, glow: number, colour: Theme,
): void {
  const span = Math.max(glow, DROP_S);
  const { events } = store;
  const first = firstWhere(events.length, (at) => events[at].t_s > time - span);
  for (let at = first; at < events.length && events[at].t_s <= time; at++) {
    const { kind, detail } = events[at];
    if (kind !== "dropped") continue;
    const node = Number(/ at node (\d+)$/.exec(detail)?.[1] ?? NaN);
    const place = nodes[node];
    if (!place) continue;
    context.fillStyle = colour.warn;
    context.textAlign = "center";
    context.fillText("packet dropped", place.x, place.y - RADIUS - 62);
  }
}

/** A ring around the node that has the followed packet. */
function drawFollowed(
  context: CanvasRenderingContext2D, frames: Frames, followed: number, nodes: Point[], time: number, colour: Theme,
): void {
  const begun = frames.journey(followed).filter((row) => frames.start.values[row] <= time);
  const last = begun.at(-1) ?? followed;
  const from = nodes[frames.node.values[last]];
  const to = nodes[frames.to.values[last]];
  const isRead = to && frames.readers.values[last] > 0;
  const place = isRead ? between(from, to, progress(frames, last, Math.max(time, frames.start.values[last]))) : from;
  context.strokeStyle = colour.ink;
  context.lineWidth = 2;
  circle(context, place, RADIUS + 5);
  context.stroke();
}

function drawLegend(context: CanvasRenderingContext2D, { width, height }: { width: number; height: number }, colour: Theme): void {
  context.textAlign = "left";
  const widths = Object.values(LOOKS).map(([, name]) => 26 + context.measureText(name).width);
  const lines = Math.ceil(widths.reduce((sum, width) => sum + width, 0) / (width - 60));
  let [x, y] = [12, height - 8 - 16 * (lines - 1)];
  Object.values(LOOKS).forEach(([hue, name], at) => {
    if (x + widths[at] > width) [x, y] = [12, y + 16];
    context.fillStyle = hue;
    context.fillRect(x, y - 9, 10, 10);
    context.fillStyle = colour.soft;
    context.fillText(name, x + 14, y);
    x += widths[at];
  });
}

function write(context: CanvasRenderingContext2D, words: string, x: number, y: number, colour: Theme): void {
  context.textAlign = "center";
  context.fillStyle = colour.ink;
  context.fillText(words, x, y);
}

/** Next to an arrow. */
const LABELS: Record<Look, string> = {
  rts: "RTS", cts: "CTS", data: "data", answer: "data, back", ack: "ACK", routing: "routing",
};
/** How long a dropped packet is seen at least, in seconds of the run. */
const DROP_S = 0.002;

const NAMES = ["RTS (asks for the medium)", "CTS (grants the medium)", "Data frame", "ACK of the MAC", "Frame to all"];

/** Lines that explain a frame, and the way of its packet. */
export function explainFrame(store: Store, row: number): string[] {
  const frames = store.frames!;
  const { start, end, node, waiting, to, kind, readers, mark } = frames;
  const { levels } = store.about.radio!;
  const receiver = to.values[row] === NONE ? "" : ` to node ${to.values[row]}`;
  const times = `${seconds(start.values[row])} to ${seconds(end.values[row])}`;
  const lines = [
    `${NAMES[kind.values[row]]} from node ${node.values[row]}${receiver}, ${times}${cargoOf(store, row)}.`,
    to.values[row] === NONE ? `${readers.values[row]} nodes read it.` : outcome(readers.values[row] > 0),
    `Packets that waited at node ${node.values[row]} when it began: ${waiting.values[row]}.`,
  ];
  if (mark.values[row] !== NONE) lines.push(`Data rate adjustment index (DRAI) of its packet: ${mark.values[row]} of ${levels}.`);
  const journey = frames.journey(row);
  const ways = journey.slice(0, MOST_WAYS).map((other) => {
    const isRead = readers.values[other] > 0 ? "read" : "not read";
    return `${node.values[other]} → ${to.values[other]} at ${seconds(start.values[other])}, ${isRead}`;
  });
  if (ways.length > 0) lines.push(`Data frames with the same packet: ${ways.join("; ")}${journey.length > MOST_WAYS ? "; …" : ""}.`);
  return lines;
}

function outcome(isRead: boolean): string {
  return isRead ? "It was read." : "It was not read: another frame overlapped it, or the node was out of range.";
}

/** What a frame carries or announces. */
function cargoOf(store: Store, row: number): string {
  const { flow, offset, isReverse } = store.frames!;
  if (flow.values[row] === NONE) return "";
  const name = store.about.flows[flow.values[row]].name;
  if (!Number.isNaN(offset.values[row])) return `: data of ${name} from byte ${offset.values[row]}`;
  return isReverse.values[row] ? `: an acknowledgement of ${name}` : `: a packet of ${name} without data`;
}

/** The picture in words. */
export function radioInWords({ frames, about }: Store, time: number): string {
  const current = frames!.between(time, time).map((row) => {
    const to = frames!.to.values[row];
    const name = LABELS[lookOf(frames!, row)];
    return `${name} from node ${frames!.node.values[row]} to ${to === NONE ? "all" : `node ${to}`}`;
  });
  return `${about.radio!.nodes.length} radio nodes at ${time.toFixed(4)} s. On the air: ${current.join(", ") || "nothing"}`;
}

const seconds = (time: number) => `${time.toFixed(6)} s`;
/** Data frames of one packet that are listed. */
const MOST_WAYS = 16;
