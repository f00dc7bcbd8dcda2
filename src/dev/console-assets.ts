import { cpSync, mkdirSync } from "node:fs";
import { join } from "node:path";
import { fileURLToPath } from "node:url";
import { build } from "esbuild";

const SOURCE = fileURLToPath(new URL("../console/", import.meta.url));

/** Bundles `src/console` into the Worker's static assets: one page, one script, one style sheet. */
export async function writeConsole(assets: string): Promise<void> {
  const folder = join(assets, "console");
  mkdirSync(folder, { recursive: true });
  cpSync(join(SOURCE, "page.html"), join(assets, "console.html"));
  await build({
    entryPoints: [
      { in: join(SOURCE, "main.tsx"), out: "console" },
      { in: join(SOURCE, "console.css"), out: "console" },
    ],
    outdir: folder,
    bundle: true,
    minify: true,
    format: "esm",
    target: ["chrome123", "firefox125", "safari17.5"],
    // Licences of the parts that are bundled.
    legalComments: "eof",
    logLevel: "silent",
  });
}
