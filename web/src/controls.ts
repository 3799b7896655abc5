// The form: stacks, sliders and the rest of a scenario.
import { YOU } from "./byhand";
import { catalogue } from "./catalogue";
import { DIALS, dialOf, fromSlider, setRange, toSlider, whyFewDials, type DialSpec } from "./dials";
import { EXAMPLES } from "./examples";
import { element } from "./dom";
import {
  CROSS_TRAFFICS, defaults, FILE_DIALS, isByHand, isRadio, LOSS_MODELS, MAX_HOPS, MAX_STACKS, ofFile, TOPOLOGIES,
  type Dial, type Settings,
} from "./settings";
import { stackColours } from "./theme";

const isWired = (settings: Settings) => !isRadio(settings);
const isOwn = ({ text }: Settings) => text === undefined;

/** A list to choose from: what a scenario calls each entry, and what a reader calls it. */
const CHOICES = {
  topology: {
    names: TOPOLOGIES,
    labels: ["one bottleneck", "parking lot", "chain of bottlenecks", "radio chain"],
    isShown: isOwn,
  },
  loss_model: {
    names: LOSS_MODELS,
    labels: ["single packets", "in bursts (Gilbert–Elliott)", "damaged packets"],
    isShown: (settings: Settings) => isOwn(settings) && isWired(settings),
  },
  cross_traffic: {
    names: CROSS_TRAFFICS,
    labels: ["none", "constant rate (UDP)", "on and off (UDP)", "requests at random times (CUBIC)"],
    isShown: isOwn,
  },
};
const CHOICE_KEYS = Object.keys(CHOICES) as (keyof typeof CHOICES)[];

export class Controls {
  private readonly dials = new Map<Dial, { input: HTMLInputElement; output: HTMLOutputElement; name: Text }>();

  constructor(
    public settings: Settings,
    private readonly changed: () => void,
  ) {
    this.buildLists();
    DIALS.forEach((dial) => this.buildDial(dial));
    this.bind();
    this.show();
  }

  /** Takes other settings over, and runs them. */
  set(settings: Settings): void {
    this.take(settings);
    this.changed();
  }

  /** Takes other settings over. */
  take(settings: Settings): void {
    this.settings = settings;
    this.show();
  }

  /** Opens the text of a scenario file. */
  open(text: string): void {
    this.set(ofFile(text, this.settings.seed));
  }

  /** Shows a message next to the field that it is about, or below all of them. */
  showError(message: string, field: HTMLElement | undefined = fieldOf(message)): void {
    const error = element("error");
    document.querySelectorAll("#controls [aria-invalid]").forEach((input) => {
      input.removeAttribute("aria-invalid");
      input.removeAttribute("aria-describedby");
    });
    error.textContent = message;
    if (message && field && !field.closest("[hidden]")) {
      field.setAttribute("aria-invalid", "true");
      field.setAttribute("aria-describedby", error.id);
      field.parentElement!.after(error);
    } else {
      element("rest").after(error);
    }
  }

  private show(): void {
    const { settings } = this;
    const isFile = settings.text !== undefined;
    const example = EXAMPLES.find(({ text }) => text === settings.text);
    element<HTMLSelectElement>("example").value = isFile ? (example?.name ?? "file") : isByHand(settings) ? YOU : "";
    element("stacks").hidden = isFile;
    for (const key of CHOICE_KEYS) {
      const list = element<HTMLSelectElement>(key);
      list.value = settings[key];
      list.parentElement!.hidden = !CHOICES[key].isShown(settings);
    }
    const hops = element<HTMLInputElement>("hops");
    hops.value = String(settings.hops);
    hops.parentElement!.hidden = isFile || settings.topology === "dumbbell";
    // A file has its own, which the page does not change.
    for (const id of ["discipline", "ecn"]) element(id).parentElement!.hidden = isFile || isRadio(settings);
    element("duration").parentElement!.hidden = isFile;
    element<HTMLSelectElement>("discipline").value = settings.discipline;
    element<HTMLInputElement>("duration").value = String(settings.duration_s);
    element<HTMLInputElement>("seed").value = String(settings.seed);
    element<HTMLInputElement>("ecn").checked = settings.ecn;
    DIALS.forEach((dial) => this.showDial(dial));
    element("why").textContent = whyFewDials(settings);
    element("why").hidden = whyFewDials(settings) === "";
    this.showStacks();
  }

  private showDial(usual: DialSpec): void {
    const dial = dialOf(usual, this.settings);
    const { input, output, name } = this.dials.get(dial.key)!;
    const value = this.settings[dial.key];
    name.data = `${dial.label} `;
    setRange(input, dial);
    input.value = String(toSlider(dial, value));
    const { text: file, changed } = this.settings;
    const isFile = file !== undefined && !changed.some((key) => key === dial.key);
    const text = isFile ? "as in the file" : `${value / (dial.scale ?? 1)} ${dial.unit}`;
    output.textContent = text;
    input.setAttribute("aria-valuetext", text);
    const label = output.parentElement!;
    label.classList.toggle("unchanged", isFile);
    label.hidden = !dial.isShown(this.settings);
  }

  private showStacks(): void {
    const { stacks } = this.settings;
    const colours = stackColours(stacks);
    const box = element("stacks");
    box.querySelectorAll("div").forEach((row) => row.remove());
    stacks.forEach((stack, index) => box.append(this.stackRow(stack, index, colours[index])));
    if (stacks.length < MAX_STACKS) {
      const row = document.createElement("div");
      row.append(button("Add a flow", () => this.setStacks([...stacks, "bbr"])));
      box.append(row);
    }
  }

  private stackRow(stack: string, index: number, colour: string): HTMLElement {
    const row = document.createElement("div");
    const swatch = document.createElement("span");
    swatch.className = "swatch";
    swatch.style.background = colour;
    const input = document.createElement("input");
    input.value = stack;
    input.setAttribute("list", "names");
    input.setAttribute("aria-label", `Stack of flow ${index + 1}`);
    input.addEventListener("change", () => {
      const stacks = [...this.settings.stacks];
      stacks[index] = input.value.trim();
      this.setStacks(stacks);
    });
    // A list of suggestions shows only what fits the text: it opens with all names.
    input.addEventListener("focus", () => input.select());
    row.append(swatch, input);
    if (this.settings.stacks.length > 1) {
      const remove = button("✕", () => this.setStacks(this.settings.stacks.filter((_, at) => at !== index)));
      remove.setAttribute("aria-label", `Remove flow ${index + 1}`);
      row.append(remove);
    }
    return row;
  }

  private setStacks(stacks: string[]): void {
    this.set({ ...this.settings, stacks });
  }

  private buildLists(): void {
    const names = element("names");
    names.append(new Option("you set the window by hand, and have a score", YOU));
    for (const { name, description } of catalogue.controllers) names.append(new Option(description, name));
    for (const { name, description } of catalogue.recoveries) {
      names.append(new Option(description, `${name}/cubic`));
    }
    const disciplines = element<HTMLSelectElement>("discipline");
    for (const { name, description } of catalogue.queues) {
      const option = new Option(name, name);
      option.title = description;
      disciplines.append(option);
    }
    const examples = element<HTMLSelectElement>("example");
    for (const key of CHOICE_KEYS) {
      const { names, labels } = CHOICES[key];
      element(key).append(...names.map((name, at) => new Option(labels[at], name)));
    }
    examples.append(new Option("Own: a network of your choice", ""));
    examples.append(new Option("You are the controller: your window against CUBIC's", YOU));
    for (const { name, description } of EXAMPLES) examples.append(new Option(`${name}: ${description}`, name));
    const file = new Option("From a file", "file");
    file.disabled = true;
    examples.append(file);
  }

  private buildDial(dial: DialSpec): void {
    const label = document.createElement("label");
    label.className = "dial";
    // Its first part is an output, which a label would name otherwise.
    label.htmlFor = dial.key;
    const output = document.createElement("output");
    const input = document.createElement("input");
    input.type = "range";
    input.id = dial.key;
    setRange(input, dial);
    input.addEventListener("input", () => {
      this.settings[dial.key] = fromSlider(dialOf(dial, this.settings), Number(input.value));
      this.noteChange(dial.key);
      this.showDial(dial);
      this.changed();
    });
    const name = new Text(`${dial.label} `);
    label.append(name, output, input);
    element("dials").append(label);
    this.dials.set(dial.key, { input, output, name });
  }

  /** Of a scenario file only what is changed counts. */
  private noteChange(key: Dial): void {
    const inFile = FILE_DIALS.find((dial) => dial === key);
    if (inFile && !this.settings.changed.includes(inFile)) this.settings.changed.push(inFile);
  }

  private bind(): void {
    // What `apply` returns is why it refuses a value, which then stays in its field.
    const on = (id: string, apply: (input: HTMLInputElement) => string | void) => {
      const input = element<HTMLInputElement>(id);
      input.addEventListener("change", () => {
        const reason = apply(input);
        if (reason) this.showError(reason, input);
        else this.set(this.settings);
      });
    };
    on("discipline", ({ value }) => void (this.settings.discipline = value));
    on("ecn", ({ checked }) => void (this.settings.ecn = checked));
    on("duration", ({ value }) => {
      const duration = Number(value);
      if (!(duration >= 1 && duration <= 600)) return `Duration ${value || "(empty)"}: 1 to 600 seconds`;
      this.settings.duration_s = duration;
    });
    for (const key of CHOICE_KEYS) {
      on(key, ({ value }) => void Object.assign(this.settings, { [key]: value }));
    }
    on("hops", ({ value }) => {
      const hops = Number(value);
      if (!(Number.isInteger(hops) && hops >= 1 && hops <= MAX_HOPS)) {
        return `Hops ${value || "(empty)"}: a whole number from 1 to ${MAX_HOPS}`;
      }
      this.settings.hops = hops;
    });
    on("seed", ({ value }) => {
      if (!/^\d{1,20}$/.test(value)) return `Seed ${value || "(empty)"}: a whole number of at most 20 digits`;
      this.settings.seed = BigInt.asUintN(64, BigInt(value));
    });
    on("example", ({ value }) => {
      const example = EXAMPLES.find(({ name }) => name === value);
      const { seed } = this.settings;
      this.settings = example ? ofFile(example.text, seed) : { ...defaults(), seed };
      if (value === YOU) Object.assign(this.settings, { stacks: [YOU, "cubic"], duration_s: 20 });
    });
    element("controls").addEventListener("submit", (event) => event.preventDefault());
  }
}

/** The field that a message of the simulator is about: the message names a key. */
function fieldOf(message: string): HTMLElement | undefined {
  const stack = /\bflow\.(\d+)\.stack\b/.exec(message);
  if (stack) return document.querySelectorAll<HTMLElement>("#stacks div input")[Number(stack[1])];
  const found = FIELD_OF_KEY.find(([key]) => message.includes(key));
  return found && element(found[1]);
}

/** Keys of the scenario, and the fields that set them. */
const FIELD_OF_KEY: [string, string][] = [
  ["topology.hops", "hops"],
  ["topology.radio.hops", "hops"],
  ["topology.radio.packet_error", "loss_percent"],
  ["topology.rate", "rate_mbps"],
  ["topology.rtt", "rtt_ms"],
  ["topology.queue.kind", "discipline"],
  ["topology.queue.ecn", "ecn"],
  ["topology.queue", "queue_bdp"],
  ["topology.forward.burst_loss", "loss_burst"],
  ["topology.forward", "loss_percent"],
  ["topology.feedback", "topology"],
  ["measure.duration", "duration"],
  [".workload", "cross_traffic"],
];

function button(text: string, act: () => void): HTMLButtonElement {
  const made = document.createElement("button");
  made.type = "button";
  made.textContent = text;
  made.addEventListener("click", act);
  return made;
}
