// The time–sequence diagram of one flow: segments, acknowledgements, SACK blocks, retransmissions, drops.
import uPlot from "uplot";
import { addFigure, baseOptions } from "./charts";
import { envelope, mostBetween, visit, type Envelope, type Span } from "./envelope";
import type { Shared } from "./gestures";
import { isLost, Kind, type Store } from "./store";
import { theme } from "./theme";

export class SequenceView {
  readonly plot: uPlot;
  /** What was drawn last of more packets than can be drawn one by one. */
  private covered?: { key: string; envelope: Envelope };

  constructor(
    parent: HTMLElement,
    private store: Store,
    private flow: number,
    private colour: string,
    shared: Shared,
    private readonly onPacket: (packet: number) => void,
  ) {
    const figure = addFigure(parent, `Time–sequence diagram of ${store.about.flows[flow].name}`, "kB");
    figure.classList.add("wide");
    const options = baseOptions(figure.clientWidth, "offset in kB", shared);
    options.height = 260;
    options.scales!.y = { auto: false, range: (_, min, max) => [min ?? 0, max ?? 1] };
    options.series.push({ label: "offset", show: false });
    options.legend = { show: false };
    options.hooks!.draw!.unshift((plot) => this.draw(plot));
    this.plot = new uPlot(options, this.data(), figure);
    figure.append(legend(colour));
    this.plot.over.addEventListener("click", (event) => this.click(event.offsetX, event.offsetY));
  }

  update(store: Store): void {
    this.store = store;
    this.plot.setData(this.data(), false);
  }

  /** Shows the times from `min` to `max`, with all that was sent in them. */
  setRange(min: number, max: number): void {
    const [low, high] = this.range(min, max);
    this.plot.batch(() => {
      this.plot.setScale("x", { min, max });
      this.plot.setScale("y", { min: low, max: high });
    });
  }

  private data(): uPlot.AlignedData {
    return [[0, this.store.about.duration_s], [null, null]];
  }

  private range(from: number, to: number): [number, number] {
    let [low, high] = [Infinity, -Infinity];
    if (mostBetween(this.store, from, to) > MOST_PACKETS) {
      const { sent, again } = this.envelope(from, to);
      for (const span of [sent, again]) {
        for (const offset of span.low) low = Math.min(low, offset);
        for (const offset of span.high) high = Math.max(high, offset);
      }
    } else {
      visit(this.store, this.flow, from, to, (packet) => {
        const { offset, payload, kind, sent } = this.store;
        if (kind.values[packet] >= Kind.Handshake || sent.values[packet] < from) return;
        low = Math.min(low, offset.values[packet]);
        high = Math.max(high, offset.values[packet] + payload.values[packet]);
      });
    }
    return high > low ? [low / 1000, (high + 2_000) / 1000] : [0, 1];
  }

  /** What each column of pixels covers; kept, because it takes longer than to draw it. */
  private envelope(from: number, to: number): Envelope {
    const columns = Math.max(1, Math.ceil(this.plot.bbox.width));
    const key = [from, to, columns, this.store.sent.length].join();
    if (key !== this.covered?.key) {
      this.covered = { key, envelope: envelope(this.store, this.flow, from, to, columns) };
    }
    return this.covered.envelope;
  }

  private draw(plot: uPlot): void {
    const { store } = this;
    const { ctx, bbox } = plot;
    const [from, to] = visible(plot, store);
    const ratio = devicePixelRatio || 1;
    const x = (time: number) => plot.valToPos(time, "x", true);
    const y = (offset: number) => plot.valToPos(offset / 1000, "y", true);
    ctx.save();
    ctx.beginPath();
    ctx.rect(bbox.left, bbox.top, bbox.width, bbox.height);
    ctx.clip();
    ctx.lineWidth = 2 * ratio;
    if (mostBetween(store, from, to) > MOST_PACKETS) this.drawEnvelope(ctx, bbox, from, to, y);
    else this.drawPackets(ctx, from, to, x, y, ratio);
    ctx.restore();
  }

  /** Every packet, with its acknowledgements and SACK blocks. */
  private drawPackets(
    ctx: CanvasRenderingContext2D,
    from: number,
    to: number,
    x: (time: number) => number,
    y: (offset: number) => number,
    ratio: number,
  ): void {
    const { store } = this;
    const colour = theme();
    let [lastX, lastY] = [NaN, NaN];
    visit(store, this.flow, from, to, (packet) => {
      const kind = store.kind.values[packet];
      const offset = store.offset.values[packet];
      if (kind === Kind.Ack) return this.drawAck(ctx, packet, x, y, ratio);
      if (kind === Kind.Handshake) return;
      const [left, bottom] = [x(store.sent.values[packet]), y(offset)];
      const again = kind >= Kind.Fast && kind <= Kind.Route;
      const dropped = isLost(store.fate.values[packet]);
      // What falls on the same point is drawn once.
      if (!again && !dropped && Math.abs(left - lastX) < 1 && Math.abs(bottom - lastY) < 1) return;
      [lastX, lastY] = [left, bottom];
      ctx.strokeStyle = again ? colour.ink : this.colour;
      const top = Math.min(y(offset + store.payload.values[packet]), bottom - 2 * ratio);
      line(ctx, left, bottom, left, top);
      if (dropped) cross(ctx, left, (bottom + top) / 2, 4 * ratio, colour.warn);
    });
  }

  /** More packets than a reader can tell apart: in each column of pixels what it covers. */
  private drawEnvelope(
    ctx: CanvasRenderingContext2D,
    bbox: uPlot.BBox,
    from: number,
    to: number,
    y: (offset: number) => number,
  ): void {
    const colour = theme();
    const { sent, again, acked, dropped } = this.envelope(from, to);
    const bars = ({ low, high }: Span, shade: string) => {
      ctx.fillStyle = shade;
      low.forEach((from, at) => {
        if (from <= high[at]) ctx.fillRect(bbox.left + at, y(high[at]), 1, Math.max(2, y(from) - y(high[at])));
      });
    };
    bars(sent, this.colour);
    bars(acked, colour.soft);
    bars(again, colour.ink);
    ctx.fillStyle = colour.warn;
    dropped.forEach((offset, at) => {
      if (!Number.isNaN(offset)) ctx.fillRect(bbox.left + at - 1, y(offset) - 2, 3, 4);
    });
  }

  /** A step where it arrives, and the ranges that it acknowledges selectively. */
  private drawAck(
    ctx: CanvasRenderingContext2D,
    packet: number,
    x: (time: number) => number,
    y: (offset: number) => number,
    ratio: number,
  ): void {
    const { ended, fate, offset, sacks } = this.store;
    const arrived = ended.values[packet];
    if (Number.isNaN(arrived) || isLost(fate.values[packet])) return;
    const left = x(arrived);
    ctx.fillStyle = theme().soft;
    ctx.fillRect(left, y(offset.values[packet]), 3 * ratio, 1.5 * ratio);
    const blocks = sacks.get(packet) ?? [];
    ctx.fillStyle = "#009e73";
    for (let at = 0; at < blocks.length; at += 2) {
      ctx.fillRect(left, y(blocks[at + 1]), 1.5 * ratio, y(blocks[at]) - y(blocks[at + 1]));
    }
  }

  private click(left: number, top: number): void {
    const { store, plot } = this;
    const [from, to] = visible(plot, store);
    let [best, nearest] = [12 ** 2, undefined as number | undefined];
    visit(store, this.flow, from, to, (packet) => {
      const isAck = store.kind.values[packet] === Kind.Ack;
      const time = isAck ? store.ended.values[packet] : store.sent.values[packet];
      const middle = store.offset.values[packet] + store.payload.values[packet] / 2;
      const distance =
        (plot.valToPos(time, "x") - left) ** 2 + (plot.valToPos(middle / 1000, "y") - top) ** 2;
      if (distance < best) [best, nearest] = [distance, packet];
    });
    if (nearest !== undefined) this.onPacket(nearest);
  }
}

/** Packets that are drawn one by one. */
const MOST_PACKETS = 5_000;

function visible(plot: uPlot, store: Store): [number, number] {
  const { min, max } = plot.scales.x;
  return [min ?? 0, max ?? store.about.duration_s];
}

function line(ctx: CanvasRenderingContext2D, x0: number, y0: number, x1: number, y1: number): void {
  ctx.beginPath();
  ctx.moveTo(x0, y0);
  ctx.lineTo(x1, y1);
  ctx.stroke();
}

function cross(ctx: CanvasRenderingContext2D, x: number, y: number, size: number, colour: string): void {
  ctx.strokeStyle = colour;
  line(ctx, x - size, y - size, x + size, y + size);
  line(ctx, x + size, y - size, x - size, y + size);
}

function legend(colour: string): HTMLElement {
  const list = document.createElement("p");
  list.className = "legend";
  const { ink, soft, warn } = theme();
  const entries = [
    [colour, "segment"], [ink, "sent again"], [warn, "dropped or damaged"], [soft, "acknowledged"], ["#009e73", "SACK"],
  ];
  for (const [shade, label] of entries) {
    const mark = document.createElement("span");
    mark.style.background = shade;
    list.append(mark, ` ${label} `);
  }
  return list;
}
