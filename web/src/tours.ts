// Guided tours: each is a file in `tours/`, whose numbers are computed from the run that a step shows.
import { measure, type Measure } from "./measures";
import { defaults, fromFragment, type Settings } from "./settings";
import type { Store } from "./store";

export interface Tour {
  /** The place in the list. */
  order: number;
  title: string;
  /** What a reader learns, in a sentence. */
  about: string;
  steps: Step[];
}

export interface Step {
  /** What is seen. `{name}` is the value of a claim. */
  text: string;
  /** What the reader should try. */
  try?: string;
  /** The part of a link after `#`, or the lines of a scenario file. Absent: that of the step before. */
  scenario?: string | string[];
  /** The time that is shown, in seconds. */
  time: number;
  /** The range of time of the charts; all of the run if absent. */
  range?: [number, number];
  /** What is highlighted: a name of `PLACES`. */
  show: string;
  claims?: Record<string, Claim>;
  /** Numbers of the text that no run has, with their origin. */
  constants?: Record<string, string>;
}

/** A number in the text, and between which bounds the text is true of it. */
type Claim = Measure & { low: number; high: number; digits?: number };

/** What a step can highlight, as selectors of the page. */
export const PLACES: Record<string, string> = {
  network: "#network",
  window: '[data-chart="window"]',
  rtt: '[data-chart="rtt"]',
  queue: '[data-chart="queue"]',
  rates: '[data-chart="rates"]',
  shares: '[data-chart="shares"]',
  sequence: "#diagram figure",
  stacks: "#stacks",
  dials: "#dials",
  discipline: "#rest",
  player: "#player",
};

/** The settings of step `at`: its own, or the nearest before it. */
export function settingsOf(tour: Tour, at: number): Settings {
  const { scenario } = tour.steps.slice(0, at + 1).findLast((step) => step.scenario !== undefined) ?? {};
  if (Array.isArray(scenario)) return { ...defaults(), text: `${scenario.join("\n")}\n` };
  return fromFragment(scenario ?? "").settings;
}

/** The values of a step's claims in the run of its scenario. */
export function valuesOf(step: Step, store: Store): Map<string, number> {
  return new Map(Object.entries(step.claims ?? {}).map(([name, claim]) => [name, measure(store, claim)]));
}

/** The text of a step with the numbers of the run; before there is a run, with dots. */
export function textOf(step: Step, values?: Map<string, number>): string {
  return step.text.replace(/\{(\w+)\}/g, (_, name: string) => {
    const value = values?.get(name);
    if (value === undefined) return "…";
    return value.toFixed(step.claims?.[name].digits ?? 0).replace("-", "−");
  });
}
