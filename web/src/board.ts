// The charts and the time–sequence diagram of what is shown, in one range of time.
import { binsOfCharts, chartMakers, type Chart } from "./charts";
import { element } from "./dom";
import type { Shared } from "./gestures";
import { SequenceView } from "./sequence";
import { fabricOf, hasFlowPackets } from "./ports";
import type { Store } from "./store";
import { inTasks } from "./tasks";
import { thinned } from "./thin";

export class Board {
  /** The times that are shown; all of them, if it is undefined. */
  range?: [number, number];
  private store?: Store;
  private colours: string[] = [];
  private charts: Chart[] = [];
  private sequence?: SequenceView;
  /** Whether the charts show the range: a wheel turns more often than there are frames. */
  private isRescaled = true;
  private isFilled = true;

  constructor(
    private readonly shared: Shared,
    private readonly follow: (packet: number) => void,
  ) {
    element("flow").addEventListener("change", () => this.buildSequence());
  }

  /** Makes the charts anew, of a store whose flows have these colours. */
  build(store: Store, colours: string[]): void {
    [this.store, this.colours] = [store, colours];
    document.body.toggleAttribute("data-tabled", Boolean(store.about.is_tabled));
    document.body.toggleAttribute("data-radio", Boolean(store.about.radio));
    document.body.toggleAttribute("data-fabric", Boolean(fabricOf(store.about)));
    this.charts.forEach(({ plot }) => plot.destroy());
    element("charts").replaceChildren();
    const makers = chartMakers(element("charts"), store, colours, this.shared);
    const charts: Chart[] = (this.charts = []);
    const flows = element<HTMLSelectElement>("flow");
    const before = flows.selectedIndex;
    flows.replaceChildren(...store.about.flows.map(({ name }, at) => new Option(name, String(at))));
    flows.selectedIndex = before >= 0 && before < store.about.flows.length ? before : 0;
    this.sequence?.plot.destroy();
    this.sequence = undefined;
    this.isFilled = true;
    const steps = makers.map((make) => () => {
      charts.push(make(this.detail(store)));
      this.rescale();
    });
    // Of a long recording all at once would stop the page.
    if (store.about.is_recorded) void inTasks([...steps, () => this.buildSequence()], () => charts === this.charts);
    else [...steps, () => this.buildSequence(), () => this.noteHidden()].forEach((step) => step());
  }

  /** The store has other values. */
  refill(): void {
    const { store } = this;
    if (!store) return;
    this.isFilled = true;
    const shown = this.detail(store);
    this.charts.forEach((chart) => chart.update(shown));
    if (fabricOf(store.about) && !this.sequence) this.buildSequence();
    this.sequence?.update(store);
    this.noteHidden();
    this.rescale();
  }

  /** The store has other values, which the next frame shows. */
  refillSoon(): void {
    this.isFilled = false;
  }

  /** Shows other times in the next frame. */
  zoom(range: [number, number] | undefined): void {
    const end = this.store?.about.duration_s ?? 1;
    this.range = range && [Math.max(0, range[0]), Math.min(end, Math.max(range[1], range[0] + Math.min(1e-4, end / 1e3)))];
    this.isRescaled = false;
    this.isFilled &&= !this.store?.about.is_recorded;
  }

  /** Draws what has changed, and the mark of the time shown. */
  draw(): void {
    if (!this.isFilled) this.refill();
    else if (!this.isRescaled) this.rescale();
    else for (const plot of this.plots) plot.redraw(false, false);
  }

  resize(): void {
    for (const plot of this.plots) {
      const width = plot.root.parentElement?.clientWidth ?? plot.width;
      if (width > 0 && width !== plot.width) plot.setSize({ width, height: plot.height });
    }
  }

  private get plots() {
    return [...this.charts, ...(this.sequence ? [this.sequence] : [])].map(({ plot }) => plot);
  }

  /** Says why charts are not there. */
  private noteHidden(): void {
    const parent = element("charts");
    // The charts have paragraphs of their own, for screen readers.
    parent.querySelector(":scope > p")?.remove();
    if (this.charts.every(({ plot }) => !plot.root.parentElement?.hidden)) return;
    const note = document.createElement("p");
    note.className = "legend";
    note.textContent = "The connections of a workload have no samples: no charts of windows, round-trip times and rates.";
    parent.append(note);
  }

  private buildSequence(): void {
    const { store } = this;
    if (!store) return;
    const parent = element("diagram");
    this.sequence?.plot.destroy();
    parent.querySelector("figure")?.remove();
    const flow = element<HTMLSelectElement>("flow").selectedIndex;
    const { is_tabled, radio } = store.about;
    // The packets of a radio network are known by their frames only, those of a workload's connections by their links.
    const isOfConnections = fabricOf(store.about) && !hasFlowPackets(store);
    parent.hidden = Boolean(is_tabled || radio || isOfConnections);
    this.sequence = undefined;
    if (parent.hidden || !store.about.flows[flow]) return;
    this.sequence = new SequenceView(parent, store, flow, this.colours[flow], this.shared, this.follow);
    this.rescale();
  }

  /** What the charts show of a store: of a recording no more than they have pixels. */
  private detail(store: Store): Store {
    const [from, to] = this.range ?? [0, store.about.duration_s];
    return store.about.is_recorded ? thinned(store, from, to, binsOfCharts()) : store;
  }

  private rescale(): void {
    this.isRescaled = true;
    const [min, max] = this.range ?? [0, this.store?.about.duration_s ?? 1];
    for (const { plot } of this.charts) plot.setScale("x", { min, max });
    this.sequence?.setRange(min, max);
  }
}
