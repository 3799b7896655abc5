// Results: which run is shown, and with how much detail.
import { binsOfCharts } from "./charts";
import { element } from "./dom";
import { FLOW_COLUMNS, QUEUE_COLUMNS, type EngineState, type Group, type RunFacts, type RunSource } from "./engine";
import { FlowSamples, Store } from "./store";

export interface Shown {
  /** Another run is shown. */
  open: (store: Store, facts: RunFacts) => void;
  /** The store has values of another range, or more detail. */
  refresh: () => void;
  /** A line for the reader. */
  say: (text: string) => void;
  fail: (message: string) => void;
}

export class Explorer {
  private source?: RunSource;
  private run?: RunFacts;
  private store?: Store;
  private runs: RunFacts[] = [];
  /** What a reader wants to see, and whether an answer is awaited. */
  private wanted: [number, number] = [0, 0];
  private isAsking = false;
  private isStale = false;

  constructor(private readonly page: Shown) {
    element("runs").addEventListener("change", (event) => {
      void this.choose(Number((event.target as HTMLSelectElement).value));
    });
  }

  /** Waits for the results and shows their first run. Returns whether the source has or makes any. */
  async start(source: RunSource): Promise<boolean> {
    try {
      let state = await source.state();
      while (state.phase === "running") {
        this.page.say(progress(state));
        await new Promise((resolve) => setTimeout(resolve, POLL_MS));
        state = await source.state();
      }
      if (state.phase === "idle") return false;
      if (state.phase === "failed") throw new Error(state.error);
      if (state.runs.length === 0) throw new Error(`${state.name}: no run of these results succeeded`);
      this.source = source;
      this.runs = state.runs;
      element("results").hidden = false;
      element("results-name").textContent = state.name;
      element<HTMLSelectElement>("runs").replaceChildren(
        ...state.runs.map(({ run, label, seed }) => new Option(`${label}, seed ${seed}`, String(run))),
      );
      await this.choose(state.runs[0].run);
    } catch (problem) {
      this.page.fail((problem as Error).message);
    }
    return true;
  }

  /** Shows values from `from` to `to`; `undefined` is the whole run. */
  show(range: [number, number] | undefined): void {
    if (!this.store) return;
    const [from, to] = range ?? [0, this.store.about.duration_s];
    // Half a screen more on each side, to move without waiting.
    const more = range ? (to - from) / 2 : 0;
    this.wanted = [from - more, to + more];
    this.isStale = true;
    if (!this.isAsking) void this.ask();
  }

  /** When drops or marks next increase. */
  async next(what: "losses" | "marks" | "timeouts", after: number): Promise<number | undefined> {
    if (!this.source || !this.run || what === "timeouts") return undefined;
    return (await this.source.next(this.run.run, what === "losses" ? "drops" : "marks", after)) ?? undefined;
  }

  private async choose(run: number): Promise<void> {
    const { source } = this;
    const facts = (this.run = this.runs.find((one) => one.run === run));
    this.isStale = false;
    if (!source) return;
    try {
      const about = await source.about(run);
      const store = new Store(about);
      store.simulated = about.duration_s;
      fill(store, await source.detail(run, 0, about.duration_s, binsOfCharts()));
      if (facts !== this.run) return; // another one was chosen since
      this.store = store;
      this.page.open(store, about.facts);
    } catch (problem) {
      this.page.fail((problem as Error).message);
    }
  }

  /** One question at a time: what a reader wanted meanwhile is asked next. */
  private async ask(): Promise<void> {
    this.isAsking = true;
    const { source } = this;
    try {
      while (this.isStale && source === this.source) {
        const { store, run } = this;
        if (!source || !store || !run) return;
        this.isStale = false;
        const [from, to] = this.wanted;
        const groups = await source.detail(run.run, from, to, 2 * binsOfCharts());
        if (store !== this.store) continue;
        fill(store, groups);
        this.page.refresh();
        await new Promise((resolve) => setTimeout(resolve, PAUSE_MS));
      }
    } catch (problem) {
      // A folder that is no longer shown has been closed.
      if (source === this.source) this.page.fail((problem as Error).message);
    } finally {
      this.isAsking = false;
    }
  }
}

function progress(state: EngineState & { phase: "running" }): string {
  const { done, total, elapsed_s, duration_s } = state;
  return `Running natively: ${done} of ${total} runs done; now at ${elapsed_s.toFixed(1)} of ${duration_s} s`;
}

/** Replaces the values of a store by those of another range. */
function fill(store: Store, groups: Group[]): void {
  store.samples.forEach((samples) => (samples.fine = undefined));
  store.losses.length = store.marks.length = 0;
  for (const { of, index, columns } of groups) {
    if (of === "link") {
      take(store.queues[index], columns, QUEUE_COLUMNS);
      noteIncreases(columns, "drops", store.losses);
      noteIncreases(columns, "marks", store.marks);
    } else if (of === "flow") take(store.samples[index], columns, FLOW_COLUMNS);
    else take((store.samples[index].fine = new FlowSamples()), columns, FLOW_COLUMNS);
  }
  store.losses.sort((a, b) => a - b);
  store.marks.sort((a, b) => a - b);
}

type Taking = Pick<FlowSamples, "t" | "low" | "high">;

/** Moves columns of the source into those of the page, whose names are the values of `names`. */
function take(target: Taking, columns: Group["columns"], names: Record<string, string>): void {
  target.low = target.high = undefined;
  for (const [name, values] of columns) {
    const [own, limit] = name.split(".");
    const key = own === "t_s" ? "t" : names[own];
    if (key === undefined) continue;
    if (limit === "low" || limit === "high") (target[limit] ??= {})[key] = values;
    else Object.assign((target as unknown as Record<string, object>)[key], { values, length: values.length });
  }
}

/** Times of samples by which a count has increased since the one before. */
function noteIncreases(columns: Group["columns"], name: string, times: number[]): void {
  const t = columns.get("t_s")!;
  const [low, high] = [columns.get(`${name}.low`) ?? columns.get(name)!, columns.get(`${name}.high`) ?? columns.get(name)!];
  for (let at = 0; at < t.length; at++) {
    if (high[at] > (at > 0 ? high[at - 1] : low[at])) times.push(t[at]);
  }
}

const POLL_MS = 300;
/** Between two questions while a reader zooms: charts that are filled anew cost more than a frame. */
const PAUSE_MS = 100;
