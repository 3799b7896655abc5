import { existsSync } from "node:fs";
import { defineConfig } from "@playwright/test";

/** The machine's own browser: nothing is downloaded. */
const candidates = [process.env.CHROMIUM, "/usr/bin/chromium", "/usr/bin/chromium-browser", "/usr/bin/google-chrome"];
const executablePath = candidates.find((path) => path && existsSync(path));

export default defineConfig({
  testDir: "tests",
  timeout: 60_000,
  workers: 1,
  reporter: "line",
  use: {
    viewport: { width: 1280, height: 900 },
    launchOptions: { executablePath, args: ["--no-sandbox"] },
  },
});
