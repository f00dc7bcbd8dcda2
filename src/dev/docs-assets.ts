import { cpSync, existsSync, mkdirSync, readFileSync, renameSync, writeFileSync } from "node:fs";
import { createRequire } from "node:module";
import { dirname, join } from "node:path";
import { fileURLToPath } from "node:url";
import * as z from "zod";
import { describeError } from "../admin/command-line/errors.ts";
import { openApiDocument } from "../docs-page/openapi/document.ts";
import { writePages } from "./page-assets.ts";

/**
 * Builds the files that the Worker serves as static assets (`[assets]` of wrangler.toml): `/openapi.json`, the page in
 * `src/docs-page`, Scalar's API reference, and the pages at `/console` and `/pass`. npm runs this on installation, and before
 * `npm start` and `npm test`, and `deploy` before it uploads; by hand, it is `npm run docs:build`.
 */

const PROJECT = fileURLToPath(new URL("../../", import.meta.url));
const SOURCE = join(PROJECT, "src/docs-page");
const ASSETS = join(PROJECT, "dist/assets");
const SCRIPT = join(ASSETS, "docs/scalar.js");

const PACKAGE = "@scalar/fastify-api-reference";
const packageSchema = z.object({ version: z.string() });
const packageFolder = join(dirname(createRequire(import.meta.url).resolve(PACKAGE)), "..");

/** First line of the script. It names the version that it was built from, so that the script is built once per version. */
function banner(): string {
  const { version } = packageSchema.parse(JSON.parse(readFileSync(join(packageFolder, "package.json"), "utf8")));
  return `/*! Scalar API reference, from ${PACKAGE} ${version}`;
}

interface Route {
  url: string;
  handler(request: unknown, reply: unknown): string;
}

/**
 * Scalar publishes the reference as one script, in a package with 280 dependencies. Its plugin for Fastify contains the same
 * script and has few dependencies. So the plugin registers its routes here, and the handler of the script's route is called.
 */
async function scalarScript(): Promise<string> {
  const { default: plugin } = await import(PACKAGE);
  const routes: Route[] = [];
  const fastify = { route: (route: Route) => routes.push(route), hasPlugin: () => false };
  plugin(fastify, { routePrefix: "/docs", configuration: { url: "/openapi.json" } }, () => {});
  const reply = { header: () => reply, send: (content: string) => content };
  const script = routes.find(({ url }) => url === "/docs/js/scalar.js")?.handler({}, reply);
  if (!script?.includes("createApiReference")) throw new Error(`${PACKAGE} no longer has the script where it was`);
  return script;
}

async function writeScript(): Promise<void> {
  const first = banner();
  if (existsSync(SCRIPT) && readFileSync(SCRIPT, "utf8").startsWith(first)) return;
  const license = readFileSync(join(packageFolder, "LICENSE"), "utf8");
  // Renamed when it is whole, because the first line alone decides whether it is built again.
  const part = join(PROJECT, `dist/scalar-${process.pid}.js`);
  writeFileSync(part, `${first}\n\n${license.trim()}\n*/\n${await scalarScript()}`, { flush: true });
  renameSync(part, SCRIPT);
}

try {
  mkdirSync(dirname(SCRIPT), { recursive: true });
  cpSync(join(SOURCE, "page.html"), join(ASSETS, "docs.html"));
  for (const name of ["page.js", "accessibility.js", "page.css", "product.css", "icon.svg"])
    cpSync(join(SOURCE, name), join(ASSETS, "docs", name));
  writeFileSync(join(ASSETS, "openapi.json"), JSON.stringify(openApiDocument(Date.now())));
  await writeScript();
  await writePages(ASSETS);
} catch (error) {
  process.stderr.write(`${describeError(error)}\n`);
  process.exitCode = 1;
}
