// Work in parts, so that the page answers between them.

/** Each step in a task of its own, while they are wanted. */
export async function inTasks(steps: (() => void)[], isWanted: () => boolean): Promise<void> {
  for (const step of steps) {
    await new Promise((resolve) => setTimeout(resolve));
    if (!isWanted()) return;
    step();
  }
}
