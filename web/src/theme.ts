// Colours: Okabe and Ito's palette (Color Universal Design, 2008), as in Weir's reports
// (`python/weir/plots/theme.py`).

export const PALETTE = [
  "#0072b2", "#d55e00", "#009e73", "#cc79a7", "#e69f00", "#56b4e9", "#6e4b2a", "#7f7f7f",
];

/** A well-known controller has the same colour in every report. */
const USUAL: Record<string, number> = {
  reno: 0, cubic: 1, bbr: 2, vegas: 3, westwood: 4, veno: 5, dctcp: 6, none: 7,
};

/** A colour for each stack, all different for up to eight. */
export function stackColours(stacks: string[]): string[] {
  const free = PALETTE.map((_, index) => index);
  const chosen = stacks.map((stack) => {
    const usual = USUAL[controller(stack)];
    const at = free.indexOf(usual);
    return at >= 0 ? free.splice(at, 1)[0] : undefined;
  });
  return chosen.map((index, at) => PALETTE[index ?? free.shift() ?? at % PALETTE.length]);
}

export interface Theme {
  ink: string;
  soft: string;
  grid: string;
  paper: string;
  warn: string;
}

/** The colours of the style sheet, for what is drawn. */
export function theme(): Theme {
  const style = getComputedStyle(document.documentElement);
  const colour = (name: string) => style.getPropertyValue(`--${name}`).trim();
  return {
    ink: colour("ink"),
    soft: colour("soft"),
    grid: colour("grid"),
    paper: colour("paper"),
    warn: colour("warn"),
  };
}

/** Calls `changed` when light becomes dark, and sets it by hand for `choice`. */
export function chooseScheme(choice: "light" | "dark"): void {
  document.documentElement.dataset.scheme = choice;
}

export function isDark(): boolean {
  const { scheme } = document.documentElement.dataset;
  if (scheme) return scheme === "dark";
  return matchMedia("(prefers-color-scheme: dark)").matches;
}

function controller(stack: string): string {
  return (stack.split("/").at(-1) ?? "").split(/[(\s]/)[0];
}
