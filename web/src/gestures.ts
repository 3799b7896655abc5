// How a reader explores a chart: mouse, wheel, fingers and keys.
import uPlot from "uplot";

/** What all charts share. */
export interface Shared {
  /** The time shown, marked in every chart. */
  time: () => number;
  /** The length of what is shown, in seconds. */
  duration: () => number;
  /** Times of losses, in ascending order. */
  losses: () => number[];
  /** A reader chose a time. */
  seek: (time: number) => void;
  /** A reader zoomed; `undefined` shows everything. */
  zoom: (range: Range | undefined) => void;
}

type Range = [number, number];

/** The charts of one cursor. */
export const SYNC = "laboratory";

export function bindGestures(plot: uPlot, figure: HTMLElement, shared: Shared): void {
  bindClick(plot, shared);
  bindWheel(plot, shared);
  bindFingers(plot, shared);
  bindKeys(plot, figure, shared);
}

/** A click goes to a time. */
function bindClick({ over, posToVal }: uPlot, shared: Shared): void {
  let pressed = 0;
  over.addEventListener("pointerdown", (event) => (pressed = event.clientX));
  over.addEventListener("click", (event) => {
    if (Math.abs(event.clientX - pressed) < 4) shared.seek(posToVal(event.offsetX, "x"));
  });
}

/** The wheel zooms around the pointer, shift and wheel move. */
function bindWheel(plot: uPlot, shared: Shared): void {
  const turned = (event: WheelEvent) => {
    const range = rangeOf(plot);
    if (!range) return;
    event.preventDefault();
    if (event.shiftKey || Math.abs(event.deltaX) > Math.abs(event.deltaY)) {
      const share = (event.deltaX || event.deltaY) / plot.over.clientWidth;
      return shared.zoom(moved(range, share, shared.duration()));
    }
    shared.zoom(zoomed(range, plot.posToVal(event.offsetX, "x"), Math.exp(event.deltaY * 0.002)));
  };
  plot.over.addEventListener("wheel", turned, { passive: false });
}

/** Two fingers zoom, and the times below them stay there. One finger moves in time; up and down it scrolls the page. */
function bindFingers(plot: uPlot, shared: Shared): void {
  const places = new Map<number, number>();
  let anchors: [left: number, time: number][] = [];
  let span = 0;
  const anchor = () => {
    const [min, max] = rangeOf(plot) ?? [0, 0];
    span = max - min;
    anchors = [...places.values()].slice(0, 2).map((left) => [left, plot.posToVal(left, "x")]);
  };
  const placeOf = (event: PointerEvent) => event.clientX - plot.over.getBoundingClientRect().left;
  plot.over.addEventListener("pointerdown", (event) => {
    if (event.pointerType !== "touch") return;
    places.set(event.pointerId, placeOf(event));
    anchor();
  });
  plot.over.addEventListener("pointermove", (event) => {
    if (!places.has(event.pointerId) || span <= 0) return;
    places.set(event.pointerId, placeOf(event));
    const range = rangeBelow(anchors, [...places.values()], span, plot.over.clientWidth);
    if (range) shared.zoom(inside(range, shared.duration()));
  });
  const lift = (event: PointerEvent) => {
    if (places.delete(event.pointerId)) anchor();
  };
  plot.over.addEventListener("pointerup", lift);
  plot.over.addEventListener("pointercancel", lift);
}

/** The range in which the anchored times are at these places. */
function rangeBelow(anchors: [number, number][], places: number[], span: number, width: number): Range | undefined {
  const [[, first], second] = anchors;
  if (!second) {
    const min = first - (places[0] / width) * span;
    return [min, min + span];
  }
  const perPixel = (second[1] - first) / (places[1] - places[0]);
  // Fingers that meet or cross have no range.
  if (!Number.isFinite(perPixel) || perPixel <= 0) return undefined;
  const min = first - places[0] * perPixel;
  return [min, min + width * perPixel];
}

/** Of a figure that has the focus: the arrows move the cursor of all charts, whose values are spoken. */
function bindKeys(plot: uPlot, figure: HTMLElement, shared: Shared): void {
  figure.tabIndex = 0;
  figure.setAttribute("aria-keyshortcuts", "ArrowLeft ArrowRight + - 0 Enter");
  const spoken = document.createElement("p");
  spoken.className = "spoken";
  spoken.setAttribute("aria-live", "polite");
  figure.append(spoken);
  const point = (time: number) => {
    for (const other of uPlot.sync(SYNC).plots) {
      other.setCursor({ left: other.valToPos(time, "x"), top: other.over.clientHeight / 2 });
    }
    spoken.textContent = inWords(figure, time);
  };
  figure.addEventListener("keydown", (event) => {
    const range = rangeOf(plot);
    if (event.target !== figure || event.ctrlKey || event.metaKey || event.altKey || !range) return;
    const now = cursorTime(plot, range, shared.time());
    const step = (sign: number) => now + sign * (event.shiftKey ? 0.1 : 0.01) * (range[1] - range[0]);
    const wanted: Record<string, [time: number, range?: Range | null]> = {
      ArrowRight: [step(1)], ArrowLeft: [step(-1)],
      "+": [now, zoomed(range, now, 1 / KEY_ZOOM)], "-": [now, zoomed(range, now, KEY_ZOOM)], "0": [now, null],
      Enter: [now],
    };
    const found = wanted[event.key];
    if (!found) return;
    event.preventDefault();
    // These keys have another meaning elsewhere on the page.
    event.stopPropagation();
    if (event.key === "Enter") return shared.seek(now);
    const end = shared.duration();
    const time = Math.max(0, Math.min(end, found[0]));
    const beyond = time < range[0] || time > range[1] ? moved(range, Math.sign(time - now) / 4, end) : undefined;
    const [, next = beyond] = found;
    if (next === undefined) return point(time);
    shared.zoom(next ?? undefined);
    // The next frame has the new range.
    requestAnimationFrame(() => point(time));
  });
}

/** The time at the cursor; without one the time shown, or the middle. */
function cursorTime(plot: uPlot, [min, max]: Range, shown: number): number {
  const { left } = plot.cursor;
  if (left !== undefined && left >= 0) return plot.posToVal(left, "x");
  return shown >= min && shown <= max ? shown : (min + max) / 2;
}

/** The time and the values in the legend. */
function inWords(figure: HTMLElement, time: number): string {
  const rows = [...figure.querySelectorAll(".u-legend .u-series:not(.limit)")].slice(1);
  const values = rows.map((row) => [".u-label", ".u-value"].map((part) => row.querySelector(part)?.textContent).join(" "));
  return [`${time.toFixed(3)} s`, ...values].join(", ");
}

function rangeOf({ scales }: uPlot): Range | undefined {
  const { min, max } = scales.x;
  return min == null || max == null ? undefined : [min, max];
}

/** A range that is `factor` times as long, in which `centre` stays at its place. */
function zoomed([min, max]: Range, centre: number, factor: number): Range {
  return [centre - (centre - min) * factor, centre + (max - centre) * factor];
}

/** A range of the same length, later by a share of it. */
function moved([min, max]: Range, share: number, end: number): Range {
  const by = share * (max - min);
  return inside([min + by, max + by], end);
}

/** A range of the same length that does not leave the run. */
function inside([min, max]: Range, end: number): Range {
  const by = Math.max(0, -min) || Math.min(0, end - max);
  return [Math.max(0, min + by), Math.min(end, max + by)];
}

/** How much a key zooms. */
const KEY_ZOOM = 1.5;
