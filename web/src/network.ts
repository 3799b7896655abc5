// The network as a picture: packets move along links and wait in queues.
import { drawFabric, fabricInWords } from "./fabric";
import { layOut, type Layout, type Segment } from "./layout";
import { fabricOf } from "./ports";
import { drawRadio, radioInWords, RADIO_GLOW_S } from "./radio";
import { between, circle, cross, type Point } from "./shapes";
import { Fate, Kind, rateAt, type LinkInfo, type Store } from "./store";
import { theme } from "./theme";
import { short, timeInWords } from "./words";

interface Drawn extends Point {
  packet: number;
  isDrop?: boolean;
}

/** What is shown: a time, simulated time over the viewer's, and whether it goes on. */
export interface Shown {
  time: number;
  speed: number;
  isPlaying: boolean;
}

/** Rows of packets of a queue; of a longer one each square is several packets. */
const MOST_ROWS = 5;
/** How long a dropped packet is seen, in seconds of the viewer. */
const FALL_S = 0.5;
/** Packets on one link that are drawn. */
const MOST_ON_LINK = 3_000;

export class NetworkView {
  private layout?: Layout;
  private drawn: Drawn[] = [];
  private width = 0;
  private height = 0;

  constructor(
    private readonly canvas: HTMLCanvasElement,
    onPacket: (packet: number | undefined) => void,
  ) {
    canvas.addEventListener("click", (event) => onPacket(this.packetAt(event.offsetX, event.offsetY)));
  }

  /** Draws the network. */
  draw(store: Store, colours: string[], { time, speed, isPlaying }: Shown, followed?: number): void {
    const context = this.prepare(store);
    if (!context || !this.layout) return;
    this.drawn = [];
    context.font = "12px system-ui, sans-serif";
    const note = noteOf(store);
    if (note) return this.drawNote(context, note);
    if (store.frames) {
      const size = { width: this.width, height: this.height };
      this.drawn = drawRadio(context, store, size, time, isPlaying ? RADIO_GLOW_S * speed : 0, followed);
      return;
    }
    if (fabricOf(store.about)) {
      drawFabric(context, store, { width: this.width, height: this.height }, time);
      return;
    }
    this.layout.segments.forEach((segment, link) => {
      if (segment) this.drawLink(context, store, segment, link, time);
    });
    this.drawHosts(context, store, colours);
    if (time > store.recordedUntil) this.drawNote(context, `No packets are recorded after ${timeInWords(store.recordedUntil)}.`);
    this.layout.segments.forEach((segment, link) => {
      if (segment) this.drawPackets(context, store, colours, segment, link, time, speed);
    });
    const shown = this.drawn.find((drawn) => drawn.packet === followed);
    if (shown) {
      context.strokeStyle = theme().ink;
      context.lineWidth = 2;
      circle(context, shown, 11);
      context.stroke();
    }
  }

  /** Where the newest dropped packet is on the picture just drawn. */
  lastDrop(): Point | undefined {
    const found = this.drawn.find((drawn) => drawn.isDrop);
    return found && { x: found.x, y: found.y };
  }

  private prepare(store: Store): CanvasRenderingContext2D | null {
    const { clientWidth, clientHeight } = this.canvas;
    const scale = devicePixelRatio || 1;
    if (this.width !== clientWidth || this.height !== clientHeight || !this.layout) {
      [this.width, this.height] = [clientWidth, clientHeight];
      this.canvas.width = clientWidth * scale;
      this.canvas.height = clientHeight * scale;
    }
    this.layout = layOut(store.about, clientWidth, clientHeight);
    const context = this.canvas.getContext("2d");
    context?.setTransform(scale, 0, 0, scale, 0, 0);
    context?.clearRect(0, 0, clientWidth, clientHeight);
    return context;
  }

  private drawNote(context: CanvasRenderingContext2D, note: string): void {
    context.fillStyle = theme().soft;
    context.textAlign = "left";
    context.fillText(note, 20, 30, this.width - 40);
  }

  private drawLink(
    context: CanvasRenderingContext2D,
    store: Store,
    { from, to, isForward, isShared }: Segment,
    link: number,
    time: number,
  ): void {
    const colour = theme();
    const info = store.about.links[link];
    context.strokeStyle = colour.grid;
    context.lineWidth = isForward ? 10 : 5;
    context.lineCap = "round";
    context.beginPath();
    context.moveTo(from.x, from.y);
    context.lineTo(to.x, to.y);
    context.stroke();
    if (!isForward || !isShared) return;
    context.fillStyle = colour.soft;
    context.textAlign = "center";
    const middle = (from.x + to.x) / 2;
    const space = to.x - from.x - GAP_BETWEEN;
    const rate = rateAt(info, time);
    const named = [info.name, rate !== null && `${short(rate)} Mbit/s`].filter(Boolean).join(" · ");
    const label = fitting(context, [`${named} · ${short(info.delay_ms)} ms`, named, info.name], space);
    context.fillText(label, middle, from.y - 62);
    const at = store.queues[link].t.firstAbove(time) - 1;
    if (at < 0) return;
    const { packets, bytes, delay } = store.queues[link];
    const waiting = `${packets.values[at]} packets`;
    const kilobytes = `${waiting}, ${short(bytes.values[at] / 1000)} kB`;
    const all = `${kilobytes}, ${short(delay.values[at])} ms`;
    const queue = fitting(context, [all, kilobytes, waiting, String(packets.values[at])], space);
    context.fillText(queue, middle, from.y + GAP_BELOW);
  }

  private drawHosts(context: CanvasRenderingContext2D, store: Store, colours: string[]): void {
    const colour = theme();
    for (const { at, joins, flow, isSender, isInner } of this.layout?.hosts ?? []) {
      context.strokeStyle = colours[flow];
      context.lineWidth = 1.5;
      context.beginPath();
      context.moveTo(at.x, at.y);
      context.lineTo(joins.x, joins.y);
      context.stroke();
      context.fillStyle = colours[flow];
      circle(context, at, 8);
      context.fill();
      context.fillStyle = colour.ink;
      // To the side of a host between two links, else below it.
      context.textAlign = isSender === isInner ? "right" : "left";
      const name = store.about.flows[flow].name;
      context.fillText(name, isSender ? at.x - 12 : at.x + 12, at.y + (isInner ? 4 : 22), 96);
    }
    for (const router of this.layout?.routers ?? []) {
      context.fillStyle = colour.paper;
      context.strokeStyle = colour.soft;
      context.lineWidth = 2;
      context.beginPath();
      context.roundRect(router.x - 9, router.y - 12, 18, 24, 4);
      context.fill();
      context.stroke();
    }
  }

  private drawPackets(
    context: CanvasRenderingContext2D,
    store: Store,
    colours: string[],
    segment: Segment,
    link: number,
    time: number,
    speed: number,
  ): void {
    const crossings = store.crossings[link];
    const waiting: number[] = [];
    let moving = 0;
    crossings.at(time, (row) => {
      const { start, leave } = crossings;
      if (start.values[row] > time) waiting.push(row);
      else if (++moving <= MOST_ON_LINK) {
        const share = (time - start.values[row]) / Math.max(1e-9, leave.values[row] - start.values[row]);
        const place = between(segment.from, segment.to, share);
        this.drawPacket(context, store, colours, crossings.packet.values[row], place, segment.isForward);
      }
    });
    const capacity = capacityOf(store.about.links[link]);
    this.drawQueue(context, store, colours, segment, crossings.packet.values, waiting, capacity);
    this.drawDrops(context, store, segment, link, time, FALL_S * speed);
  }

  /** The queue grows upwards from the link's beginning, the next to leave at the bottom. */
  private drawQueue(
    context: CanvasRenderingContext2D,
    store: Store,
    colours: string[],
    { from, to, isForward }: Segment,
    packets: Uint32Array,
    waiting: number[],
    capacity: number,
  ): void {
    const side = Math.sign(to.x - from.x) || 1;
    const columns = columnsOf(Math.abs(to.x - from.x));
    const perPacket = Math.min(1, (columns * MOST_ROWS) / Math.max(1, waiting.length, capacity));
    if (capacity > 0 && isForward) drawFrame(context, from, side, Math.ceil(capacity * perPacket), columns);
    let last = -1;
    waiting.forEach((row, index) => {
      const slot = Math.floor(index * perPacket);
      if (slot === last) return;
      last = slot;
      const x = from.x + side * (18 + (slot % columns) * 7);
      const step = Math.floor(slot / columns) * 8;
      const y = isForward ? from.y - 12 - step : from.y + 10 + step;
      const packet = packets[row];
      context.fillStyle = colours[store.flow.values[packet]];
      context.fillRect(x - 3, y - 3, 6, 6);
      this.drawn.push({ x, y, packet });
    });
  }

  private drawPacket(
    context: CanvasRenderingContext2D,
    store: Store,
    colours: string[],
    packet: number,
    place: Point,
    isForward: boolean,
  ): void {
    const { x, y } = place;
    const kind = store.kind.values[packet];
    context.fillStyle = colours[store.flow.values[packet]];
    if (!isForward) {
      circle(context, place, 2.5);
      context.fill();
    } else {
      context.fillRect(x - 4, y - 4, 8, 8);
    }
    if (kind >= Kind.Fast && kind <= Kind.Route) outline(context, x, y, theme().ink);
    if (store.fate.values[packet] === Fate.Marked) outline(context, x, y, theme().warn);
    this.drawn.push({ x, y, packet });
  }

  /** What was dropped within the last `span` seconds falls off the link. */
  private drawDrops(
    context: CanvasRenderingContext2D,
    store: Store,
    segment: Segment,
    link: number,
    time: number,
    span: number,
  ): void {
    const { leave, fate, packet } = store.crossings[link];
    context.strokeStyle = theme().warn;
    context.lineWidth = 2;
    for (let row = leave.firstAbove(time) - 1; row >= 0 && leave.values[row] > time - span; row--) {
      if (fate.values[row] < Fate.Dropped) continue;
      const age = (time - leave.values[row]) / span;
      const side = Math.sign(segment.to.x - segment.from.x) || 1;
      const place = { x: segment.from.x + side * 10, y: segment.from.y + 14 + age * 40 };
      context.globalAlpha = 1 - age;
      cross(context, place, 4);
      context.globalAlpha = 1;
      this.drawn.push({ ...place, packet: packet.values[row], isDrop: true });
    }
  }

  private packetAt(x: number, y: number): number | undefined {
    let [best, nearest] = [14 ** 2, undefined as number | undefined];
    for (const drawn of this.drawn) {
      const distance = (drawn.x - x) ** 2 + (drawn.y - y) ** 2;
      if (distance < best) [best, nearest] = [distance, drawn.packet];
    }
    return nearest;
  }
}

/** Below the names of hosts. */
const GAP_BELOW = 86;
/** Between the labels of two links. */
const GAP_BETWEEN = 12;
/** At most this many packets of a queue are in a row. */
const MOST_COLUMNS = 12;
/** Bytes of a full packet. */
const FULL_PACKET = 1500;

/** Why there is no picture, if there is none. */
function noteOf({ about }: Store): string | undefined {
  if (about.is_tabled) return "Result tables have no packets: the charts below have all that was stored.";
  return about.is_recorded ? "A qlog has one end of a connection, and no network." : undefined;
}

/** Full packets that fit into a queue of bounded size; 0 where the bound is not known. */
function capacityOf({ limit_packets, limit_bytes }: LinkInfo): number {
  return limit_packets ?? (limit_bytes ?? 0) / FULL_PACKET;
}

/** Packets in a row of a queue, which must not cover the next router. */
function columnsOf(length: number): number {
  return Math.max(3, Math.min(MOST_COLUMNS, Math.floor((length - 32) / 7)));
}

/** The outline of a queue with `slots` places. */
function drawFrame(context: CanvasRenderingContext2D, from: Point, side: number, slots: number, columns: number): void {
  const rows = Math.ceil(slots / columns);
  const width = Math.min(slots, columns) * 7 + 2;
  const left = side > 0 ? from.x + 13 : from.x - 13 - width;
  context.strokeStyle = theme().soft;
  context.lineWidth = 1;
  context.strokeRect(left, from.y - 8 - rows * 8, width, rows * 8 + 1);
}

function outline(context: CanvasRenderingContext2D, x: number, y: number, colour: string): void {
  context.strokeStyle = colour;
  context.lineWidth = 1.5;
  context.strokeRect(x - 5, y - 5, 10, 10);
}

/** The first of the texts that fits into the width; else the last one. */
function fitting(context: CanvasRenderingContext2D, texts: string[], width: number): string {
  return texts.find((text) => context.measureText(text).width <= width) ?? texts[texts.length - 1];
}

/** The picture in words. */
export function inWords(store: Store, time: number): string {
  if (store.frames) return radioInWords(store, time);
  if (fabricOf(store.about)) return fabricInWords(store, time);
  const queues = store.about.links.flatMap((link, at) => {
    if (!link.is_monitored) return [];
    const sample = store.queues[at].t.firstAbove(time) - 1;
    // Before the first sample the run has just begun, with empty queues.
    const waiting = sample >= 0 ? store.queues[at].packets.values[sample] : 0;
    return [`${link.name}: ${waiting} packets`];
  });
  return `The network at ${time.toFixed(3)} s. Queues: ${queues.join(", ") || "none"}`;
}
