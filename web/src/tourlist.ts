// The tours that come with the page.
import type { Tour } from "./tours";

const files: Record<string, Tour> = import.meta.glob("./tours/*.json", { import: "default", eager: true });

/** Tours by the name of their file, in the order of the list. */
export const TOURS = new Map(
  Object.entries(files)
    .map(([path, tour]): [string, Tour] => [path.split("/").at(-1)!.replace(".json", ""), tour])
    .sort(([, a], [, b]) => a.order - b.order),
);
