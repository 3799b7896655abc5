// One script, one style sheet and one page, which open from a server and from a file.
import { readFile } from "node:fs/promises";
import { resolve } from "node:path";
import { gzipSync } from "node:zlib";
import { defineConfig, type Plugin } from "vite";

/** Browsers refuse modules and `fetch` in a page that is opened from a file: it loads a plain script. */
function plainScript(): Plugin {
  return {
    name: "plain-script",
    enforce: "post",
    transformIndexHtml: (html) =>
      html.replace(/ type="module" crossorigin/g, " defer").replace(/ crossorigin/g, ""),
  };
}

/** `virtual:core` is the compiled simulator, compressed and as base64, so that the script contains it. */
function inlineCore(): Plugin {
  const name = "\0virtual:core";
  return {
    name: "inline-core",
    resolveId: (id) => (id === "virtual:core" ? name : undefined),
    async load(id) {
      if (id !== name) return undefined;
      const bytes = await readFile(resolve(import.meta.dirname, "core/weir_web_bg.wasm"));
      return `export default "${gzipSync(bytes, { level: 9 }).toString("base64")}";`;
    },
  };
}

export default defineConfig({
  base: "./",
  plugins: [inlineCore(), plainScript()],
  build: {
    target: "es2022",
    chunkSizeWarningLimit: 4_000,
    modulePreload: false,
    rollupOptions: {
      output: { format: "iife", entryFileNames: "lab.js", assetFileNames: "lab[extname]" },
    },
  },
});
