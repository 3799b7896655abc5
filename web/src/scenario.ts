// The scenario file of the controls, and the command that runs it.
import { REPLAY, stackOf, YOU } from "./byhand";
import { catalogue } from "./catalogue";
import { isByHand, overrides, type Settings } from "./settings";

/** The text of the scenario: of the file that is open, or of the controls. */
export function scenarioText(settings: Settings): string {
  if (settings.text !== undefined) return settings.text;
  const lines = ['name = "laboratory"', "", ...topologyLines(settings)];
  flowNames(settings.stacks).forEach((name, index) => {
    const stack = settings.stacks[index];
    lines.push("", "[[flow]]", `name = ${quoted(name)}`);
    lines.push(`stack = ${quoted(stack === YOU ? stackOf(settings.windows) : stack)}`);
    if (settings.ecn && settings.topology !== "radio") lines.push("ecn = true");
  });
  lines.push(...crossTrafficLines(settings));
  lines.push("", "[measure]", `duration = "${settings.duration_s}s"`, "");
  if (isByHand(settings)) lines.push("[controllers]", `"by_hand.py" = '''\n${REPLAY}'''`, "");
  return lines.join("\n");
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

/** A name per flow: its stack's, with a number where two are equal. */
export function flowNames(stacks: string[]): string[] {
  return stacks.map((stack, index) => {
    const before = stacks.slice(0, index).filter((other) => other === stack).length;
    return before === 0 ? stack : `${stack} ${before + 1}`;
  });
}

function topologyLines(settings: Settings): string[] {
  const feedback = feedbackOf(settings.stacks);
  const agents = feedback ? [`feedback = { kind = "${feedback}" }`] : [];
  if (settings.topology === "radio") {
    const lines = ["[topology]", 'kind = "radio"', "", "[topology.radio]", 'placement = "chain"', `hops = ${settings.hops}`];
    lines.push('routing = "aodv"', ...agents);
    // Of a radio network this is what is lost beyond the MAC's own retransmissions.
    if (settings.loss_percent > 0) lines.push(`packet_error = "${settings.loss_percent}%"`);
    return lines;
  }
  const lines = ["[topology]"];
  if (settings.topology !== "dumbbell") lines.push(`kind = "${settings.topology}"`, `hops = ${settings.hops}`);
  const { rate_mbps, rtt_ms } = settings;
  lines.push(`rate = "${rate_mbps}mbit"`, `rtt = "${rtt_ms}ms"`, `queue = ${queueValue(settings)}`, ...agents);
  if (settings.loss_percent > 0) lines.push("", "[topology.forward]", lossLine(settings));
  return lines;
}

function queueValue(settings: Settings): string {
  const size = `"${settings.queue_bdp}bdp"`;
  if (settings.discipline === "droptail") return size;
  const about = catalogue.queues.find((queue) => queue.name === settings.discipline);
  const marks = settings.ecn && /\becn\b/.test(String(about?.parameters ?? ""));
  return `{ kind = ${quoted(settings.discipline)}, limit = ${size}${marks ? ", ecn = true" : ""} }`;
}

/** The key of the loss model: the mean loss is the same in all of them. */
function lossLine({ loss_model, loss_percent, loss_burst }: Settings): string {
  if (loss_model === "damage") return `corrupt = "${loss_percent}%"`;
  if (loss_model === "single") return `loss = "${loss_percent}%"`;
  // The bad state loses all, and lasts `loss_burst` packets on average. Its share of time is the mean loss.
  const leave = 100 / loss_burst;
  const enter = (leave * loss_percent) / (100 - loss_percent);
  return `burst_loss = { good_to_bad = "${digits(enter)}%", bad_to_good = "${digits(leave)}%" }`;
}

/** One flow more. */
function crossTrafficLines({ cross_traffic, cross_percent, topology, rate_mbps }: Settings): string[] {
  if (cross_traffic === "none") return [];
  const lines = ["", "[[flow]]", 'name = "cross traffic"'];
  const bottleneck = topology === "radio" ? RADIO_MBPS : rate_mbps;
  const rate = (share: number) => `"${digits((share / 100) * bottleneck)}mbit"`;
  if (cross_traffic === "constant") {
    lines.push('stack = "udp"', `workload = { kind = "rate", rate = ${rate(cross_percent)} }`);
  } else if (cross_traffic === "on-off") {
    // It is silent half of the time.
    const times = 'on = "500ms", off = "500ms", spread = "exponential"';
    lines.push('stack = "udp"', `workload = { kind = "on-off", rate = ${rate(2 * cross_percent)}, ${times} }`);
  } else {
    const gap = (REQUEST_KB * 8) / ((cross_percent / 100) * bottleneck);
    const sizes = `request = "${REQUEST_KB}kb", response = "1b"`;
    lines.push('stack = "cubic"', `workload = { kind = "poisson-request", ${sizes}, mean_gap = "${digits(gap)}ms" }`);
  }
  return lines;
}

/** The feedback from routers that the first of the stacks that needs one needs. */
function feedbackOf(stacks: string[]): string | undefined {
  for (const stack of stacks) {
    const controller = (stack.split("/").at(-1) ?? "").split("(")[0];
    if (/^(muzha|drai-)/.test(controller)) return "drai";
    if (["xcp", "rcp", "anti-ecn"].includes(controller)) return controller;
  }
  return undefined;
}

/** Six significant digits, without zeros at the end. */
function digits(value: number): string {
  return String(Number(value.toPrecision(6)));
}

/** A TOML string: JSON's escapes are among TOML's. */
function quoted(text: string): string {
  return JSON.stringify(text);
}

/** What a request of cross traffic sends. */
const REQUEST_KB = 50;
/** The rate of the radio channel, by default. */
const RADIO_MBPS = 2;
