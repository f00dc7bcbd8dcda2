import { readFileSync } from "node:fs";
import { registerHooks, stripTypeScriptTypes } from "node:module";
import { join } from "node:path";
import { fileURLToPath, pathToFileURL } from "node:url";

/** TypeScript that is loaded in place of a file's own, by URL. */
const replaced = new Map<string, string>();

/** A piece of a file that is there once, and what stands there instead. */
export interface Replacement {
  from: string;
  to: string;
}

/** Has a file of `src` loaded with other pieces. Called before it is loaded. @param more what is added to its end */
export function replaceInSource(file: string, replacements: readonly Replacement[], more = ""): void {
  const path = join(import.meta.dirname, "../../../src", file);
  const { href } = pathToFileURL(path);
  let source = replaced.get(href) ?? readFileSync(path, "utf8");
  for (const { from, to } of replacements) {
    const parts = source.split(from);
    if (parts.length !== 2) throw new Error(`${file} has ${parts.length - 1} times: ${from}`);
    source = parts.join(to);
  }
  replaced.set(href, `${source}\n${more}`);
}

/** Lets Node load the Worker's modules. Called before anything of the service is loaded. */
export function prepareLoading(): void {
  registerHooks({
    // What only workerd has comes from a file beside this one.
    resolve: (specifier, context, next) =>
      specifier === "cloudflare:workers"
        ? { url: new URL("platform/workers.ts", import.meta.url).href, shortCircuit: true }
        : next(specifier, context),
    load(url, context, next) {
      const changed = replaced.get(url);
      const source = changed === undefined ? imported(url) : stripTypeScriptTypes(changed);
      return source === undefined ? next(url, context) : { format: "module", source, shortCircuit: true };
    },
  });
}

/** Wrangler's bundler imports SQL as text, and JSON without an attribute. */
function imported(url: string): string | undefined {
  const isText = url.endsWith(".sql");
  if (!isText && !url.endsWith(".json")) return undefined;
  const text = readFileSync(fileURLToPath(url), "utf8");
  return `export default ${isText ? JSON.stringify(text) : text};`;
}
