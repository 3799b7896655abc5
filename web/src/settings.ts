// What the page runs: the controls, or the text of a scenario file with what the controls change of it.

import { FIRST, fromText, toText, YOU, type Input } from "./byhand";

export interface Settings {
  /** A stack per flow. */
  stacks: string[];
  /** The shape of the network. */
  topology: Topology;
  /** Of a row of bottlenecks, or of a radio chain. */
  hops: number;
  rate_mbps: number;
  rtt_ms: number;
  queue_bdp: number;
  /** Name of a queue discipline. */
  discipline: string;
  /** Whether hosts and the queue use ECN. */
  ecn: boolean;
  loss_model: LossModel;
  loss_percent: number;
  /** Packets that are lost in a row, on average. */
  loss_burst: number;
  cross_traffic: CrossTraffic;
  /** Mean rate of the cross traffic over that of the bottleneck. */
  cross_percent: number;
  duration_s: number;
  seed: bigint;
  /** The windows of stack `you`, which the reader has set. */
  windows: Input[];
  /** The text of a scenario file; the values above then count where they are among `changed`. */
  text?: string;
  changed: FileDial[];
}

export const MAX_STACKS = 4;

export const MAX_HOPS = 8;

/** What may be chosen, as links write it; the first is the default. */
export const TOPOLOGIES = ["dumbbell", "parking-lot", "chain", "radio"] as const;
export const LOSS_MODELS = ["single", "bursts", "damage"] as const;
export const CROSS_TRAFFICS = ["none", "constant", "on-off", "requests"] as const;
type Topology = (typeof TOPOLOGIES)[number];
/** Kinds of networks of a scenario file. */
const KINDS = [...TOPOLOGIES, "graph", "leaf-spine", "fat-tree", "lab-router"] as const;
export type Kind = (typeof KINDS)[number];
const KIND = new RegExp(`^\\s*(?:topology\\.)?kind\\s*=\\s*["'](${KINDS.join("|")})["']`, "m");
/** A queue with keys of its own, of which the slider changes the limit. */
const QUEUE_TABLE = /^\s*(queue\s*=\s*\{|\[topology\.queue\])/m;
type LossModel = (typeof LOSS_MODELS)[number];
type CrossTraffic = (typeof CROSS_TRAFFICS)[number];

/** The keys of sliders that a scenario file has too. */
export const FILE_DIALS = ["rate_mbps", "rtt_ms", "queue_bdp", "loss_percent"] as const;
type FileDial = (typeof FILE_DIALS)[number];
/** All sliders. */
export const DIALS = [...FILE_DIALS, "loss_burst", "cross_percent"] as const;
export type Dial = (typeof DIALS)[number];

export function defaults(): Settings {
  return {
    stacks: ["reno", "cubic"],
    topology: "dumbbell",
    hops: 3,
    rate_mbps: 10,
    rtt_ms: 40,
    queue_bdp: 1,
    discipline: "droptail",
    ecn: false,
    loss_model: "single",
    loss_percent: 0,
    loss_burst: 5,
    cross_traffic: "none",
    cross_percent: 20,
    duration_s: 60,
    seed: 1n,
    windows: FIRST,
    changed: [],
  };
}

/** Whether the reader sets the window of a flow. */
export function isByHand({ text, stacks }: Settings): boolean {
  return text === undefined && stacks.includes(YOU);
}

/** The settings of a scenario file. Its rate is where the slider begins, if it is easy to find. */
export function ofFile(text: string, seed: bigint): Settings {
  const settings = { ...defaults(), seed, text };
  const [, rate, unit] = /^\s*rate\s*=\s*["']([\d.]+)([mg])bit["']/m.exec(text) ?? [];
  if (rate) settings.rate_mbps = Number(rate) * (unit === "g" ? 1000 : 1);
  return settings;
}

/** The kind of the network. */
export function kindOf({ text, topology }: Settings): Kind {
  if (text === undefined) return topology;
  return (KIND.exec(text)?.[1] as Kind | undefined) ?? "dumbbell";
}

/** Whether the network is a radio network. */
export function isRadio(settings: Settings): boolean {
  return kindOf(settings) === "radio";
}

/** What is changed of a scenario file, as `KEY=VALUE`. */
export function overrides(settings: Settings): string[] {
  if (settings.text === undefined) return [];
  const values: Record<FileDial, string> = {
    rate_mbps: `topology.rate=${settings.rate_mbps}mbit`,
    rtt_ms: `topology.rtt=${settings.rtt_ms}ms`,
    queue_bdp: `topology.queue${QUEUE_TABLE.test(settings.text) ? ".limit" : ""}=${settings.queue_bdp}bdp`,
    loss_percent: `topology.${isRadio(settings) ? "radio.packet_error" : "forward.loss"}=${settings.loss_percent}%`,
  };
  return FILE_DIALS.filter((dial) => settings.changed.includes(dial)).map((dial) => values[dial]);
}

/** The part of a link after `#`. */
export function toFragment(settings: Settings, time: number): string {
  const fields = new URLSearchParams();
  if (settings.text !== undefined) fields.set("text", settings.text);
  else {
    settings.stacks.forEach((stack) => fields.append("stack", stack));
    for (const choice of CHOICES) fields.set(choice, settings[choice]);
    fields.set("hops", String(settings.hops));
    fields.set("discipline", settings.discipline);
    if (settings.ecn) fields.set("ecn", "true");
    fields.set("duration_s", String(settings.duration_s));
    if (isByHand(settings)) fields.set("windows", toText(settings.windows, ","));
  }
  const dials = settings.text === undefined ? [...DIALS] : settings.changed;
  for (const dial of dials) fields.set(dial, String(settings[dial]));
  fields.set("seed", String(settings.seed));
  if (time > 0) fields.set("t", time.toFixed(6));
  return fields.toString();
}

/** What a link opens. */
export interface Link {
  settings: Settings;
  time: number;
  /** Name of a tour. */
  tour?: string;
}

/** Reads a link; what it lacks or has wrong is the default. */
export function fromFragment(fragment: string): Link {
  const fields = new URLSearchParams(fragment.replace(/^#/, ""));
  const text = fields.get("text") ?? undefined;
  const settings = text === undefined ? defaults() : ofFile(text, defaults().seed);
  const number = (key: string, fallback: number): number => {
    const value = Number(fields.get(key) ?? NaN);
    return Number.isFinite(value) && value >= 0 ? value : fallback;
  };
  const stacks = fields.getAll("stack").slice(0, MAX_STACKS);
  if (stacks.length > 0) settings.stacks = stacks;
  settings.windows = fromText(fields.get("windows") ?? "", ",") ?? settings.windows;
  settings.topology = oneOf(TOPOLOGIES, fields.get("topology"));
  settings.loss_model = oneOf(LOSS_MODELS, fields.get("loss_model"));
  settings.cross_traffic = oneOf(CROSS_TRAFFICS, fields.get("cross_traffic"));
  settings.hops = Math.min(MAX_HOPS, Math.max(1, Math.round(number("hops", settings.hops))));
  settings.discipline = fields.get("discipline") ?? settings.discipline;
  settings.ecn = fields.get("ecn") === "true";
  settings.duration_s = number("duration_s", settings.duration_s);
  for (const dial of DIALS) settings[dial] = number(dial, settings[dial]);
  if (settings.text !== undefined) settings.changed = FILE_DIALS.filter((dial) => fields.has(dial));
  const seed = fields.get("seed") ?? "";
  if (/^\d{1,20}$/.test(seed)) settings.seed = BigInt.asUintN(64, BigInt(seed));
  return { settings, time: number("t", 0), tour: fields.get("tour") ?? undefined };
}

/** The keys of choices. */
const CHOICES = ["topology", "loss_model", "cross_traffic"] as const;

function oneOf<T extends string>(allowed: readonly T[], value: string | null): T {
  return allowed.find((one) => one === value) ?? allowed[0];
}
