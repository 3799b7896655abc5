// Guided tours: each step runs, highlights what exists, and states only numbers that its run has.
import { readdirSync, readFileSync } from "node:fs";
import { join } from "node:path";
import type { Page } from "@playwright/test";
import { done, expect, test } from "./page";
import { simulate } from "./native";
import { scenarioText } from "../src/scenario";
import type { Store } from "../src/store";
import { PLACES, settingsOf, textOf, valuesOf, type Step, type Tour } from "../src/tours";

const FOLDER = join(import.meta.dirname, "../src/tours");
const names = readdirSync(FOLDER).map((name) => name.replace(".json", ""));
const read = (name: string) => JSON.parse(readFileSync(join(FOLDER, `${name}.json`), "utf8")) as Tour;

test("there are eight tours of ten steps, in an order", () => {
  expect(names.length).toBe(8);
  expect(names.map((name) => read(name).order).sort()).toEqual([1, 2, 3, 4, 5, 6, 7, 8]);
  for (const name of names) {
    const { steps } = read(name);
    expect(steps.length, name).toBe(10);
    expect(steps[0].scenario, name).toBeDefined();
  }
});

/** Numbers of a text that are neither claims, nor in the scenario, nor times of the claims, nor constants. */
function unexplained({ text, claims, constants, ...step }: Step, scenario: string): string[] {
  const spans = Object.values(claims ?? {}).flatMap((claim) => [
    claim.from, claim.to, ..."at" in claim ? [claim.at] : [],
  ]);
  const known = new Set([...spans, step.time].map(String));
  for (const [number] of scenario.matchAll(/[\d.]*\d/g)) known.add(number);
  for (const number of Object.keys(constants ?? {})) known.add(number);
  const stated = text.replace(/\{\w+\}|RFC \d+( §[\d.]+\d)?|Lien, \d+/g, "").matchAll(/\d+(\.\d+)?/g);
  return [...stated].map(([number]) => number).filter((number) => !known.has(number));
}

for (const name of names) {
  test(`tour ${name}: runs have the numbers of its text`, () => {
    const tour = read(name);
    const runs = new Map<string, Store>();
    for (const [at, step] of tour.steps.entries()) {
      const where = `${name}, step ${at + 1}`;
      const settings = settingsOf(tour, at);
      const key = `${scenarioText(settings)}${settings.seed}`;
      const store = runs.get(key) ?? simulate(settings);
      runs.set(key, store);
      for (const [claim, value] of valuesOf(step, store)) {
        const { low, high } = step.claims![claim];
        expect(value, `${where}: ${claim} in ${low} to ${high}`).toBeGreaterThanOrEqual(low);
        expect(value, `${where}: ${claim} in ${low} to ${high}`).toBeLessThanOrEqual(high);
        expect(step.text, where).toContain(`{${claim}}`);
      }
      expect(textOf(step, valuesOf(step, store)), where).not.toMatch(/[…{}]|NaN/);
      expect(unexplained(step, scenarioText(settings)), where).toEqual([]);
      const end = store.about.duration_s;
      expect(step.time, where).toBeLessThanOrEqual(end);
      const [from, to] = step.range ?? [0, end];
      expect(from <= step.time && step.time <= to && to <= end, `${where}: ${step.time} is shown`).toBe(true);
      expect(Object.keys(PLACES), where).toContain(step.show);
      for (const sentence of `${step.text} ${step.try ?? ""}`.split(/[.:] /)) {
        expect(sentence.split(" ").length, `${where}: ${sentence}`).toBeLessThanOrEqual(25);
      }
    }
  });
}

/** A step's run takes a second, more where other programs have the processor. */
const ready = (page: Page, at: number) =>
  expect(page.locator("#tour")).toHaveAttribute("data-step", String(at), { timeout: 30_000 });

test("a tour runs to its end, and what it highlights is in view", async ({ lab }) => {
  const page = await lab("#tour=slow-start");
  const { steps } = read("slow-start");
  for (let at = 1; at <= steps.length; at++) {
    await ready(page, at);
    await expect(page.locator("#tour-title")).toHaveText(`Slow start, step ${at} of ${steps.length}`);
    await expect(page.locator("#tour-text")).not.toContainText(/[…{}]/);
    const shown = page.locator(".shown");
    await expect(shown).toHaveCount(1);
    await expect(shown).toBeInViewport();
    await expect(page.locator("#time")).toHaveText(`${steps[at - 1].time.toFixed(4)} s`);
    await page.locator("#tour-next").click();
  }
  await expect(page.locator("#tour")).toBeHidden();
  await expect(page.locator(".shown")).toHaveCount(0);
});

test("a step undoes what the reader has tried, and every place exists", async ({ lab }) => {
  const page = await lab("#stack=reno&duration_s=5");
  for (const place of Object.values(PLACES)) await expect(page.locator(place).first()).toBeAttached();
  await page.locator("#tours").selectOption("windows");
  await ready(page, 1);
  await page.evaluate(() => (document.body.dataset.state = ""));
  await page.locator("#rtt_ms").focus();
  await page.keyboard.press("ArrowRight");
  await page.waitForTimeout(100);
  await done(page);
  await expect(page.locator("#dials label").nth(1)).not.toContainText("100 ms");
  await page.locator("#tour-next").click();
  await ready(page, 2);
  await expect(page.locator("#dials label").nth(1)).toContainText("100 ms");
});

