// The sliders: their ranges, and in which networks they have an effect.
import { isRadio, kindOf, type Dial, type Kind, type Settings } from "./settings";

export interface DialSpec {
  key: Dial;
  label: string;
  unit: string;
  min: number;
  max: number;
  /** Values grow by factors: a step of the slider is about a tenth of the value, so that two digits show it. */
  isLogarithmic: boolean;
  step: number;
  /** How much of the setting's unit is one of the slider's. */
  scale?: number;
  /** Whether it has an effect. */
  isShown: (settings: Settings) => boolean;
}

const isWired = (settings: Settings) => !isRadio(settings);
const isOwn = ({ text }: Settings) => text === undefined;
const isFabric = (settings: Settings) => FABRICS.includes(kindOf(settings));
const FABRICS: Kind[] = ["leaf-spine", "fat-tree"];

/** Kinds of networks in which a scenario has no such key. */
const WITHOUT: Partial<Record<Dial, Kind[]>> = {
  rate_mbps: ["graph", "lab-router", "radio"],
  rtt_ms: [...FABRICS, "lab-router", "radio"],
  // The relay of a laboratory has no rate, and so no BDP.
  queue_bdp: ["lab-router", "radio"],
  loss_percent: [...FABRICS, "graph"],
};

const hasKey = (dial: Dial) => (settings: Settings) => !WITHOUT[dial]?.includes(kindOf(settings));
/** Switches that pause their neighbours have queues without a limit. */
const hasPauses = ({ text }: Settings) => /^\s*pfc\s*=\s*true\b/m.test(text ?? "");

export const DIALS: DialSpec[] = [
  { key: "rate_mbps", label: "Rate", unit: "Mbit/s", min: 0.5, max: 200, isLogarithmic: true, step: 0, isShown: hasKey("rate_mbps") },
  { key: "rtt_ms", label: "Round-trip time", unit: "ms", min: 1, max: 500, isLogarithmic: true, step: 0, isShown: hasKey("rtt_ms") },
  {
    key: "queue_bdp", label: "Queue", unit: "BDP", min: 0.1, max: 10, isLogarithmic: true, step: 0,
    isShown: (settings) => hasKey("queue_bdp")(settings) && !hasPauses(settings),
  },
  { key: "loss_percent", label: "Loss", unit: "%", min: 0, max: 10, isLogarithmic: false, step: 0.1, isShown: hasKey("loss_percent") },
  {
    key: "loss_burst", label: "Lost in a row", unit: "packets", min: 1, max: 50, isLogarithmic: true, step: 0,
    isShown: (settings) => isOwn(settings) && isWired(settings) && settings.loss_model === "bursts",
  },
  {
    key: "cross_percent", label: "Cross traffic", unit: "% of the rate", min: 1, max: 90, isLogarithmic: false, step: 1,
    isShown: (settings) => isOwn(settings) && settings.cross_traffic !== "none",
  },
];

/** What differs in a fabric, whose links are faster. */
const IN_FABRIC: Partial<Record<Dial, Partial<DialSpec>>> = {
  rate_mbps: { label: "Rate of hosts’ links", unit: "Gbit/s", min: 1, max: 400, scale: 1000 },
};

/** A slider of these settings. */
export function dialOf(dial: DialSpec, settings: Settings): DialSpec {
  return isFabric(settings) ? { ...dial, ...IN_FABRIC[dial.key] } : dial;
}

/** Why sliders are not there; empty if none is missing. */
export function whyFewDials(settings: Settings): string {
  const pauses = hasPauses(settings) ? " With PFC queues have no limit." : "";
  if (isFabric(settings)) return `A fabric has no round-trip time or loss of its own: its links have delays, and its ports impairments, in the file.${pauses}`;
  if (kindOf(settings) === "graph") return `The links of a graph have rates and losses of their own, in the file.${pauses}`;
  if (kindOf(settings) === "lab-router") return "The relay of a laboratory has no rate: delays and its buffer are in the file.";
  return "";
}

const STEPS = 60;

/** Sets the range of a slider. */
export function setRange(input: HTMLInputElement, { min, max, isLogarithmic, step }: DialSpec): void {
  input.min = String(isLogarithmic ? 0 : min);
  input.max = String(isLogarithmic ? STEPS : max);
  input.step = String(isLogarithmic ? 1 : step);
}

/** The slider's place of a setting. */
export function toSlider({ min, max, isLogarithmic, scale = 1 }: DialSpec, setting: number): number {
  const value = setting / scale;
  if (!isLogarithmic) return value;
  const inside = Math.max(min, Math.min(max, value));
  return Math.round((STEPS * Math.log(inside / min)) / Math.log(max / min));
}

/** The setting at a slider's place, with two digits. */
export function fromSlider({ min, max, isLogarithmic, scale = 1 }: DialSpec, place: number): number {
  const value = isLogarithmic ? min * (max / min) ** (place / STEPS) : place;
  return Number(value.toPrecision(2)) * scale;
}
