// Firefox, driven by WebDriver BiDi, which it speaks itself: Playwright drives a Firefox of its own only.
import { spawn, type ChildProcess } from "node:child_process";
import { existsSync, mkdtempSync, rmSync, writeFileSync } from "node:fs";
import { tmpdir } from "node:os";
import { join } from "node:path";
import WebSocket from "ws";

const PROGRAMS = [process.env.FIREFOX, "/usr/bin/firefox-esr", "/usr/bin/firefox"];
/** The machine's own browser, if there is one. */
export const FIREFOX = PROGRAMS.find((path) => path && existsSync(path));
/** Nothing but the pages of a test: no updates, no telemetry. */
const PREFERENCES = {
  "app.normandy.enabled": false, "browser.shell.checkDefaultBrowser": false, "datareporting.policy.dataSubmissionEnabled": false,
  "network.captive-portal-service.enabled": false, "network.connectivity-service.enabled": false, "toolkit.telemetry.enabled": false,
};

interface Message {
  id?: number;
  type: "success" | "error" | "event";
  method?: string;
  params?: any;
  result?: any;
  message?: string;
}

/** A new browser with one tab. */
export class Firefox {
  /** Errors of the page, and addresses that it requested. */
  readonly problems: string[] = [];
  readonly requests: string[] = [];
  private readonly answers = new Map<number, (answer: Message) => void>();
  private socket!: WebSocket;
  private tab = "";
  private sent = 0;

  private constructor(
    private readonly program: ChildProcess,
    private readonly profile: string,
  ) {}

  static async start(width: number, height: number): Promise<Firefox> {
    const profile = mkdtempSync(join(tmpdir(), "weir-firefox-"));
    const lines = Object.entries(PREFERENCES).map(([name, value]) => `user_pref("${name}", ${JSON.stringify(value)});\n`);
    writeFileSync(join(profile, "user.js"), lines.join(""));
    const options = ["--headless", "--no-remote", "--profile", profile, "--remote-debugging-port=0"];
    const size = { MOZ_HEADLESS_WIDTH: String(width), MOZ_HEADLESS_HEIGHT: String(height) };
    const program = spawn(FIREFOX!, options, { env: { ...process.env, ...size, HOME: profile }, stdio: ["ignore", "ignore", "pipe"] });
    const firefox = new Firefox(program, profile);
    try {
      await firefox.connect();
    } catch (problem) {
      await firefox.close();
      throw problem;
    }
    return firefox;
  }

  /** Opens an address, whose page has loaded when this returns. */
  async open(url: string): Promise<void> {
    await this.send("browsingContext.navigate", { context: this.tab, url, wait: "complete" });
  }

  /** The value of an expression in the page. */
  async evaluate<T>(expression: string): Promise<T> {
    const wrapped = `Promise.resolve(${expression}).then((value) => JSON.stringify(value ?? null))`;
    const { result, exceptionDetails } = await this.send("script.evaluate", {
      expression: wrapped, target: { context: this.tab }, awaitPromise: true,
    });
    if (exceptionDetails) throw new Error(exceptionDetails.text);
    return JSON.parse(result.value) as T;
  }

  /** Waits until an expression is true. */
  async until(expression: string, patience_ms = 30_000): Promise<void> {
    const end = Date.now() + patience_ms;
    while (!(await this.evaluate<boolean>(`Boolean(${expression})`))) {
      if (Date.now() > end) throw new Error(`still not true: ${expression}`);
      await new Promise((resolve) => setTimeout(resolve, 50));
    }
  }

  /** Presses the button of the mouse at the first place, moves to the others, and lets go. */
  async drag(places: { x: number; y: number }[]): Promise<void> {
    const [first, ...rest] = places.map(({ x, y }) => ({ type: "pointerMove", x: Math.round(x), y: Math.round(y), duration: 20 }));
    const actions = [first, { type: "pointerDown", button: 0 }, ...rest, { type: "pointerUp", button: 0 }];
    await this.send("input.performActions", {
      context: this.tab, actions: [{ type: "pointer", id: "mouse", parameters: { pointerType: "mouse" }, actions }],
    });
  }

  /** Chooses files in the input of this selector. */
  async choose(selector: string, files: string[]): Promise<void> {
    const expression = `document.querySelector(${JSON.stringify(selector)})`;
    const { result } = await this.send("script.evaluate", { expression, target: { context: this.tab }, awaitPromise: false });
    await this.send("input.setFiles", { context: this.tab, element: { sharedId: result.sharedId }, files });
  }

  async close(): Promise<void> {
    this.socket?.close();
    const ended = new Promise((resolve) => this.program.once("exit", resolve));
    if (this.program.exitCode === null && this.program.kill()) await ended;
    rmSync(this.profile, { recursive: true, force: true, maxRetries: 5 });
  }

  private async connect(): Promise<void> {
    const address = await this.address();
    this.socket = new WebSocket(`${address}/session`);
    this.socket.on("message", (data) => this.take(JSON.parse(String(data)) as Message));
    await new Promise((resolve, reject) => this.socket.once("open", resolve).once("error", reject));
    await this.send("session.new", { capabilities: {} });
    await this.send("session.subscribe", { events: ["log.entryAdded", "network.beforeRequestSent"] });
    const { contexts } = await this.send("browsingContext.getTree", {});
    this.tab = contexts[0].context;
  }

  /** Where the browser listens, which it says when it is ready. */
  private address(): Promise<string> {
    return new Promise((resolve, reject) => {
      let said = "";
      this.program.once("error", reject);
      this.program.once("exit", (code) => reject(new Error(`Firefox ended with code ${code}: ${said.slice(-500)}`)));
      this.program.stderr!.on("data", (part) => {
        said += String(part);
        const found = /WebDriver BiDi listening on (ws:\/\/\S+)/.exec(said);
        if (found) resolve(found[1]);
      });
    });
  }

  private send(method: string, params: object): Promise<any> {
    const id = ++this.sent;
    return new Promise((resolve, reject) => {
      this.answers.set(id, ({ type, result, message }) => (type === "error" ? reject(new Error(`${method}: ${message}`)) : resolve(result)));
      this.socket.send(JSON.stringify({ id, method, params }));
    });
  }

  private take({ id, type, method, params, ...rest }: Message): void {
    if (id !== undefined) this.answers.get(id)?.({ type, ...rest });
    else if (method === "log.entryAdded" && params.level === "error") this.problems.push(params.text);
    else if (method === "network.beforeRequestSent") this.requests.push(params.request.url);
  }
}
