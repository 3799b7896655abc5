// What the page runs: the controls, or the text of a scenario file with what the controls change of it.

import { FIRST, fromText, REPLAY, stackOf, toText, YOU, type Input } from "./byhand";
import { catalogue } from "./catalogue";

export interface Settings {
  /** A stack per flow. */
  stacks: string[];
  rate_mbps: number;
  rtt_ms: number;
  queue_bdp: number;
  /** Name of a queue discipline. */
  discipline: string;
  /** Whether hosts and the queue use ECN. */
  ecn: boolean;
  loss_percent: number;
  duration_s: number;
  seed: bigint;
  /** The windows of stack `you`, which the reader has set. */
  windows: Input[];
  /** The text of a scenario file; the values above then count where they are among `changed`. */
  text?: string;
  changed: string[];
}

export const MAX_STACKS = 4;

/** The keys of controls that a scenario file has too. */
export const DIALS = ["rate_mbps", "rtt_ms", "queue_bdp", "loss_percent"] as const;
export type Dial = (typeof DIALS)[number];

export function defaults(): Settings {
  return {
    stacks: ["reno", "cubic"],
    rate_mbps: 10,
    rtt_ms: 40,
    queue_bdp: 1,
    discipline: "droptail",
    ecn: false,
    loss_percent: 0,
    duration_s: 60,
    seed: 1n,
    windows: FIRST,
    changed: [],
  };
}

/** The scenario file of the controls. */
export function scenarioText(settings: Settings): string {
  if (settings.text !== undefined) return settings.text;
  const { rate_mbps, rtt_ms, loss_percent, duration_s } = settings;
  const lines = [
    'name = "laboratory"',
    "",
    "[topology]",
    `rate = "${rate_mbps}mbit"`,
    `rtt = "${rtt_ms}ms"`,
    `queue = ${queueValue(settings)}`,
  ];
  if (loss_percent > 0) lines.push("", "[topology.forward]", `loss = "${loss_percent}%"`);
  flowNames(settings.stacks).forEach((name, index) => {
    const stack = settings.stacks[index];
    const written = stack === YOU ? stackOf(settings.windows) : stack;
    lines.push("", "[[flow]]", `name = ${quoted(name)}`, `stack = ${quoted(written)}`);
    if (settings.ecn) lines.push("ecn = true");
  });
  lines.push("", "[measure]", `duration = "${duration_s}s"`, "");
  if (isByHand(settings)) lines.push("[controllers]", `"by_hand.py" = '''\n${REPLAY}'''`, "");
  return lines.join("\n");
}

/** Whether the reader sets the window of a flow. */
export function isByHand({ text, stacks }: Settings): boolean {
  return text === undefined && stacks.includes(YOU);
}

/** What is changed of a scenario file, as `KEY=VALUE`. */
export function overrides(settings: Settings): string[] {
  if (settings.text === undefined) return [];
  const values: Record<Dial, string> = {
    rate_mbps: `topology.rate=${settings.rate_mbps}mbit`,
    rtt_ms: `topology.rtt=${settings.rtt_ms}ms`,
    queue_bdp: `topology.queue=${settings.queue_bdp}bdp`,
    loss_percent: `topology.forward.loss=${settings.loss_percent}%`,
  };
  return DIALS.filter((dial) => settings.changed.includes(dial)).map((dial) => values[dial]);
}

/** The commands that run the same in a terminal: the trace hash is equal. */
export function command(settings: Settings): string {
  const set = overrides(settings).map((setting) => ` --set ${setting}`).join("");
  const text = scenarioText(settings);
  const end = text.endsWith("\n") ? "" : "\n";
  const trust = isByHand(settings) ? " --trust-controllers" : "";
  return (
    `cat > laboratory.toml <<'SCENARIO'\n${text}${end}SCENARIO\n` +
    `weir run laboratory.toml --repeat 1 --seed ${settings.seed}${set}${trust}\n`
  );
}

/** The part of a link after `#`. */
export function toFragment(settings: Settings, time: number): string {
  const fields = new URLSearchParams();
  if (settings.text !== undefined) fields.set("text", settings.text);
  else {
    settings.stacks.forEach((stack) => fields.append("stack", stack));
    fields.set("discipline", settings.discipline);
    if (settings.ecn) fields.set("ecn", "true");
    fields.set("duration_s", String(settings.duration_s));
    if (isByHand(settings)) fields.set("windows", toText(settings.windows, ","));
  }
  const dials = settings.text === undefined ? [...DIALS] : settings.changed;
  for (const dial of dials) fields.set(dial, String(settings[dial as Dial]));
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
  const settings = defaults();
  const number = (key: string, fallback: number): number => {
    const value = Number(fields.get(key) ?? NaN);
    return Number.isFinite(value) && value >= 0 ? value : fallback;
  };
  const stacks = fields.getAll("stack").slice(0, MAX_STACKS);
  if (stacks.length > 0) settings.stacks = stacks;
  settings.windows = fromText(fields.get("windows") ?? "", ",") ?? settings.windows;
  settings.text = fields.get("text") ?? undefined;
  settings.discipline = fields.get("discipline") ?? settings.discipline;
  settings.ecn = fields.get("ecn") === "true";
  settings.duration_s = number("duration_s", settings.duration_s);
  for (const dial of DIALS) settings[dial] = number(dial, settings[dial]);
  if (settings.text !== undefined) settings.changed = DIALS.filter((dial) => fields.has(dial));
  const seed = fields.get("seed") ?? "";
  if (/^\d{1,20}$/.test(seed)) settings.seed = BigInt.asUintN(64, BigInt(seed));
  return { settings, time: number("t", 0), tour: fields.get("tour") ?? undefined };
}

/** A name per flow: its stack's, with a number where two are equal. */
export function flowNames(stacks: string[]): string[] {
  return stacks.map((stack, index) => {
    const before = stacks.slice(0, index).filter((other) => other === stack).length;
    return before === 0 ? stack : `${stack} ${before + 1}`;
  });
}

function queueValue(settings: Settings): string {
  const size = `"${settings.queue_bdp}bdp"`;
  if (settings.discipline === "droptail") return size;
  const about = catalogue.queues.find((queue) => queue.name === settings.discipline);
  const marks = settings.ecn && /\becn\b/.test(String(about?.parameters ?? ""));
  return `{ kind = ${quoted(settings.discipline)}, limit = ${size}${marks ? ", ecn = true" : ""} }`;
}

/** A TOML string: JSON's escapes are among TOML's. */
function quoted(text: string): string {
  return JSON.stringify(text);
}
