// What the tests of the page share.
import { expect, test as base, type Page } from "@playwright/test";
import { createServer, type Server } from "node:http";
import { readFile } from "node:fs/promises";
import { extname, join } from "node:path";

const FOLDER = join(import.meta.dirname, "../dist");
const TYPES: Record<string, string> = { ".html": "text/html", ".js": "text/javascript", ".css": "text/css" };

/** A server of the built page on loopback. */
async function serve(): Promise<{ server: Server; origin: string }> {
  const server = createServer(async (request, response) => {
    const path = new URL(request.url ?? "/", "http://localhost").pathname;
    const name = path === "/" ? "index.html" : path.slice(1);
    try {
      const body = await readFile(join(FOLDER, name));
      response.writeHead(200, { "content-type": TYPES[extname(name)] ?? "application/octet-stream" });
      response.end(body);
    } catch {
      response.writeHead(404).end();
    }
  });
  await new Promise<void>((resolve) => server.listen(0, "127.0.0.1", resolve));
  const address = server.address();
  if (address === null || typeof address === "string") throw new Error("the server has no port");
  return { server, origin: `http://127.0.0.1:${address.port}` };
}

/** The page, watched: no error, and no request but for its own files. */
export const test = base.extend<{ lab: (fragment?: string) => Promise<Page> }>({
  lab: async ({ page }, use) => {
    const { server, origin } = await serve();
    const problems: string[] = [];
    page.on("pageerror", (error) => problems.push(String(error)));
    page.on("console", (message) => message.type() === "error" && problems.push(message.text()));
    page.on("request", (request) => {
      const url = request.url();
      const isOwn = /^(data:|blob:)/.test(url) || url.startsWith(`${origin}/`);
      if (!isOwn) problems.push(`request to ${url}`);
    });
    await use(async (fragment = "") => {
      await page.goto("about:blank");
      await page.goto(`${origin}/${fragment}`);
      await done(page);
      return page;
    });
    expect(problems).toEqual([]);
    server.close();
  },
});

/** Waits until the run is over. */
export async function done(page: Page): Promise<void> {
  await page.waitForFunction(() => document.body.dataset.state === "done");
}

/** The page's facts: trace hash, packets, drops, marks, timeouts. */
export async function facts(page: Page): Promise<{ hash: string; dropped: number; text: string }> {
  const text = (await page.locator("#facts").textContent()) ?? "";
  return {
    hash: /trace hash ([0-9a-f]{16})/.exec(text)?.[1] ?? "",
    dropped: Number(/(\d+) dropped/.exec(text)?.[1]),
    text,
  };
}

export { expect };
