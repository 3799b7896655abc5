// Where links and hosts are drawn: columns by the longest way to a link, a row per flow for what only one
// flow uses.
import type { Point } from "./shapes";
import type { Description } from "./store";

export interface Segment {
  from: Point;
  to: Point;
  /** Whether data crosses it; otherwise acknowledgements do. */
  isForward: boolean;
  /** Whether it is drawn with its queue and its name. */
  isShared: boolean;
}

interface Host {
  at: Point;
  /** Where its packets enter or leave the drawn links. */
  joins: Point;
  flow: number;
  isSender: boolean;
  /** Whether it joins between two shared links: below them, where no queue is. */
  isInner: boolean;
}

export interface Layout {
  segments: (Segment | undefined)[];
  hosts: Host[];
  routers: Point[];
}

const MARGIN = 84;
/** Distance from a host to where it joins the network. */
const STUB = 50;
/** Distance between the two directions of a link. */
const GAP = 34;
/** Distance from the links to the first host that joins between them, and from there to the next. */
const BELOW = 58;
const ROW = 18;

export function layOut(about: Description, width: number, height: number): Layout {
  const { flows, links } = about;
  const users = links.map((_, link) =>
    flows.filter((flow) => flow.forward.includes(link) || flow.reverse.includes(link)).length,
  );
  const isShared = (link: number) => users[link] > 1 || links[link].is_monitored || links.length <= 2;
  const depth = depths(about);
  const columns = Math.max(1, ...flows.flatMap((flow) => flow.forward.map((link) => depth[link] + 1)));
  const x = (column: number) => MARGIN + ((width - 2 * MARGIN) * column) / columns;
  const middle = height / 2;
  const lane = (flow: number) => {
    const spread = Math.min(46, (height - 40) / Math.max(1, flows.length));
    return middle + (flow - (flows.length - 1) / 2) * spread;
  };
  const segments: (Segment | undefined)[] = links.map(() => undefined);
  const hosts: Host[] = [];
  const addHost = (at: Point, joins: Point, flow: number, isSender: boolean) => {
    const isInner = joins.y === middle && joins.x !== x(isSender ? 0 : columns);
    const above = hosts.filter((host) => host.isInner && host.at.x === at.x).length;
    const y = isInner ? middle + BELOW + above * ROW : at.y;
    hosts.push({ at: { x: at.x, y }, joins, flow, isSender, isInner });
  };
  flows.forEach((flow, index) => {
    const own = (link: number | undefined) => link !== undefined && !isShared(link);
    const place = (column: number, atEnd: boolean): Point => ({
      x: x(column),
      y: atEnd ? lane(index) : middle,
    });
    const last = flow.forward.length - 1;
    flow.forward.forEach((link, at) => {
      const from = place(depth[link], at === 0 && own(link));
      const to = place(depth[link] + 1, at === last && own(link));
      segments[link] ??= { from, to, isForward: true, isShared: isShared(link) };
    });
    flow.reverse.forEach((link, at) => {
      // The way back has as many steps as it needs, over the same columns.
      const twin = flow.forward[Math.max(0, last - Math.round((at * last) / Math.max(1, flow.reverse.length - 1)))];
      const ahead = segments[twin];
      if (!ahead || segments[link]) return;
      const down = (point: Point) => ({ x: point.x, y: point.y + GAP });
      segments[link] = {
        from: down(ahead.to), to: down(ahead.from), isForward: false, isShared: isShared(link),
      };
    });
    const [first, final] = [segments[flow.forward[0]], segments[flow.forward[last]]];
    if (!first || !final) return;
    const [left, right] = [first.from.x - STUB, final.to.x + STUB];
    addHost({ x: left, y: lane(index) }, first.from, index, true);
    addHost({ x: right, y: lane(index) }, final.to, index, false);
  });
  const routers = new Map<number, Point>();
  for (const segment of segments) {
    if (!segment?.isShared || !segment.isForward) continue;
    for (const point of [segment.from, segment.to]) routers.set(point.x, point);
  }
  return { segments, hosts, routers: [...routers.values()] };
}

/** The number of links in front of each link, on the longest way to it. */
function depths({ links, flows }: Description): number[] {
  const depth = links.map(() => 0);
  // As many passes as a way has links settle every order.
  for (let pass = 0; pass < links.length; pass++) {
    for (const { forward } of flows) {
      forward.forEach((link, at) => {
        if (at > 0) depth[link] = Math.max(depth[link], depth[forward[at - 1]] + 1);
      });
    }
    if (pass > 8) break;
  }
  return depth;
}
