// Buttons and keys of the page, and the state of the player next to them.
import { element } from "./dom";
import { bindKeys } from "./keys";
import { SHORT_S, SPEEDS, type Player } from "./player";
import { chooseScheme, isDark } from "./theme";

/** Events to go to. */
export type Jump = "losses" | "marks" | "timeouts";

/** What buttons and keys do. */
interface ToolbarActions {
  player: Player;
  step: (back: boolean) => void;
  jump: (what: Jump) => void;
  /** Charts show some time around the one shown, or everything. */
  showNear: () => void;
  showAll: () => void;
  unfollow: () => void;
  /** The part of a link after `#`. */
  link: () => string;
  command: () => string;
  /** Whether the reader sets a window now, and what changes it. */
  isSteered: () => boolean;
  changeWindow: (segments: number) => void;
  /** Light has become dark, or the other way. */
  recolour: () => void;
}

export function bindToolbar(actions: ToolbarActions): void {
  const { player, step, jump } = actions;
  const on = (id: string, act: () => void) => element(id).addEventListener("click", act);
  on("play", () => player.toggle());
  on("step", () => step(false));
  on("back", () => step(true));
  on("loss", () => jump("losses"));
  on("mark", () => jump("marks"));
  on("timeout", () => jump("timeouts"));
  on("near", actions.showNear);
  on("all", actions.showAll);
  on("unfollow", actions.unfollow);
  on("share", () => void copy("Link", `${address()}#${actions.link()}`));
  on("command", () => void copy("Command", actions.command()));
  on("scheme", () => {
    chooseScheme(isDark() ? "light" : "dark");
    actions.recolour();
  });
  const speeds = element<HTMLSelectElement>("speed");
  speeds.replaceChildren(...SPEEDS.map((speed) => new Option(`${speed}×`, String(speed))));
  speeds.addEventListener("change", () => player.setSpeed(Number(speeds.value)));
  const scrub = element<HTMLInputElement>("scrub");
  scrub.addEventListener("input", () => player.seek(Number(scrub.value)));
  bindPageKeys(actions);
}

/** Shows where the player is. */
export function showPlayer({ time, speed, isPlaying }: Player, end: number): void {
  const scrub = element<HTMLInputElement>("scrub");
  scrub.max = String(end);
  scrub.step = String(Math.min(1e-4, end / 1e3));
  scrub.value = String(time);
  element("time").textContent = end < SHORT_S ? `${(time * 1e3).toFixed(4)} ms` : `${time.toFixed(4)} s`;
  element<HTMLSelectElement>("speed").value = String(speed);
  const play = element("play");
  play.textContent = isPlaying ? "⏸" : "▶";
  play.setAttribute("aria-label", isPlaying ? "Pause" : "Play");
}

function bindPageKeys({ player, step, jump, isSteered, changeWindow }: ToolbarActions): void {
  bindKeys({
    anywhere: {
      " ": () => player.toggle(),
      l: () => jump("losses"),
      m: () => jump("marks"),
      t: () => jump("timeouts"),
      "+": () => player.changeSpeed(1),
      "-": () => player.changeSpeed(-1),
    },
    exceptOnSliders: () => ({
      ArrowRight: () => step(false),
      ArrowLeft: () => step(true),
      Home: () => player.seek(0),
      End: () => player.seek(Infinity),
      // Otherwise these scroll the page.
      ...(isSteered() && {
        ArrowUp: ({ shiftKey }: KeyboardEvent) => changeWindow(shiftKey ? 10 : 1),
        ArrowDown: ({ shiftKey }: KeyboardEvent) => changeWindow(shiftKey ? -10 : -1),
      }),
    }),
  });
}

/** This page without what follows `#`. */
function address(): string {
  const { origin, pathname, protocol } = location;
  return protocol === "file:" ? `file://${pathname}` : origin + pathname;
}

/** A page from a file may not write to the clipboard: the text is then shown. */
async function copy(what: string, text: string): Promise<void> {
  document.body.dataset.copied = text;
  try {
    await navigator.clipboard.writeText(text);
    element("status").textContent = `${what} copied.`;
  } catch {
    prompt(what, text);
  }
}
