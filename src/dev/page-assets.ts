import { cpSync, mkdirSync } from "node:fs";
import { join } from "node:path";
import { fileURLToPath } from "node:url";
import { build } from "esbuild";

/** The bundled pages. Each is a folder of `src` with `page.html`, `main.tsx` and a style sheet of the same name. */
const PAGES = ["console", "pass"] as const;

/** Bundles the pages into the Worker's static assets: one page, one script, one style sheet each. */
export async function writePages(assets: string): Promise<void> {
  await Promise.all(PAGES.map((name) => writePage(assets, name)));
}

async function writePage(assets: string, name: (typeof PAGES)[number]): Promise<void> {
  const source = fileURLToPath(new URL(`../${name}/`, import.meta.url));
  const folder = join(assets, name);
  mkdirSync(folder, { recursive: true });
  cpSync(join(source, "page.html"), join(assets, `${name}.html`));
  await build({
    entryPoints: [
      { in: join(source, "main.tsx"), out: name },
      { in: join(source, `${name}.css`), out: name },
    ],
    outdir: folder,
    bundle: true,
    minify: true,
    format: "esm",
    target: ["chrome123", "firefox125", "safari17.5"],
    // Keeps the licences of bundled packages.
    legalComments: "eof",
    logLevel: "silent",
  });
}
