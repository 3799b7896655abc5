// The tables of a result folder (docs/results.md), read from its files: what `weir ui` answers, without a server.
import { decompress } from "fzstd";
import { parquetMetadataAsync, parquetReadObjects, parquetScan, type AsyncBuffer, type Compressors } from "hyparquet";
import { FLOW_COLUMNS, QUEUE_COLUMNS, type EngineState, type Group, type RunFacts, type RunSource, type TabledRun } from "./engine";
import type { FlowInfo, LinkInfo } from "./store";
import { shown } from "./thin";

/** A file of a folder, with its path from there. */
export interface NamedFile {
  path: string;
  file: Blob;
}

/** Columns of one flow or link, by ascending time. */
interface Series {
  times: Float64Array;
  columns: Record<string, Float64Array>;
}

interface LoadedRun {
  about: TabledRun;
  flows: Series[];
  acks: Series[];
  queues: Series[];
}

type Row = Record<string, any>;

export class ResultTables implements RunSource {
  private runs: RunFacts[] = [];
  private loaded?: { run: number; content: Promise<LoadedRun> };

  private constructor(
    private readonly name: string,
    private readonly files: Map<string, Blob>,
    private readonly manifest: Row,
  ) {}

  /** Finds the results among the files of a folder. Throws the message of what is wrong with them. */
  static async open(found: NamedFile[]): Promise<ResultTables> {
    const folder = folderOf(found.map(({ path }) => path));
    const files = new Map(
      found.filter(({ path }) => parent(path) === folder).map(({ path, file }) => [path.slice(path.lastIndexOf("/") + 1), file]),
    );
    const name = folder || "results";
    return understood(name, async () => {
      const manifest = JSON.parse((await files.get("manifest.json")?.text()) ?? "null") as Row | null;
      if (manifest?.schema !== SCHEMA) throw new Error(`manifest.json: not of schema ${SCHEMA}, which this page reads`);
      const tables = new ResultTables(name, files, manifest);
      const columns = ["run", "label", "repeat", "seed", "sim_s", "trace_hash", "data_packets", "status"];
      const rows = await tables.rows("runs", columns);
      tables.runs = rows.filter(({ status }) => status === "ok").map(({ status: _, ...facts }) => plain(facts) as RunFacts);
      tables.runs.sort((a, b) => a.run - b.run);
      return tables;
    });
  }

  async state(): Promise<EngineState> {
    return { phase: "ready", name: this.name, runs: this.runs };
  }

  async about(run: number): Promise<TabledRun> {
    return (await this.of(run)).about;
  }

  async next(run: number, what: "drops" | "marks", after: number): Promise<number | null> {
    const { queues } = await this.of(run);
    const times = queues.flatMap(({ times, columns }) => {
      const counts = columns[what];
      const at = times.findIndex((time, row) => time > after + 1e-9 && counts[row] > (row > 0 ? counts[row - 1] : 0));
      return at >= 0 ? [times[at]] : [];
    });
    return times.length > 0 ? Math.min(...times) : null;
  }

  async detail(run: number, from: number, to: number, bins: number): Promise<Group[]> {
    const { flows, acks, queues } = await this.of(run);
    const most = this.mostAcks(run);
    const groups = (of: Group["of"], all: Series[]) =>
      all.map(({ times, columns }, index) => ({ of, index, ...packed(shown(times, columns, from, to, bins)) }));
    // The table has the first acknowledgements only: samples show what comes after them.
    const isWhole = ({ times }: Series) => times.length > 0 && (times.length < most || times[times.length - 1] >= to);
    return [
      ...groups("flow", flows),
      ...groups("acks", acks).filter(({ index }) => isWhole(acks[index])),
      ...groups("link", queues),
    ];
  }

  /** One run at a time is in memory. */
  private of(run: number): Promise<LoadedRun> {
    if (this.loaded?.run !== run) this.loaded = { run, content: understood(this.name, () => this.load(run)) };
    return this.loaded.content;
  }

  private async load(run: number): Promise<LoadedRun> {
    const facts = this.runs.find((one) => one.run === run);
    if (!facts) throw new Error(`run ${run}: there is no such run with results`);
    const own = (rows: Row[], key: string) => rows.filter((row) => row.run === run).sort((a, b) => a[key] - b[key]);
    const flows = own(await this.rows("flows", ["run", "flow", "name", "stack", "start_s"]), "flow").slice(0, MOST_GROUPS);
    const all = own(await this.rows("links", ["run", "link", "name", "monitored", "capacity_mbps"]), "link");
    // Monitored links are shown first, and come last where there are too many.
    const links = [...all.filter((row) => row.monitored), ...all.filter((row) => !row.monitored)]
      .slice(0, MOST_GROUPS)
      .sort((a, b) => a.link - b.link);
    const members = [flows.map((row) => row.flow as number), links.map((row) => row.link as number)];
    const [flowNames, ackNames] = [Object.keys(FLOW_COLUMNS), ["acked_bytes", "cwnd_bytes", "ssthresh_bytes", "srtt_ms"]];
    return {
      about: {
        name: facts.label, duration_s: facts.sim_s, radio: null, is_tabled: true, facts,
        flows: flows.map(flowInfo), links: links.map(linkInfo),
      },
      flows: await this.series("samples", run, "flow", members[0], flowNames),
      acks: await this.series("acks", run, "flow", members[0], ackNames),
      queues: await this.series("queues", run, "link", members[1], [...Object.keys(QUEUE_COLUMNS), "drops", "marks"]),
    };
  }

  private mostAcks(run: number): number {
    const label = this.runs.find((facts) => facts.run === run)?.label;
    const found = (this.manifest.cases as Row[]).find((one) => one.label === label);
    return Number(found?.scenario.measure.acks ?? 0);
  }

  /** The rows of each member, of each flow or link, in a run. */
  private async series(table: string, run: number, key: string, members: number[], names: string[]): Promise<Series[]> {
    const { file } = await this.table(table);
    const scan = await parquetScan({ file, compressors: COMPRESSORS, pruningFilter: { run: { $eq: run } } });
    const wanted = ["run", key, "t_s", ...names];
    const parts: Float64Array[][] = [];
    for (const { rowStart, rowEnd } of scan.ranges) {
      const part: Float64Array[] = [];
      for (const column of wanted) part.push(numbers(await scan.readColumn({ column, rowStart, rowEnd })));
      parts.push(part);
    }
    return members.map((member) => {
      const rows = parts.map(([runs, keys]) => indices(keys.length, (row) => runs[row] === run && keys[row] === member));
      const column = (at: number) => joined(parts.map((part, index) => rows[index].map((row) => part[at][row])));
      return ordered({ times: column(2), columns: Object.fromEntries(names.map((name, at) => [name, column(at + 3)])) });
    });
  }

  private async rows(table: string, columns: string[]): Promise<Row[]> {
    const { file, names } = await this.table(table);
    return parquetReadObjects({ file, compressors: COMPRESSORS, columns: columns.filter((name) => names.has(name)) });
  }

  /** A table's file, whose checksum is that of the manifest. */
  private async table(name: string): Promise<{ file: AsyncBuffer; names: Set<string> }> {
    const blob = this.files.get(`${name}.parquet`);
    if (!blob) throw new Error(`${name}.parquet is missing`);
    if (blob.size > MOST_BYTES) {
      const size = `${Math.round(blob.size / 1e6)} MB`;
      throw new Error(`${name}.parquet: ${size} is too long; this page reads ${MOST_BYTES / 1e6} MB, and weir ui reads more`);
    }
    const content = await blob.arrayBuffer();
    const expected = (this.manifest.tables as Row | undefined)?.[`${name}.parquet`];
    // Browsers compute checksums for pages from files, from this machine and over HTTPS only.
    if (expected !== undefined && globalThis.crypto?.subtle && (await checksum(content)) !== expected) {
      throw new Error(`${name}.parquet is damaged: its checksum is not that of manifest.json`);
    }
    const { schema } = await parquetMetadataAsync(content);
    return { file: content, names: new Set(schema.map((column) => column.name)) };
  }
}

/** Turns what made-up results lead to, whatever it is, into one line. */
async function understood<T>(name: string, read: () => Promise<T>): Promise<T> {
  try {
    return await read();
  } catch (problem) {
    throw new Error(`${name}: ${(problem as Error).message.split("\n")[0]}`);
  }
}

/** The folder of the results. */
function folderOf(paths: string[]): string {
  // A folder whose name begins with a dot is not complete.
  const tables = paths.filter((path) => /(^|\/)runs\.parquet$/.test(path) && !/(^|\/)\./.test(path));
  const folders = tables.map(parent);
  if (folders.length === 1) return folders[0];
  const top = paths[0]?.split("/")[0] ?? "this folder";
  if (folders.length === 0) throw new Error(`${top}: this folder has no table runs.parquet, so it is no result folder`);
  const some = folders.slice(0, 3).join(", ") + (folders.length > 3 ? ", …" : "");
  throw new Error(`${top}: this folder has ${folders.length} result folders; open one of them: ${some}`);
}

function parent(path: string): string {
  return path.slice(0, Math.max(0, path.lastIndexOf("/")));
}

function flowInfo({ name, stack, start_s }: Row): FlowInfo {
  return { name, stack, start_s, forward: [], reverse: [] };
}

function linkInfo({ name, monitored, capacity_mbps }: Row): LinkInfo {
  return {
    name, is_monitored: monitored, rate_mbps: capacity_mbps ?? null, delay_ms: 0, limit_packets: null, limit_bytes: null,
  };
}

/** Whole numbers of 64 bits as usual ones, and no value as none: a server sends JSON. */
function plain(row: Row): Row {
  const found = Object.entries(row).filter(([, value]) => value !== null && value !== undefined);
  return Object.fromEntries(found.map(([name, value]) => [name, typeof value === "bigint" ? Number(value) : value]));
}

/** Values as doubles; what is unknown is NaN. */
function numbers(values: ArrayLike<unknown>): Float64Array {
  const found = new Float64Array(values.length);
  for (let at = 0; at < values.length; at++) {
    const value = values[at];
    found[at] = value === null || value === undefined ? NaN : Number(value);
  }
  return found;
}

/** The numbers below `length` that are wanted. */
function indices(length: number, isWanted: (at: number) => boolean): Float64Array {
  const found: number[] = [];
  for (let at = 0; at < length; at++) if (isWanted(at)) found.push(at);
  return Float64Array.from(found);
}

function joined(parts: Float64Array[]): Float64Array {
  const whole = new Float64Array(parts.reduce((sum, { length }) => sum + length, 0));
  let at = 0;
  for (const part of parts) {
    whole.set(part, at);
    at += part.length;
  }
  return whole;
}

/** The same rows by ascending time, as tables have them already. */
function ordered(series: Series): Series {
  const { times, columns } = series;
  if (times.every((time, row) => row === 0 || times[row - 1] <= time)) return series;
  const order = indices(times.length, () => true).sort((a, b) => times[a] - times[b]);
  const sorted = (values: Float64Array) => order.map((row) => values[row]);
  return {
    times: sorted(times),
    columns: Object.fromEntries(Object.entries(columns).map(([name, values]) => [name, sorted(values)])),
  };
}

/** As the server of `weir ui` names columns. */
function packed({ times, columns, low = {}, high = {} }: ReturnType<typeof shown>): Pick<Group, "rows" | "columns"> {
  const named = new Map([["t_s", times], ...Object.entries(columns)]);
  for (const [name, values] of Object.entries(low)) named.set(`${name}.low`, values);
  for (const [name, values] of Object.entries(high)) named.set(`${name}.high`, values);
  return { rows: times.length, columns: named };
}

async function checksum(content: ArrayBuffer): Promise<string> {
  const digest = new Uint8Array(await crypto.subtle.digest("SHA-256", content));
  return [...digest].map((byte) => byte.toString(16).padStart(2, "0")).join("");
}

const COMPRESSORS: Compressors = { ZSTD: (input, length) => decompress(input, new Uint8Array(length)) };
/** Of the manifest: `manifest.json` says which one it has. */
const SCHEMA = 1;
/** Of a table: a page has some gigabytes of memory. */
const MOST_BYTES = 1e9;
/** Flows and links of a run that are shown. */
const MOST_GROUPS = 64;
