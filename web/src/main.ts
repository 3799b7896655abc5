// The page: controls on the left, the network and its player, charts below.
import "uplot/dist/uPlot.min.css";
import "./style.css";
import { readAnimation, type AnimationData } from "./animation";
import { Board } from "./board";
import { HandPanel, score, YOU } from "./byhand";
import { Controls } from "./controls";
import { Lab, startCore } from "./core";
import { element } from "./dom";
import { Engine, type RunFacts } from "./engine";
import { Explorer } from "./explore";
import { bindFiles, openQlog } from "./files";
import { Folder } from "./folder";
import { Guide } from "./guide";
import { inWords, NetworkView } from "./network";
import { hideNumbers, showNumbers } from "./outcome";
import { explain } from "./packet";
import { Player, SHORT_S } from "./player";
import { ENDED, factsOf, Run } from "./run";
import { command, scenarioText } from "./scenario";
import { defaults, fromFragment, isByHand, overrides, toFragment, type Settings } from "./settings";
import { Store } from "./store";
import type { NamedFile } from "./tables";
import { stackColours } from "./theme";
import { bindToolbar, showPlayer, type Jump } from "./toolbar";

class Page {
  private run?: Run;
  /** What is shown: of the run, or of a file. */
  private store?: Store;
  private colours: string[] = [];
  private followed?: number;
  private pending?: ReturnType<typeof setTimeout>;
  private counted?: ReturnType<typeof setTimeout>;
  private isDrawing = false;
  private readonly network: NetworkView;
  private readonly player: Player;
  private readonly controls: Controls;
  private readonly board: Board;
  private readonly guide: Guide;
  private readonly hand: HandPanel;
  /** Whether the run goes on with the play position, and the reader sets a window. */
  private isLive = false;
  private refilled = 0;
  /** Results that `weir ui` serves, or of a folder. */
  private readonly explorer: Explorer;
  private folder?: Folder;

  constructor() {
    const { settings, time, tour } = fromFragment(location.hash);
    this.network = new NetworkView(element<HTMLCanvasElement>("network"), (packet) => this.follow(packet));
    this.player = new Player(
      () => this.store?.simulated ?? 0,
      () => this.redraw(),
      (next) => this.advance(next),
    );
    this.hand = new HandPanel((segments) => this.setWindow(segments), () => this.startByHand());
    const shared = {
      time: () => this.player.time,
      duration: () => this.store?.about.duration_s ?? 1,
      losses: () => this.store?.losses ?? [],
      seek: (at: number) => this.player.seek(at),
      zoom: (range: [number, number] | undefined) => this.zoom(range),
    };
    this.board = new Board(shared, (packet) => this.follow(packet));
    this.controls = new Controls(settings, () => this.restartSoon());
    this.guide = new Guide({
      run: (next, at) => this.open(next, at),
      show: (at, range) => {
        this.player.halt(at);
        this.zoom(range);
      },
    });
    this.explorer = new Explorer({
      open: (store, about) => this.openRun(store, about),
      refresh: () => {
        this.board.refillSoon();
        this.showNumbers();
        this.redraw();
      },
      say: (text) => (element("status").textContent = text),
      fail: (message) => this.fail(message, "These results cannot be shown."),
    });
    this.bind();
    void this.begins(tour, time);
  }

  /** Shows what the server has, if there is one; else a tour, or a run of the settings. */
  private async begins(tour: string | undefined, time: number): Promise<void> {
    const animation = readAnimation();
    if (animation) return this.play(animation);
    const engine = Engine.find();
    if (engine && (await this.explorer.start(engine))) return;
    if (tour) this.guide.open(tour);
    else await this.restart(time);
  }

  /** What `weir ui --save` wrote: a run, and the part of it to show. */
  private async play({ text, seed, from_s, to_s }: AnimationData): Promise<void> {
    this.controls.take({ ...defaults(), text, seed: BigInt(seed) });
    this.board.range = [from_s, to_s];
    await this.restart(from_s);
    this.player.halt(from_s);
  }

  /** Runs other settings, and shows a time of their run. */
  private open(settings: Settings, time: number): void {
    this.player.halt(0);
    this.board.range = undefined;
    this.controls.take(settings);
    clearTimeout(this.pending);
    void this.restart(time);
  }

  lastDrop(): { x: number; y: number } | undefined {
    return this.network.lastDrop();
  }

  /** A change restarts from the same seed; the time shown stays. */
  private restartSoon(): void {
    clearTimeout(this.pending);
    this.pending = setTimeout(() => void this.restart(this.player.time), 60);
  }

  private async restart(time: number): Promise<void> {
    this.isLive = false;
    const run = this.begin();
    if (!run) return;
    try {
      await run.simulate(() => this.progress(time));
    } catch (problem) {
      return this.fail(String(problem));
    }
    if (run === this.run) this.done(run, time);
  }

  /** A run of the settings, of which nothing is simulated yet. */
  private begin(): Run | undefined {
    const { settings } = this.controls;
    let run: Run;
    try {
      run = Run.start(scenarioText(settings), overrides(settings), settings.seed);
    } catch (problem) {
      this.fail(String(problem));
      return undefined;
    }
    this.controls.showError("");
    this.run?.stop();
    this.run = run;
    this.hand.show(isByHand(settings));
    this.showStore(run.store);
    return run;
  }

  /** Makes the page for another run or recording. */
  private showStore(store: Store): void {
    this.store = store;
    this.followed = undefined;
    this.player.fit(store.about.duration_s);
    this.colours = stackColours(store.about.flows.map((flow) => flow.stack));
    this.showPacket();
    this.build();
  }

  /** Shows what another stack has recorded, in place of a run. */
  private async openQlog(file: File): Promise<void> {
    element("status").textContent = `Reading ${file.name}…`;
    document.body.dataset.state = "running";
    const begun = performance.now();
    let store: Store;
    try {
      store = await openQlog(file);
    } catch (problem) {
      return this.fail((problem as Error).message, "This file cannot be shown.");
    }
    this.showRecording(store);
    const spent = ((performance.now() - begun) / 1000).toFixed(2);
    element("status").textContent = `${file.name}: ${store.about.duration_s.toFixed(1)} s read in ${spent} s`;
    element("facts").textContent = `${store.sent.length} packets · ${store.losses.length} lost`;
    this.ended();
  }

  /** Shows result tables, in place of a run. */
  private async openFolder(files: NamedFile[]): Promise<void> {
    element("status").textContent = "Reading the tables…";
    document.body.dataset.state = "running";
    try {
      const folder = await Folder.open(files);
      await this.explorer.start(folder);
      this.folder?.close();
      this.folder = folder;
    } catch (problem) {
      this.fail((problem as Error).message, "These results cannot be shown.");
    }
  }

  /** Shows a run of the results. */
  private openRun(store: Store, { label, seed, trace_hash, data_packets }: RunFacts): void {
    this.showRecording(store);
    element("status").textContent = `${label}, seed ${seed}: ${store.about.duration_s} s`;
    const facts = [trace_hash && `trace hash ${trace_hash}`, `seed ${seed}`, `${data_packets} packets`];
    element("facts").textContent = facts.filter(Boolean).join(" · ");
    this.ended();
  }

  /** Shows what was not simulated here. */
  private showRecording(store: Store): void {
    clearTimeout(this.pending);
    this.controls.showError("");
    this.run?.stop();
    this.run = undefined;
    this.isLive = false;
    this.board.range = undefined;
    this.player.halt(0);
    this.hand.show(false);
    this.showStore(store);
  }

  /** Begins a run that goes on with the play position: the reader sets the window of a flow. */
  private startByHand(): void {
    clearTimeout(this.pending);
    this.player.halt(0);
    this.controls.settings.windows = [[0, this.hand.window]];
    if (!this.begin()) return;
    this.isLive = true;
    this.player.time = 0;
    this.zoom(undefined);
    if (this.player.speed < 0.1) this.player.speed = 0.3;
    element("status").textContent = "You are the controller: move the slider, or press ↑ and ↓.";
    this.player.toggle();
  }

  private setWindow(segments: number): void {
    const { windows } = this.controls.settings;
    if (!this.isLive || !this.run) return;
    // The simulator has handled all that happens up to this millisecond.
    const at = Math.floor(this.run.store.simulated * 1000) + 1;
    if (at <= windows.at(-1)![0]) return;
    this.run.setWindow(at, segments);
    windows.push([at, segments]);
  }

  /** Simulates up to the play position, while the reader sets a window. */
  private advance(time: number): void {
    const { run } = this;
    if (!this.isLive || !run) return;
    run.advance(time);
    if (run.isOver) {
      this.isLive = false;
      this.player.halt(run.store.simulated);
      this.done(run, run.store.simulated);
    } else if (performance.now() - this.refilled > REFILL_MS) {
      this.refilled = performance.now();
      this.board.refill();
      this.showScore(run.store);
    }
  }

  private showScore(store: Store, reno?: Store): void {
    const { settings } = this.controls;
    if (!isByHand(settings)) return;
    const [you, full] = [settings.stacks.indexOf(YOU), settings.queue_bdp * settings.rtt_ms];
    const of = (run: Store) => score(run, you, full, run.simulated);
    this.hand.showScore(of(store), reno && of(reno));
  }

  /** Runs Reno in the place of the reader. */
  private async compareWithReno(run: Run): Promise<void> {
    const { settings } = this.controls;
    if (!isByHand(settings)) return;
    const stacks = settings.stacks.map((stack) => (stack === YOU ? "reno" : stack));
    const other = Run.start(scenarioText({ ...settings, stacks }), [], settings.seed);
    await other.simulate(() => undefined);
    if (run === this.run) this.showScore(run.store, other.store);
    other.stop();
  }

  private fail(message: string, status = "This scenario cannot be run."): void {
    this.controls.showError(message);
    element("status").textContent = status;
  }

  private progress(time: number): void {
    const store = this.run!.store;
    const wanted = Math.min(time, store.simulated);
    if (!this.player.isPlaying && this.player.time < time) this.player.time = wanted;
    element("status").textContent = `Simulating: ${lengthOf(store)} of ${store.about.duration_s} s`;
    this.redraw();
  }

  private done(run: Run, time: number): void {
    const { store } = run;
    if (!this.player.isPlaying) this.player.seek(Math.max(time, this.player.time));
    element("status").textContent =
      `${lengthOf(store)} s simulated in ${(run.spent / 1000).toFixed(2)} s` +
      (run.limit && `; ${run.limit}`);
    element("facts").textContent = factsOf(run, this.controls.settings.seed);
    this.ended();
    document.body.dataset.spent = String(run.spent);
    store.losses.sort((a, b) => a - b);
    store.marks.sort((a, b) => a - b);
    this.board.refill();
    this.redraw();
    this.guide.done(store);
    this.showScore(store);
    void this.compareWithReno(run);
  }

  /** Nothing more comes: the numbers of the flows are known. */
  private ended(): void {
    document.body.dataset.state = "done";
    this.showNumbers();
    this.redraw();
  }

  /** The numbers of the flows over the times that are shown. */
  private showNumbers(): void {
    const { store } = this;
    if (store && document.body.dataset.state === "done") {
      showNumbers(store, this.colours, this.board.range ?? [0, store.simulated || store.about.duration_s]);
    }
  }

  /** Makes the charts anew: flows or colours have changed. */
  private build(): void {
    document.body.dataset.state = "running";
    hideNumbers();
    this.board.build(this.store!, this.colours);
  }

  private zoom(range: [number, number] | undefined): void {
    this.board.zoom(range);
    this.redraw();
    if (this.store?.about.is_tabled) this.explorer.show(this.board.range);
    clearTimeout(this.counted);
    this.counted = setTimeout(() => this.showNumbers(), NUMBERS_MS);
  }

  private zoomNear(): void {
    const { time } = this.player;
    const near = Math.min(NEAR_S, NEAR_SHARE * (this.store?.about.duration_s ?? 1));
    this.zoom([time - near, time + near]);
  }

  private follow(packet: number | undefined): void {
    this.followed = packet;
    this.showPacket();
    this.redraw();
  }

  private showPacket(): void {
    const box = element("packet");
    box.hidden = this.followed === undefined;
    if (this.followed === undefined) return;
    const lines = explain(this.store!, this.followed).map((line) => {
      const paragraph = document.createElement("p");
      paragraph.textContent = line;
      return paragraph;
    });
    box.firstElementChild!.replaceChildren(...lines);
  }

  /** Draws in the next frame what has changed. */
  private redraw(): void {
    if (this.isDrawing) return;
    this.isDrawing = true;
    requestAnimationFrame(() => {
      this.isDrawing = false;
      this.draw();
    });
  }

  private draw(): void {
    if (!this.store) return;
    const { store } = this;
    const { time } = this.player;
    this.network.draw(store, this.colours, this.player, this.followed);
    showPlayer(this.player, store.about.duration_s);
    element("network").setAttribute("aria-label", inWords(store, time));
    this.board.draw();
    const { settings } = this.controls;
    if (!isByHand(settings) || this.isLive) return;
    const now = settings.windows.findLast(([at]) => at <= time * 1000);
    if (now) this.hand.follow(now[1]);
  }

  private async jump(what: Jump): Promise<void> {
    const { store, player } = this;
    let next: number | undefined;
    try {
      next = store?.about.is_tabled
        ? await this.explorer.next(what, player.time)
        : store && Store.next(store[what], player.time);
    } catch (problem) {
      return this.fail((problem as Error).message, "These results cannot be shown.");
    }
    if (next === undefined) element("status").textContent = `No later ${NAMES[what]} in this run, or none was stored.`;
    else this.player.halt(next);
  }

  private step(back: boolean): void {
    const next = this.store?.neighbour(this.player.time, back);
    if (next !== undefined) this.player.halt(next);
  }

  private bind(): void {
    bindToolbar({
      player: this.player,
      step: (back) => this.step(back),
      jump: (what) => void this.jump(what),
      showNear: () => this.zoomNear(),
      showAll: () => this.zoom(undefined),
      unfollow: () => this.follow(undefined),
      link: () => toFragment(this.controls.settings, this.player.time),
      command: () => command(this.controls.settings),
      isSteered: () => this.isLive,
      changeWindow: (by) => this.hand.change(by),
      recolour: () => {
        const { state } = document.body.dataset;
        if (this.store) this.build();
        if (state === "done") this.ended();
        this.redraw();
      },
    });
    bindFiles({
      scenario: (text) => this.controls.open(text),
      qlog: (file) => void this.openQlog(file),
      folder: (files) => void this.openFolder(files),
      fail: (message) => this.fail(message, "This file cannot be shown."),
    });
    addEventListener("resize", () => {
      this.board.resize();
      this.redraw();
    });
    addEventListener("hashchange", () => {
      const { settings, time, tour } = fromFragment(location.hash);
      if (tour) this.guide.open(tour);
      else this.open(settings, time);
    });
  }
}

/** The numbers of the flows follow a change of the times shown after this long. */
const NUMBERS_MS = 150;
/** Charts are filled again this often while a run goes on with the play position. */
const REFILL_MS = 100;
/** How much time around the one shown `Zoom here` shows, each way: some round trips. */
const NEAR_S = 0.25;
/** Of a short run at most this part of it. */
const NEAR_SHARE = 0.25;
const NAMES = { losses: "loss", marks: "mark", timeouts: "timeout" };

/** Up to where a run has got, in seconds: of a short one with more digits. */
function lengthOf({ simulated, about }: Store): string {
  return simulated.toFixed(about.duration_s < SHORT_S ? 5 : 1);
}

void startCore().then(() => {
  const page = new Page();
  /** For tests and a reader's console. */
  Object.assign(window, {
    lab: {
      lastDrop: () => page.lastDrop(),
      hash(text: string, overrides: string[], seed: number): string {
        const lab = new Lab(text, overrides, BigInt(seed));
        while (lab.advance(Infinity, 100_000) !== ENDED);
        return lab.trace_hash();
      },
    },
  });
});
