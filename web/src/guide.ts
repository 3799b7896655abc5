// The panel of a guided tour.
import { element } from "./dom";
import type { Settings } from "./settings";
import type { Store } from "./store";
import { TOURS } from "./tourlist";
import { PLACES, settingsOf, textOf, valuesOf, type Step, type Tour } from "./tours";

/** What a tour does to the page. */
export interface Guided {
  /** Runs a scenario and shows a time of it. */
  run: (settings: Settings, time: number) => void;
  /** Shows a time, and a range of the charts. */
  show: (time: number, range: [number, number] | undefined) => void;
}

export class Guide {
  private tour?: Tour;
  private at = 0;
  private values?: Map<string, number>;
  private isWaiting = false;

  constructor(private readonly page: Guided) {
    const list = element<HTMLSelectElement>("tours");
    list.append(new Option("Tours", ""));
    for (const [name, { title, about }] of TOURS) list.append(new Option(`${title}: ${about}`, name));
    list.addEventListener("change", () => this.open(list.value));
    element("tour-back").addEventListener("click", () => this.go(this.at - 1));
    element("tour-next").addEventListener("click", () => this.next());
    element("tour-close").addEventListener("click", () => this.close());
  }

  /** Opens the tour of this name, if there is one. */
  open(name: string): void {
    const tour = TOURS.get(name);
    if (!tour) return this.close();
    this.tour = tour;
    element<HTMLSelectElement>("tours").value = name;
    element("tour").hidden = false;
    document.body.classList.add("guided");
    this.go(0);
  }

  /** The run on the page is over: a step that waited for it has its numbers. */
  done(store: Store): void {
    if (!this.isWaiting || !this.tour) return;
    this.isWaiting = false;
    const step = this.tour.steps[this.at];
    this.values = valuesOf(step, store);
    this.page.show(step.time, step.range);
    this.draw(step);
    this.highlight(step);
  }

  private next(): void {
    if (this.at + 1 === this.tour?.steps.length) this.close();
    else this.go(this.at + 1);
  }

  private close(): void {
    this.tour = undefined;
    element("tour").hidden = true;
    element<HTMLSelectElement>("tours").value = "";
    document.body.classList.remove("guided");
    this.highlight();
  }

  /** Each step runs its scenario, so that what the reader has tried is undone. */
  private go(at: number): void {
    if (!this.tour) return;
    this.at = Math.max(0, at);
    this.values = undefined;
    this.isWaiting = true;
    const step = this.tour.steps[this.at];
    this.draw(step);
    this.page.run(settingsOf(this.tour, this.at), step.time);
  }

  private draw(step: Step): void {
    const { steps, title } = this.tour!;
    element("tour-title").textContent = `${title}, step ${this.at + 1} of ${steps.length}`;
    element("tour-text").textContent = textOf(step, this.values);
    const hint = element("tour-try");
    hint.hidden = step.try === undefined;
    hint.textContent = step.try ? `Try: ${step.try}` : "";
    element<HTMLButtonElement>("tour-back").disabled = this.at === 0;
    element("tour-next").textContent = this.at + 1 === steps.length ? "End" : "Next";
    element("tour").dataset.step = this.isWaiting ? "" : String(this.at + 1);
  }

  private highlight(step?: Step): void {
    document.querySelectorAll(".shown").forEach((shown) => shown.classList.remove("shown"));
    const place = step && document.querySelector(PLACES[step.show]);
    place?.classList.add("shown");
    place?.scrollIntoView({ block: "center" });
  }
}
