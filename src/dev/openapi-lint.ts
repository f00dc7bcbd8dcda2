import { spawnSync } from "node:child_process";
import { mkdirSync, writeFileSync } from "node:fs";
import { createRequire } from "node:module";
import { join } from "node:path";
import { fileURLToPath } from "node:url";
import { openApiDocument } from "../docs-page/openapi/document.ts";

/** `npm run openapi:lint`: checks the OpenAPI document against the rules of redocly.yaml, without network access. */

const PROJECT = fileURLToPath(new URL("../../", import.meta.url));
const DOCUMENT = "dist/openapi.json";

mkdirSync(join(PROJECT, "dist"), { recursive: true });
writeFileSync(join(PROJECT, DOCUMENT), `${JSON.stringify(openApiDocument(Date.now()), null, 2)}\n`);

const { resolve } = createRequire(import.meta.url);
const { status } = spawnSync(
  process.execPath,
  [join(resolve("@redocly/cli/package.json"), "../bin/cli.js"), "lint", DOCUMENT],
  {
    cwd: PROJECT,
    stdio: "inherit",
    env: { ...process.env, REDOCLY_TELEMETRY: "off", REDOCLY_SUPPRESS_UPDATE_NOTICE: "true" },
  },
);
process.exitCode = status ?? 1;
