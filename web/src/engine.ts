// Results in ranges of time, and the server of `weir ui` that has them: they may be too large for a page.
import type { Description } from "./store";

/** A run of the results. */
export interface RunFacts {
  run: number;
  label: string;
  repeat: number;
  seed: number;
  sim_s: number;
  trace_hash?: string;
  data_packets?: number;
}

/** What the server has: results, or a plan that runs, or nothing. */
export type EngineState =
  | { phase: "idle" }
  | { phase: "ready"; name: string; runs: RunFacts[] }
  | { phase: "failed"; error: string }
  | { phase: "running"; name: string; done: number; total: number; elapsed_s: number; duration_s: number };

/** A flow or link in a range of time. Where there are bins, columns `NAME.low` and `NAME.high` limit each. */
export interface Group {
  of: "flow" | "acks" | "link";
  index: number;
  rows: number;
  columns: Map<string, Float64Array>;
}

/** A run of the results, as the page describes its own runs. */
export interface TabledRun extends Description {
  facts: RunFacts;
}

/** What has results: a server, or a folder that a reader opened. */
export interface RunSource {
  state(): Promise<EngineState>;
  about(run: number): Promise<TabledRun>;
  /** The first time after `after` at which drops or marks have increased. */
  next(run: number, what: "drops" | "marks", after: number): Promise<number | null>;
  /** Values from `from` to `to`, in about `bins` bins. */
  detail(run: number, from: number, to: number, bins: number): Promise<Group[]>;
}

/** Columns of tables `samples` and `acks`, by what the page calls them. */
export const FLOW_COLUMNS: Record<string, string> = {
  cwnd_bytes: "cwnd", ssthresh_bytes: "ssthresh", bytes_in_flight: "inFlight", srtt_ms: "srtt", rtt_ms: "rtt",
  pacing_mbps: "pacing", goodput_mbps: "goodput", retransmits: "resent", acked_bytes: "acked",
};

/** Columns of table `queues`. */
export const QUEUE_COLUMNS: Record<string, string> = { packets: "packets", bytes: "bytes", queue_delay_ms: "delay" };

export class Engine implements RunSource {
  private constructor(private readonly token: string) {}

  /** The server of this page, if `weir ui` serves it. The token leaves the address bar, and so its history. */
  static find(): Engine | undefined {
    if (!document.querySelector('meta[name="weir-engine"]')) return undefined;
    const fields = new URLSearchParams(location.hash.slice(1));
    const token = fields.get("token");
    if (token) {
      // Of this tab and this port only: a reload keeps it.
      sessionStorage.setItem(KEY, token);
      fields.delete("token");
      history.replaceState(null, "", `${location.pathname}#${fields.toString()}`);
    }
    return new Engine(token ?? sessionStorage.getItem(KEY) ?? "");
  }

  state(): Promise<EngineState> {
    return this.json("state", {});
  }

  about(run: number): Promise<TabledRun> {
    return this.json("run", { run });
  }

  async next(run: number, what: "drops" | "marks", after: number): Promise<number | null> {
    return (await this.json<{ t_s: number | null }>("next", { run, what, after })).t_s;
  }

  async detail(run: number, from: number, to: number, bins: number): Promise<Group[]> {
    const answer = await this.ask("detail", { run, from, to, bins });
    return unpack(await answer.arrayBuffer());
  }

  private async json<T>(path: string, fields: Record<string, string | number>): Promise<T> {
    return (await (await this.ask(path, fields)).json()) as T;
  }

  private async ask(path: string, fields: Record<string, string | number>): Promise<Response> {
    const query = new URLSearchParams(Object.entries(fields).map(([key, value]) => [key, String(value)]));
    const answer = await fetch(`/api/${path}?${query}`, { headers: { "X-Weir-Token": this.token } });
    if (answer.ok) return answer;
    const { error } = (await answer.json()) as { error: string };
    throw new Error(error);
  }
}

/** A length, a header in JSON, and the columns one after the other. */
function unpack(bytes: ArrayBuffer): Group[] {
  const length = new DataView(bytes).getUint32(0, true);
  const header = new TextDecoder().decode(new Uint8Array(bytes, 4, length));
  let at = 4 + length;
  return (JSON.parse(header) as { of: Group["of"]; index: number; rows: number; columns: string[] }[]).map(
    ({ of, index, rows, columns }) => ({
      of,
      index,
      rows,
      columns: new Map(
        columns.map((name) => {
          const values = new Float64Array(bytes, at, rows);
          at += values.byteLength;
          return [name, values];
        }),
      ),
    }),
  );
}

const KEY = "weir-token";
