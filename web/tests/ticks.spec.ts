// Labels of axes: no browser is needed.
import { expect, test } from "@playwright/test";
import { labels } from "../src/ticks";

const every = (first: number, distance: number) => Array.from({ length: 5 }, (_, at) => first + at * distance);

test("no two ticks have the same label, however near they are", () => {
  for (const [first, distance] of [[0, 0.00025], [12.5, 1e-5], [0, 2e-7], [3, 0.1], [0, 5000]])
    for (const factor of [1, 1e3]) {
      const found = labels(every(first, distance), distance, factor);
      expect(new Set(found).size).toBe(5);
      expect(found.map((text) => Number(text.replaceAll(",", "")))).toEqual(every(first, distance).map((tick) => expect.closeTo(tick * factor, 9)));
    }
});

test("a label has no more digits than it needs", () => {
  expect(labels(every(0, 0.5), 0.5)).toEqual(["0", "0.5", "1", "1.5", "2"]);
  expect(labels(every(-1, 1), 1)).toEqual(["-1", "0", "1", "2", "3"]);
  expect(labels(every(0, 0.00025), 0.00025, 1e3)).toEqual(["0", "0.25", "0.5", "0.75", "1"]);
});
