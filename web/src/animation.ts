// The page as `weir ui --save` writes it: with a scenario in it.

/** The scenario in a page that `weir ui --save` wrote. */
export interface AnimationData {
  text: string;
  seed: string;
  from_s: number;
  to_s: number;
}

export function readAnimation(): AnimationData | undefined {
  const found = document.getElementById("animation")?.textContent;
  return found ? (JSON.parse(found) as AnimationData) : undefined;
}
