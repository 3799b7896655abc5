// Where links and hosts are drawn.
import { expect, test } from "@playwright/test";
import { layOut } from "../src/layout";
import type { Description } from "../src/store";

function network(names: string[], routes: [number[], number[]][]): Description {
  const links = names.map((name) => ({
    name, is_monitored: false, rate_mbps: 10, delay_ms: 10, limit_packets: null, limit_bytes: null,
  }));
  const flows = routes.map(([forward, reverse], index) => ({
    name: `f${index}`, stack: "reno", start_s: 0, forward, reverse,
  }));
  return { name: "test", duration_s: 1, radio: null, links, flows };
}

test("the links of a dumbbell are parallel, and its hosts are at both ends", () => {
  const { segments, hosts, routers } = layOut(network(["there", "back"], [[[0], [1]], [[0], [1]]]), 800, 250);
  const [there, back] = segments;
  expect(there?.isForward && !back?.isForward).toBe(true);
  expect(there!.to.x).toBe(back!.from.x);
  expect(there!.from.x).toBeLessThan(there!.to.x);
  expect(hosts.length).toBe(4);
  for (const { at } of hosts) expect(at.x >= 20 && at.x <= 780 && at.y > 0 && at.y < 250).toBe(true);
  expect(routers.length).toBe(2);
});

test("the hops of a parking lot follow each other", () => {
  const long: [number[], number[]] = [[0, 2, 4], [5, 3, 1]];
  const names = ["hop1", "hop1b", "hop2", "hop2b", "hop3", "hop3b"];
  const { segments, hosts } = layOut(network(names, [long, [[0], [1]], [[2], [3]], [[4], [5]]]), 900, 250);
  const ends = [0, 2, 4].map((link) => [segments[link]!.from.x, segments[link]!.to.x]);
  expect(ends[0][1]).toBe(ends[1][0]);
  expect(ends[1][1]).toBe(ends[2][0]);
  for (const link of [0, 2, 4]) expect(segments[link + 1]!.from.x).toBe(segments[link]!.to.x);
  // Hosts between two hops are below the links: above them are queues.
  const inner = hosts.filter(({ isInner }) => isInner);
  expect(inner.map(({ flow, isSender }) => `${flow}${isSender}`)).toEqual(["1false", "2true", "2false", "3true"]);
  for (const { at } of inner) expect(at.y).toBeGreaterThan(segments[1]!.from.y);
  expect(new Set(inner.map(({ at }) => `${at.x} ${at.y}`)).size).toBe(4);
  const third = hosts.find(({ flow, isSender }) => flow === 2 && isSender)!;
  expect(third.joins.x).toBe(ends[1][0]);
});

test("access links of a flow have a row of their own", () => {
  const names = ["there", "back", "f0.up", "f1.up"];
  const about = network(names, [[[2, 0], [1]], [[3, 0], [1]]]);
  const { segments } = layOut(about, 800, 250);
  expect(segments[2]!.from.y).not.toBe(segments[3]!.from.y);
  expect(segments[2]!.to).toEqual(segments[0]!.from);
  expect(segments[2]!.isShared).toBe(false);
});
