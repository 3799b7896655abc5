// You are the controller: the window of one flow is set by hand while the run goes on.
import { element } from "./dom";
import { measure } from "./measures";
import type { Store } from "./store";

/** The stack whose window the reader sets. */
export const YOU = "you";

/** From a time in milliseconds on the window has a number of segments. */
export type Input = [at_ms: number, segments: number];

export const FIRST: Input[] = [[0, 10]];

/** The stack as a scenario file has it: `crates/web/src/by_hand.rs` reads it. */
export function stackOf(windows: Input[]): string {
  return `by_hand.py:ByHand(windows=${toText(windows, " ")})`;
}

export function toText(windows: Input[], separator: string): string {
  return windows.map(([at, segments]) => `${at}:${segments}`).join(separator);
}

/** Reads what `toText` writes; undefined if it is something else. */
export function fromText(text: string, separator: string): Input[] | undefined {
  const words = text.split(separator);
  if (!words.every((word) => /^\d{1,6}:\d{1,4}$/.test(word))) return undefined;
  return words.map((word) => word.split(":").map(Number) as Input);
}

/** A controller in Python that replays the windows, for `weir run`. */
export const REPLAY = `import weir


class ByHand(weir.CongestionControl):
    windows = "0:10"
    needs_own_reduction = True

    def start(self):
        words = [word.split(":") for word in self.windows.split()]
        self.inputs = [(int(at_ms) * 1_000_000, int(segments)) for at_ms, segments in words]
        self.update(0)

    def update(self, now_ns):
        while self.inputs and self.inputs[0][0] <= now_ns:
            self.cwnd = self.inputs.pop(0)[1] * self.mss

    def on_sent(self, cx, size):
        self.update(cx.now_ns)

    def on_ack(self, cx, ack):
        self.update(cx.now_ns)

    def on_congestion(self, cx, event):
        self.update(cx.now_ns)
`;

export interface Score {
  goodput: number;
  delay: number;
  /** From 0 to 100. */
  points: number;
}

/** How well flow `index` does until `until`: 50 points for its fair share, and 50 for an empty queue. */
export function score(store: Store, index: number, fullMs: number, until: number): Score | undefined {
  if (until <= START_S) return undefined;
  const link = store.about.links.findIndex(({ is_monitored }) => is_monitored);
  const fair = (store.about.links[link]?.rate_mbps ?? NaN) / store.about.flows.length;
  const range = { from: START_S, to: until, how: "mean" } as const;
  const goodput = measure(store, { of: "goodput_mbps", index, ...range });
  const delay = measure(store, { of: "queue_ms", index: link, ...range });
  const points = 50 * Math.min(1, goodput / fair) + 50 * Math.max(0, 1 - delay / fullMs);
  return Number.isNaN(points) ? undefined : { goodput, delay, points };
}

/** The panel with the slider and the score. */
export class HandPanel {
  private readonly slider = element<HTMLInputElement>("window");

  constructor(private readonly set: (segments: number) => void, start: () => void) {
    this.slider.addEventListener("input", () => this.choose(Number(this.slider.value)));
    element("start").addEventListener("click", start);
  }

  get window(): number {
    return Number(this.slider.value);
  }

  change(by: number): void {
    this.choose(this.window + by);
  }

  show(isShown: boolean): void {
    element("hand").hidden = !isShown;
  }

  /** Shows the window that was set at the time shown. */
  follow(segments: number): void {
    this.slider.value = String(segments);
    element("segments").textContent = `${segments} segments`;
  }

  showScore(own: Score | undefined, reno?: Score): void {
    const rest = reno ? ` Reno in your place: ${reno.points.toFixed(0)}.` : "";
    element("score").textContent = own
      ? `Score ${own.points.toFixed(0)} of 100: goodput ${own.goodput.toFixed(2)} Mbit/s, queue delay ${own.delay.toFixed(1)} ms.${rest}`
      : "";
  }

  private choose(segments: number): void {
    const inside = Math.max(Number(this.slider.min), Math.min(Number(this.slider.max), segments));
    this.follow(inside);
    this.set(inside);
  }
}

/** The handshake and slow start of the others do not count. */
const START_S = 1;
