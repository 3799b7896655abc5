// Scenarios that come with Weir, as `weir list scenarios` lists them. Those that name other files are left out:
// a page reads none.

interface Example {
  name: string;
  description: string;
  text: string;
}

const files: Record<string, string> = import.meta.glob("../../python/weir/library/*.toml", {
  query: "?raw",
  import: "default",
  eager: true,
});

export const EXAMPLES: Example[] = Object.entries(files)
  .filter(([, text]) => !/^(rate_trace|sizes|points|trace)\s*=\s*"/m.test(text))
  .map(([path, text]) => ({
    name: path.split("/").at(-1)?.replace(".toml", "") ?? path,
    description: /^description = "(.*)"$/m.exec(text)?.[1] ?? "",
    text,
  }));
