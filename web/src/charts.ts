// Charts over time, with one cursor and one zoom.
import uPlot from "uplot";
import { bindGestures, SYNC, type Shared } from "./gestures";
import {
  acknowledged, phases, queues, queueTitle, rates, roundTrips, shares, waiting, windows, type Line,
} from "./lines";
import { SHORT_S } from "./player";
import { fabricOf } from "./ports";
import type { Store } from "./store";
import { theme } from "./theme";
import { isBinned } from "./thin";
import { labels } from "./ticks";

export interface Chart {
  plot: uPlot;
  update: (store: Store) => void;
}

/** Pacing rates above this times the goodput are beyond the edge. BBR's STARTUP has 2.89 times the rate that it measured. */
const MOST_OF_GOODPUT = 3;
const HEIGHT = 205;

/** Half the bins that a server answers at most. */
const MOST_BINS = 2_000;

type Lines = (store: Store) => Line[];

/** As many bins as a chart has pixels. */
export function binsOfCharts(): number {
  const width = document.querySelector("#charts figure")?.clientWidth ?? 600;
  return Math.round(Math.min(MOST_BINS, Math.max(200, width * (devicePixelRatio || 1))));
}

/** What makes the charts, one each, of the store that it is given. */
export function chartMakers(
  parent: HTMLElement, store: Store, colours: string[], shared: Shared,
): ((store: Store) => Chart)[] {
  const specs: [name: string, title: string, unit: string, lines: Lines][] = [
    ["window", "Window", "kB", (s) => windows(s, colours)],
    ["rtt", "Round-trip time", "ms", (s) => roundTrips(s, colours)],
    ["queue", queueTitle(store), "kB", queues],
    ["waiting", "Packets that wait at nodes", "packets", waiting],
    ["rates", "Goodput and pacing rate", "Mbit/s", (s) => rates(s, colours)],
    ["shares", "Share of goodput, stacked", "%", (s) => shares(s, colours)],
    ["acked", "Acknowledged bytes", "MB", (s) => acknowledged(s, colours)],
    ["phases", "Phase of the controllers", "", (s) => phases(s, colours)],
  ];
  const shown = specs.filter(([name]) => !absentFrom(store).includes(name));
  return shown.map(([name, title, unit, lines]) => (store) => {
    const figure = addFigure(parent, title, unit);
    figure.dataset.chart = name;
    return makeChart(figure, unit, lines, store, shared);
  });
}

/** Charts that would be empty, or that the time–sequence diagram replaces. */
function absentFrom({ about }: Store): string[] {
  if (about.is_recorded) return ["queue", "waiting", "shares", "acked", "phases"];
  if (about.is_tabled) return ["waiting", "phases"];
  return about.radio ? ["queue"] : ["waiting", "acked"];
}

function makeChart(figure: HTMLElement, unit: string, lines: Lines, store: Store, shared: Shared): Chart {
  const first = lines(store);
  const options = baseOptions(figure.clientWidth, unit, shared);
  const hasLimits = isBinned(store.about);
  const drawn = seriesOf(first, hasLimits);
  options.series.push(...drawn.series);
  options.bands = drawn.bands;
  if (figure.dataset.chart === "acked") options.scales!.y = {};
  if (figure.dataset.chart === "phases") namePhases(options, store);
  if (first.some((line) => line.isCut)) options.scales!.y = { range: (plot) => [0, topOf(plot, first) * 1.05 || 1] };
  if (first.some((line) => line.fill)) options.scales!.y = { range: [0, 100] };
  const dataOf = (lines: Line[], { about, simulated }: Store) => {
    const data = aligned(lines, hasLimits);
    figure.dataset.max = String(highest(data));
    // Connections of a workload have no samples.
    figure.hidden = fabricOf(about) !== undefined && simulated > 0 && isEmpty(data);
    return data;
  };
  const plot = new uPlot(options, dataOf(first, store), figure);
  const update = (next: Store) => {
    const found = lines(next);
    if (found.some(({ label }, at) => label !== plot.series[at + 1]?.label)) replaceSeries(plot, found, hasLimits);
    plot.setData(dataOf(found, next), false);
  };
  return { plot, update };
}

/** The series of lines; with `limits`, two more for each, between which its range is filled. */
function seriesOf(lines: Line[], limits: boolean): { series: uPlot.Series[]; bands: uPlot.Band[] } {
  const series: uPlot.Series[] = lines.map((line) => ({
    label: line.label,
    stroke: line.colour,
    width: line.width ?? 1.5,
    dash: line.dash,
    fill: line.fill,
    points: { show: false },
    value: (plot: uPlot, value: number | null, at: number, row: number | null) =>
      value == null ? "–" : (line.fill ? value - below(plot, at, row) : value).toPrecision(4),
  }));
  const bands: uPlot.Band[] = [];
  for (const { colour } of limits ? lines : []) {
    // The first series of a plot is that of its times.
    const low = series.length + 1;
    const limit = { stroke: "transparent", width: 0, points: { show: false }, class: "limit" };
    series.push({ ...limit }, { ...limit });
    bands.push({ series: [low + 1, low], fill: `color-mix(in srgb, ${colour} 30%, transparent)` });
  }
  return { series, bands };
}

/** Other lines are shown: which queues are the longest has changed. */
function replaceSeries(plot: uPlot, lines: Line[], limits: boolean): void {
  plot.delBand(null);
  for (let at = plot.series.length - 1; at > 0; at--) plot.delSeries(at);
  const { series, bands } = seriesOf(lines, limits);
  for (const one of series) plot.addSeries(one);
  for (const band of bands) plot.addBand(band);
}

function isEmpty([, ...lines]: uPlot.AlignedData): boolean {
  return lines.every((line) => Array.from(line).every((value) => value == null || Number.isNaN(value)));
}

/** The upper edge of the area below a stacked one. */
function below({ data }: uPlot, at: number, row: number | null): number {
  return row === null ? 0 : (data[at + 1]?.[row] ?? 0);
}

/** The largest value shown; of lines that are cut, at most MOST_OF_GOODPUT times that of the others. */
export function topOf({ series }: { series: { max?: number }[] }, lines: { isCut?: boolean }[]): number {
  const top = (isCut: boolean) =>
    lines.reduce((most, line, at) => ((line.isCut ?? false) === isCut ? Math.max(most, series[at + 1].max ?? 0) : most), 0);
  const [whole, cut] = [top(false), top(true)];
  return whole > 0 ? Math.max(whole, Math.min(cut, MOST_OF_GOODPUT * whole)) : cut;
}

/** Numbers of phases become their names. A phase holds until the next sample. */
function namePhases(options: uPlot.Options, store: Store): void {
  const nameOf = (value: number | null) => store.phases[Math.round(value ?? NaN)]?.replaceAll("_", " ") ?? "–";
  options.scales!.y = { range: () => [-0.5, Math.max(1, store.phases.length) - 0.5] };
  const [, axis] = options.axes!;
  Object.assign(axis, { size: 150, label: undefined, labelSize: 0 });
  axis.splits = () => store.phases.map((_, at) => at);
  axis.values = (_, at) => at.map(nameOf);
  for (const line of options.series.slice(1)) {
    line.paths = levels;
    line.value = (_, value) => nameOf(value);
  }
}

/** A phase holds until the next sample. No line leads to the next phase: between two names there is none. */
function levels({ data, valToPos }: uPlot, series: number, from: number, to: number): uPlot.Series.Paths {
  const stroke = new Path2D();
  const [times, values] = [data[0], data[series]];
  const has = (at: number) => values[at] != null && !Number.isNaN(values[at]);
  let at = from;
  while (at > 0 && !has(at)) at--;
  for (; at <= to; at++) {
    if (!has(at)) continue;
    let next = at + 1;
    while (next < values.length && (!has(next) || values[next] === values[at])) next++;
    const y = valToPos(values[at]!, "y", true);
    stroke.moveTo(valToPos(times[at], "x", true), y);
    stroke.lineTo(valToPos(times[Math.min(next, times.length - 1)], "x", true), y);
    at = next - 1;
  }
  return { stroke, fill: null, clip: null, band: null, flags: 1 };
}

/** A figure with its title; a screen reader gets the title as its name. */
export function addFigure(parent: HTMLElement, title: string, unit: string): HTMLElement {
  const figure = document.createElement("figure");
  figure.setAttribute("aria-label", unit ? `${title} in ${unit} over time` : `${title} over time`);
  const caption = document.createElement("figcaption");
  caption.textContent = title;
  figure.append(caption);
  parent.append(figure);
  return figure;
}

/** Axes, cursor, zoom and the mark of the time shown. */
export function baseOptions(width: number, unit: string, shared: Shared): uPlot.Options {
  const colour = theme();
  const axis = { stroke: colour.soft, grid: { stroke: colour.grid, width: 1 }, ticks: { stroke: colour.grid } };
  const isShort = shared.duration() < SHORT_S;
  const said = (factor: number): uPlot.Axis.Values => (_, ticks, _axis, _space, distance) => labels(ticks, distance, factor);
  const time = isShort ? { label: "time in ms", values: said(1e3) } : { label: "time in s", values: said(1) };
  return {
    width: Math.max(200, width),
    height: HEIGHT,
    scales: { x: { time: false }, y: { range: (_, min, max) => [Math.min(0, min ?? 0), (max ?? 0) * 1.05 || 1] } },
    series: [
      isShort
        ? { label: "t (ms)", value: (_: uPlot, value: number | null) => (value == null ? "–" : (value * 1e3).toFixed(4)) }
        : { label: "t (s)", value: (_: uPlot, value: number | null) => value?.toFixed(3) ?? "–" },
    ],
    axes: [
      { ...axis, size: 28, labelSize: 16, ...time },
      { ...axis, size: 60, label: unit, labelSize: 16, values: said(1) },
    ],
    legend: { live: true, markers: { width: 2, dash: markerDash } },
    cursor: {
      sync: { key: SYNC, setSeries: false },
      drag: { x: true, y: false, setScale: false },
      bind: { dblclick: () => () => (shared.zoom(undefined), null) },
    },
    hooks: {
      setSelect: [(plot) => selectRange(plot, shared)],
      setScale: [noteRange],
      draw: [
        (plot) => drawLosses(plot, shared.losses(), colour.warn),
        (plot) => drawTime(plot, shared.time(), colour.ink),
      ],
      ready: [(plot) => bindGestures(plot, plot.root.parentElement!, shared)],
    },
  };
}

/** The times that a chart shows, for tests. */
function noteRange({ root, scales }: uPlot, key: string): void {
  const { min, max } = scales.x;
  if (key === "x" && root.parentElement) Object.assign(root.parentElement.dataset, { from: min, to: max });
}

/** A legend has the pattern of the line. */
function markerDash(plot: uPlot, index: number): string {
  const [length] = plot.series[index].dash ?? [];
  if (length === undefined) return "solid";
  return length > 1 ? "dashed" : "dotted";
}

function selectRange(plot: uPlot, shared: Shared): void {
  const { left, width } = plot.select;
  if (width < 4) return;
  shared.zoom([plot.posToVal(left, "x"), plot.posToVal(left + width, "x")]);
  plot.setSelect({ left: 0, top: 0, width: 0, height: 0 }, false);
}

/** A mark at the upper edge for each loss, one per pixel. */
function drawLosses(plot: uPlot, losses: number[], colour: string): void {
  const { min, max } = plot.scales.x;
  if (min == null || max == null) return;
  const { ctx, bbox } = plot;
  const size = 3 * (devicePixelRatio || 1);
  let last = -Infinity;
  ctx.fillStyle = colour;
  for (const time of losses) {
    if (time < min) continue;
    if (time > max) break;
    const x = Math.round(plot.valToPos(time, "x", true));
    if (x - last < size) continue;
    last = x;
    ctx.fillRect(x - size / 3, bbox.top, (2 * size) / 3, 2 * size);
  }
}

function drawTime(plot: uPlot, time: number, ink: string): void {
  const { min, max } = plot.scales.x;
  if (min == null || max == null || time < min || time > max) return;
  const { ctx, bbox } = plot;
  const x = plot.valToPos(time, "x", true);
  ctx.save();
  ctx.strokeStyle = ink;
  ctx.setLineDash([]);
  ctx.lineWidth = devicePixelRatio || 1;
  ctx.beginPath();
  ctx.moveTo(x, bbox.top);
  ctx.lineTo(x, bbox.top + bbox.height);
  ctx.stroke();
  ctx.restore();
}

/** Lines of different times on one axis; with `limits`, after them the lowest and highest values of each. */
function aligned(lines: Line[], limits = false): uPlot.AlignedData {
  if (lines.length === 0) return [[0], []];
  const columns = lines.map(({ times, values }) => ({ times, values }));
  if (limits) {
    for (const { times, values, low = values, high = values } of lines) {
      columns.push({ times, values: low }, { times, values: high });
    }
  }
  if (columns.every(({ times }) => isEqual(times, columns[0].times))) {
    return [columns[0].times, ...columns.map(({ values }) => values)] as unknown as uPlot.AlignedData;
  }
  return uPlot.join(columns.map(({ times, values }) => [times, values]) as unknown as uPlot.AlignedData[]);
}

function isEqual(a: Float64Array, b: Float64Array): boolean {
  return a === b || (a.length === b.length && a.every((value, at) => value === b[at]));
}

function highest([, ...lines]: uPlot.AlignedData): number {
  return lines.reduce((most, line) => {
    for (const value of line) if (value != null && value > most) most = value;
    return most;
  }, 0);
}
