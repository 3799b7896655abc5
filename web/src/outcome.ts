// Numbers of each flow over the times that are shown: goodput, share, RTT, losses.
import { element } from "./dom";
import { measure } from "./measures";
import { isLost, Kind, type Store } from "./store";

export interface FlowNumbers {
  name: string;
  stack: string;
  goodput_mbps: number;
  share_percent: number;
  rtt_ms: number;
  /** Of the data packets sent, retransmissions included; NaN where no packets are recorded. */
  lost_percent: number;
}

/** Kinds of packets that carry no data, and copies that a link made. */
const NO_DATA: number[] = [Kind.Ack, Kind.Handshake, Kind.Duplicate];

/** The numbers of each flow from `from` to `to`. */
export function flowNumbers(store: Store, from: number, to: number): FlowNumbers[] {
  const losses = lostShares(store, from, to);
  return store.about.flows.map(({ name, stack, start_s }, index) => {
    const range = { index, from: Math.max(from, start_s), to };
    return {
      name,
      stack,
      goodput_mbps: measure(store, { of: "goodput_mbps", ...range }),
      share_percent: measure(store, { of: "share_percent", index, from, to }),
      rtt_ms: measure(store, { of: "rtt_ms", ...range }),
      lost_percent: losses[index],
    };
  });
}

/** Fills the table of flows; hides it where there are none. */
export function showNumbers(store: Store, colours: string[], [from, to]: [number, number]): void {
  const flows = flowNumbers(store, from, to);
  const box = element("outcome");
  // Of the connections of a workload nothing is known here.
  box.hidden = flows.every((flow) => Object.values(flow).every((value) => typeof value === "string" || Number.isNaN(value)));
  box.querySelector("caption")!.textContent = `Flows, from ${seconds(from)} to ${seconds(to)} s`;
  const rows = flows.map((flow, index) => {
    const row = document.createElement("tr");
    const name = document.createElement("th");
    name.scope = "row";
    const swatch = document.createElement("span");
    swatch.className = "swatch";
    swatch.style.background = colours[index];
    name.append(swatch, flow.name === flow.stack ? flow.name : `${flow.name}: ${flow.stack}`);
    const { goodput_mbps, share_percent, rtt_ms, lost_percent } = flow;
    row.append(name, ...[goodput_mbps, share_percent, rtt_ms, lost_percent].map(cell));
    return row;
  });
  box.querySelector("tbody")!.replaceChildren(...rows);
}

export function hideNumbers(): void {
  element("outcome").hidden = true;
}

function cell(value: number): HTMLElement {
  const made = document.createElement("td");
  made.textContent = Number.isNaN(value) ? "–" : short(value);
  return made;
}

/** Three digits, and none behind the point where there are three before it. */
function short(value: number): string {
  return value === 0 || Math.abs(value) >= 100 ? value.toFixed(0) : value.toPrecision(3);
}

function seconds(time: number): string {
  return String(Number(time.toFixed(3)));
}

/** The lost part of each flow's data packets that were sent in a range of time. */
function lostShares({ about, frames, flow, direction, kind, sent, fate }: Store, from: number, to: number): number[] {
  const [all, lost] = [about.flows.map(() => 0), about.flows.map(() => 0)];
  // Packets of a radio network have no fate of their own: their frames have.
  const first = frames ? sent.length : sent.firstAbove(from - 1e-9);
  for (let packet = first; packet < sent.length && sent.values[packet] <= to; packet++) {
    if (direction.values[packet] !== 0 || NO_DATA.includes(kind.values[packet])) continue;
    const owner = flow.values[packet];
    all[owner] += 1;
    if (isLost(fate.values[packet])) lost[owner] += 1;
  }
  return all.map((count, index) => (count > 0 ? (100 * lost[index]) / count : NaN));
}
