// You are the controller.
import { execFileSync } from "node:child_process";
import { existsSync, mkdtempSync } from "node:fs";
import { tmpdir } from "node:os";
import { join } from "node:path";
import { score } from "../src/byhand";
import { defaults } from "../src/settings";
import { simulate } from "./native";
import { done, expect, facts, test } from "./page";

const TOOLS = join(import.meta.dirname, "../../.venv/bin");
const [WEIR, PYTHON] = [join(TOOLS, "weir"), join(TOOLS, "python")];

test("a window set by hand is in the run, the score, the link and the command", async ({ lab }) => {
  const page = await lab("#stack=you&stack=cubic&duration_s=6");
  const before = await facts(page);
  await page.locator("#speed").selectOption("3");
  await page.evaluate(() => (document.body.dataset.state = ""));
  await page.locator("#start").click();
  await page.locator("h1").click();
  await page.waitForFunction(() => Number.parseFloat(document.querySelector("#time")!.textContent!) > 1);
  await page.keyboard.press("Shift+ArrowUp");
  await page.keyboard.press("ArrowUp");
  await page.locator("#window").fill("60");
  await done(page);
  await expect(page.locator("#score")).toContainText(/Score \d+ of 100: .*Reno in your place: \d+/);
  const steered = await facts(page);
  expect(steered.hash).not.toBe(before.hash);
  const text = await page.locator("#score").textContent();

  await page.evaluate(() => (window.prompt = () => null));
  await page.locator("#share").click();
  const link = await page.waitForFunction(() => document.body.dataset.copied);
  const { hash } = new URL((await link.jsonValue())!);
  expect(decodeURIComponent(hash)).toMatch(/windows=0:10,\d+:\d+/);
  await page.evaluate(() => (document.body.dataset.copied = ""));
  await page.locator("#command").click();
  const copied = await page.waitForFunction(() => document.body.dataset.copied);
  const command = (await copied.jsonValue())!;
  const other = await lab(hash);
  expect((await facts(other)).hash).toBe(steered.hash);
  await expect(other.locator("#score")).toHaveText(text!);

  test.skip(!existsSync(WEIR), "the command needs weir in .venv");
  const folder = mkdtempSync(join(tmpdir(), "weir-by-hand-"));
  const run = command.replace("weir run", `${WEIR} run`).trimEnd() + " --out results\n";
  execFileSync("sh", ["-c", run], { cwd: folder, stdio: "ignore" });
  const read = 'import weir; print(weir.load("results/laboratory/latest").runs["trace_hash"][0])';
  expect(execFileSync(PYTHON, ["-c", read], { cwd: folder, encoding: "utf8" }).trim()).toBe(steered.hash);
});

test("the score counts the share and the delay", () => {
  const of = (windows: [number, number][]) => {
    const settings = { ...defaults(), stacks: ["you", "cubic"], duration_s: 10, windows };
    return score(simulate(settings), 0, 40, 10)!;
  };
  const [little, fair, greedy] = [of([[0, 1]]), of([[0, 30]]), of([[0, 200]])];
  expect(little.goodput).toBeLessThan(1);
  expect(fair.goodput).toBeGreaterThan(2);
  expect(greedy.goodput).toBeGreaterThan(5);
  // More than the fair share earns no more than 50 points, and its queue costs some.
  expect(fair.points).toBeGreaterThan(little.points);
  expect(greedy.points).toBeLessThan(fair.points);
  expect(greedy.delay).toBeGreaterThan(fair.delay);
});
