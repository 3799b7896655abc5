// A fabric of a data centre as a picture: its tiers, the use of its links, and the port with the longest queue. The
// report of a study (`python/weir/plots/fabric.py`) has the same picture of a whole run.
import { drainTime, fabricOf, longestAt, useOf, windowAround, WINDOW_SHARE, type Fabric, type Waiting } from "./ports";
import { between, circle, type Point } from "./shapes";
import type { Store } from "./store";
import { isDark, theme, type Theme } from "./theme";
import { short, timeInWords } from "./words";

/** Use in percent, and its colour. In the dark, what is used more is lighter. */
const STEPS = [0, 33, 67, 100];
const LIGHT = ["#eaeef2", "#fdae6b", "#e6550d", "#7f2704"];
const DARK = ["#30363d", "#8c4a1c", "#f07d2e", "#ffe3c2"];
/** What stands next to a tier, by the letters of its nodes. */
const WORDS: Record<string, string> = {
  h: "hosts", leaf: "leaves", edge: "edge", spine: "spines", agg: "aggregation", core: "core",
};
const EDGE = 12;
/** Left of the nodes the names of tiers have this space per letter. */
const LETTER = 7;
/** Below the hosts, for their names. */
const BOTTOM = 28;
const LINE = 16;
const BAR = { width: 110, height: 9 };
const SQUARE = 7;
/** Where on its link the dot of a port is, from the port on. */
const PORT_SHARE = 0.3;
/** Between a node and its name. */
const GAP = 14;

interface Size {
  width: number;
  height: number;
}

/** Draws the fabric at `time`. */
export function drawFabric(context: CanvasRenderingContext2D, store: Store, size: Size, time: number): void {
  const fabric = fabricOf(store.about)!;
  const colour = theme();
  const lines = drawLegend(context, store, size, colour);
  const places = placesOf(fabric, size, lines);
  drawLinks(context, store, fabric, places, time);
  drawNodes(context, fabric, places, colour);
  drawTiers(context, fabric, places, colour);
  const longest = longestAt(store, time);
  if (longest) drawLongest(context, store, longest, fabric, places, size, colour, time);
}

/** Where each node is below a legend of this many lines: every tier is spread evenly over the whole width. */
export function placesOf({ nodes }: Fabric, { width, height }: Size, lines: number): Point[] {
  const top = EDGE + LINE * lines + 28;
  const counts = nodes.reduce<number[]>((all, { tier }) => ((all[tier] = (all[tier] ?? 0) + 1), all), []);
  const left = EDGE + LETTER * (1 + Math.max(...nodes.map(({ kind }) => WORDS[kind].length)));
  const first = counts.map((_, tier) => nodes.findIndex((node) => node.tier === tier));
  const step = (height - BOTTOM - top) / Math.max(1, counts.length - 1);
  return nodes.map(({ tier }, place) => ({
    x: left + ((width - EDGE - left) * (place - first[tier] + 0.5)) / counts[tier],
    y: height - BOTTOM - tier * step,
  }));
}

/** The colour of a use in percent. */
export function colourOfUse(use: number, isInDark: boolean): string {
  const colours = isInDark ? DARK : LIGHT;
  const above = Math.max(1, STEPS.findIndex((step) => step >= use));
  const share = (use - STEPS[above - 1]) / (STEPS[above] - STEPS[above - 1]);
  const parts = [1, 3, 5].map((at) => {
    const [low, high] = [above - 1, above].map((step) => Number.parseInt(colours[step].slice(at, at + 2), 16));
    return Math.round(low + (high - low) * share);
  });
  return `rgb(${parts.join(", ")})`;
}

/** The use of the busier direction of each pair of nodes that a link joins. */
function usesOf(store: Store, { pairs }: Fabric, time: number): number[] {
  return pairs.map((links) => Math.max(...links.map((link) => useOf(store, link, time))));
}

/** One line for both directions, the most used ones on top. */
function drawLinks(
  context: CanvasRenderingContext2D, store: Store, fabric: Fabric, places: Point[], time: number,
): void {
  const uses = usesOf(store, fabric, time);
  const order = fabric.pairs.map((_, pair) => pair).sort((a, b) => uses[a] - uses[b]);
  const isInDark = isDark();
  context.lineWidth = 1.6;
  context.lineCap = "butt";
  for (const pair of order) {
    const [from, to] = fabric.ends[fabric.pairs[pair][0]].map((node) => places[node]);
    context.strokeStyle = colourOfUse(uses[pair], isInDark);
    context.beginPath();
    context.moveTo(from.x, from.y);
    context.lineTo(to.x, to.y);
    context.stroke();
  }
}

/** Squares, and as many names as have space: of many hosts every second, or every fourth and so on. */
function drawNodes(context: CanvasRenderingContext2D, { nodes }: Fabric, places: Point[], colour: Theme): void {
  const tiers = Math.max(...nodes.map(({ tier }) => tier));
  for (let tier = 0; tier <= tiers; tier++) {
    const own = nodes.flatMap((node, place) => (node.tier === tier ? [{ name: node.name, ...places[place] }] : []));
    const apart = own.length > 1 ? own[1].x - own[0].x : Infinity;
    const side = Math.min(SQUARE, Math.max(2, apart * 0.7));
    // Between two tiers names would lie on links: there they are next to their nodes.
    const isBetween = tier > 0 && tier < tiers;
    const width = Math.max(...own.map(({ name }) => context.measureText(name).width));
    const every = stepOf(isBetween ? 2 * width + 40 : width + 6, apart);
    own.forEach(({ name, x, y }, at) => {
      context.fillStyle = colour.ink;
      context.fillRect(x - side / 2, y - side / 2, side, side);
      // The first of many may have no space next to it: there is the name of the tier.
      if (at % every !== 0 || (isBetween && every > 1 && at === 0)) return;
      context.textAlign = isBetween ? "right" : "center";
      const [left, base] = isBetween ? [x - side - 4, y + 4] : [x, tier === 0 ? y + GAP + 4 : y - GAP + 4];
      write(context, name, left, base, colour.soft, colour);
    });
  }
}

/** The smallest power of two with which names of a width have space. */
function stepOf(width: number, apart: number): number {
  return apart === Infinity ? 1 : 2 ** Math.max(0, Math.ceil(Math.log2(width / apart)));
}

/** The name of each tier at the left. */
function drawTiers(context: CanvasRenderingContext2D, { nodes }: Fabric, places: Point[], colour: Theme): void {
  nodes.forEach(({ kind, tier }, place) => {
    if (nodes[place - 1]?.tier === tier) return;
    context.textAlign = "left";
    write(context, WORDS[kind], EDGE, places[place].y + 4, colour.soft, colour);
  });
}

function drawLongest(
  context: CanvasRenderingContext2D, store: Store, longest: Waiting, { ends }: Fabric, places: Point[],
  { width }: Size, colour: Theme, time: number,
): void {
  const [from, to] = ends[longest.link].map((node) => places[node]);
  const at = between(from, to, PORT_SHARE);
  context.fillStyle = colour.ink;
  circle(context, at, 4.5);
  context.fill();
  const words = portInWords(store, longest, time);
  const half = context.measureText(words).width / 2;
  context.textAlign = "center";
  write(context, words, Math.min(width - half - 4, Math.max(half + 4, at.x)), at.y - 10, colour.ink, colour);
}

/** The scale of colours, the window, and the dot; returns how many lines they take. */
function drawLegend(context: CanvasRenderingContext2D, store: Store, { width }: Size, colour: Theme): number {
  const window = timeInWords(WINDOW_SHARE * store.about.duration_s);
  const { recordedUntil } = store;
  const isCut = recordedUntil < Infinity;
  const parts: [words: string, space: number, draw?: (x: number, y: number) => void][] = [
    ["100 %", BAR.width + 18, (x, y) => drawScale(context, x, y, colour)],
    ["use of the busier direction,", 0],
    [`mean over ${window} around the time shown`, 0],
    [`port with the longest queue${isCut ? "," : ""}`, 16, (x, y) => drawDot(context, x + 5, y - 4, colour)],
  ];
  if (isCut) parts.push([`after ${timeInWords(recordedUntil)} with the packet being sent`, 0]);
  let [x, line] = [EDGE, 1];
  context.textAlign = "left";
  for (const [words, space, draw] of parts) {
    const needed = space + context.measureText(words).width;
    if (x > EDGE && x + needed > width - EDGE) [x, line] = [EDGE, line + 1];
    const y = EDGE - 4 + line * LINE;
    draw?.(x, y);
    context.fillStyle = colour.soft;
    context.textAlign = "left";
    context.fillText(words, x + space, y);
    x += needed + (words.endsWith(",") ? 4 : 16);
  }
  return line;
}

function drawScale(context: CanvasRenderingContext2D, x: number, y: number, colour: Theme): void {
  const left = x + 12;
  const scale = context.createLinearGradient(left, 0, left + BAR.width, 0);
  for (const step of STEPS) scale.addColorStop(step / 100, colourOfUse(step, isDark()));
  context.fillStyle = colour.soft;
  context.fillText("0", x, y);
  context.fillStyle = scale;
  context.fillRect(left, y - BAR.height, BAR.width, BAR.height);
}

function drawDot(context: CanvasRenderingContext2D, x: number, y: number, colour: Theme): void {
  context.fillStyle = colour.ink;
  circle(context, { x, y }, 4.5);
  context.fill();
}

/** Text on top of lines has an edge in the colour of the paper. */
function write(
  context: CanvasRenderingContext2D, words: string, x: number, y: number, ink: string, { paper }: Theme,
): void {
  context.strokeStyle = paper;
  context.lineWidth = 4;
  context.lineJoin = "round";
  context.strokeText(words, x, y);
  context.fillStyle = ink;
  context.fillText(words, x, y);
}

/** A port with its queue: `leaf0-h3: 12 packets, 18 kB, 1.4 µs`. */
function portInWords(store: Store, waiting: Waiting, time: number): string {
  const { packets, bytes, link } = waiting;
  const drain = drainTime(store, waiting, time);
  const queue = `${packets} ${packets === 1 ? "packet" : "packets"}, ${short(bytes / 1000)} kB`;
  return `${store.about.links[link].name}: ${queue}${Number.isNaN(drain) ? "" : `, ${timeInWords(drain)}`}`;
}

/** The picture in words. */
export function fabricInWords(store: Store, shown: number): string {
  const fabric = fabricOf(store.about)!;
  const hosts = fabric.nodes.filter(({ tier }) => tier === 0).length;
  const begin = `A fabric of ${hosts} hosts and ${fabric.nodes.length - hosts} switches at ${timeInWords(shown)}.`;
  const longest = longestAt(store, shown);
  const queue = longest ? `Longest queue: ${portInWords(store, longest, shown)}` : "No packet waits at any port";
  const note = shown > store.recordedUntil ? " (sampled, with the packet being sent)" : "";
  return `${begin} ${queue}${note}. ${busiestInWords(store, fabric, shown)}`;
}

function busiestInWords(store: Store, { ends, nodes }: Fabric, shown: number): string {
  const uses = ends.map((_, link) => useOf(store, link, shown));
  const busiest = uses.indexOf(Math.max(...uses));
  const [from, to] = windowAround(store, shown);
  const range = `from ${timeInWords(from)} to ${timeInWords(to)}`;
  if (uses[busiest] === 0) return `No link was used ${range}`;
  const [one, other] = ends[busiest].map((node) => nodes[node].name);
  return `Most used link ${range}: ${one} to ${other}, ${uses[busiest].toFixed(0)} %`;
}
