// The keyboard of the page.

/** What keys do, by their name. */
interface KeyActions {
  /** Anywhere but in a field for text. */
  anywhere: Record<string, (event: KeyboardEvent) => void>;
  /** Anywhere but on a slider, which these keys move, and in a field for text. */
  exceptOnSliders: () => Record<string, (event: KeyboardEvent) => void>;
}

export function bindKeys({ anywhere, exceptOnSliders }: KeyActions): void {
  addEventListener("keydown", (event) => {
    const target = event.target as HTMLElement;
    const isTyping = target.matches("input:not([type=range]):not([type=checkbox]), select, textarea");
    if (isTyping || event.ctrlKey || event.metaKey || event.altKey) return;
    const isSlider = target.matches("input[type=range]");
    const act = anywhere[event.key] ?? (isSlider ? undefined : exceptOnSliders()[event.key]);
    if (!act || (event.key === " " && target.matches("button, summary, input, label"))) return;
    event.preventDefault();
    act(event);
  });
}
