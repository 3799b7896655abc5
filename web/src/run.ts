// A run: the simulator moves on in slices between two frames, so that the page always answers.
import { Lab } from "./core";
import { Fate, Store, takeRows, type Description } from "./store";
import { timeInWords } from "./words";

/** A slice's length in ms: a frame of 60 Hz has 16. */
const SLICE_MS = 12;
/** Events between two looks at the clock: well below a millisecond. */
const EVENTS = 4_000;
/** What the simulator returns at the end. */
export const ENDED = 2;

export class Run {
  readonly store: Store;
  /** Time that the simulator needed, in ms. */
  spent = 0;
  isOver = false;
  private stopped = false;
  /** How many ways over links, or frames, are recorded. */
  private readonly most: number;

  private constructor(private readonly lab: Lab) {
    this.most = lab.most_recorded();
    this.store = new Store(JSON.parse(lab.describe()) as Description);
  }

  /** Reads a scenario; throws the message of what is wrong with it. */
  static start(text: string, overrides: string[], seed: bigint): Run {
    return new Run(new Lab(text, overrides, seed));
  }

  /** Runs to the end, or until `stop`. `progress` is called after each slice. */
  async simulate(progress: () => void): Promise<void> {
    while (!this.isOver && !this.stopped) {
      this.slice();
      progress();
      await nextTask();
    }
    if (this.stopped) this.lab.free();
  }

  /** Runs up to `time` at once, for a reader who sets a window while the run goes on. */
  advance(time: number): void {
    if (this.isOver || this.stopped || time <= this.store.simulated) return;
    let state = 1;
    while (state === 1) state = this.lab.advance(time, EVENTS);
    this.isOver = state === ENDED;
    takeRows(this.lab, this.store);
    this.store.simulated = Math.min(time, this.store.about.duration_s);
  }

  /** Sets the window of the flow that the reader controls. */
  setWindow(at_ms: number, segments: number): void {
    this.lab.set_window(at_ms, segments);
  }

  /** Ends the run; what it has recorded remains. */
  stop(): void {
    if (this.isOver && !this.stopped) this.lab.free();
    this.stopped = true;
  }

  get traceHash(): string {
    return this.stopped ? "" : this.lab.trace_hash();
  }

  /** Says where and why the record of packets ends before the run does; empty if it does not. */
  get limit(): string {
    const { recordedUntil, frames } = this.store;
    if (recordedUntil === Infinity) return "";
    const [what, of] = frames ? ["frames", "frames"] : ["packets", "ways of packets over links"];
    return `${what} are recorded up to ${timeInWords(recordedUntil)} only: the first ${this.most.toLocaleString("en")} ${of}`;
  }

  private slice(): void {
    const begun = performance.now();
    let state = 1;
    while (state === 1 && performance.now() - begun < SLICE_MS) {
      state = this.lab.advance(Infinity, EVENTS);
    }
    this.isOver = state === ENDED;
    takeRows(this.lab, this.store);
    this.spent += performance.now() - begun;
  }
}

/** What a run was, in a line. */
export function factsOf({ store, traceHash }: Run, seed: bigint): string {
  const { frames, recordedUntil, sent, fate, losses, marks, timeouts } = store;
  const damaged = fate.values.includes(Fate.Damaged) ? " or damaged" : "";
  return [
    `trace hash ${traceHash}`,
    `seed ${seed}`,
    ...(frames ? [`${frames.length} frames`, `${frames.lost} not read`] : [`${sent.length} packets`]),
    `${losses.length} dropped${damaged}`,
    `${marks.length} marked`,
    `${timeouts.length} timeouts`,
    ...(recordedUntil < Infinity ? [`all but timeouts up to ${timeInWords(recordedUntil)}`] : []),
  ].join(" · ");
}

/** Lets the browser handle input and draw. */
function nextTask(): Promise<void> {
  return new Promise((resolve) => {
    const { port1, port2 } = new MessageChannel();
    port1.onmessage = () => resolve();
    port2.postMessage(null);
  });
}
