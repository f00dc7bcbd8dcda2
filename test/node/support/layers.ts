import { readdirSync, readFileSync } from "node:fs";
import { dirname, join, normalize } from "node:path";

/**
 * Who may import whom in `src` (docs/architecture.md). `npm run check:fast` prints each import that is not listed here.
 */

const WORKER_MODULES = "worker";

/** Each folder, and the folders and files that it may import. `worker` stands for the files beside its folders, except `index.ts`. */
export const MAY_IMPORT: Record<string, readonly string[]> = {
  shared: [],
  // The packages, and what is made of them.
  client: ["shared"],
  verify: ["shared/card-formats.ts"],
  examples: ["verify"],
  // The programs beside the Worker.
  admin: ["shared"],
  "docs-page": ["shared"],
  console: ["client", "shared/qr-code.ts"],
  pass: ["client", "shared/qr-code.ts"],
  dev: ["shared", "admin", "client", "docs-page", "examples"],
  // The Worker, from the entry to storage.
  "worker/index.ts": [
    WORKER_MODULES,
    "worker/http",
    "worker/scheduling",
    "worker/webhooks",
    "worker/allocator",
    "worker/live",
  ],
  "worker/http": [
    ...["shared", WORKER_MODULES, "worker/applications", "worker/badges", "worker/history", "worker/invitations"],
    ...["worker/dpop", "worker/users", "worker/webhooks", "worker/live"],
    ...["worker/allocator/decide/next-state.ts", "worker/storage/settings.ts"],
  ],
  "worker/badges": domain(
    "worker/allocator",
    "worker/allocator/decide",
    "worker/applications",
    "worker/keys",
    "worker/dpop",
  ),
  "worker/invitations": domain("worker/allocator", "worker/applications", "worker/badges/execute-with-settings.ts"),
  "worker/history": domain(),
  "worker/users": domain("worker/applications"),
  "worker/applications": domain("worker/keys"),
  "worker/webhooks": domain(),
  "worker/keys": domain("worker/applications/application-cache.ts"),
  "worker/dpop": ["shared", WORKER_MODULES, "worker/keys/derivation.ts"],
  "worker/scheduling": domain("worker/keys/resealing.ts", "worker/webhooks/backlog.ts"),
  "worker/allocator": domain(
    "worker/allocator/decide",
    ...["worker/applications/application-cache.ts", "worker/applications/derived-ids.ts", "worker/keys"],
    ...["worker/live/live-client.ts", "worker/scheduling/retention-days.ts", "worker/webhooks/delivery-message.ts"],
  ),
  // What a command leads to: plain functions, which know no queue, no D1 and no fence.
  "worker/allocator/decide": ["shared", "worker/allocator", "worker/storage/rows.ts"],
  "worker/live": domain(
    "worker/applications",
    "worker/badges/status-lists/bits.ts",
    "worker/badges/status-lists/list-index.ts",
    "worker/keys",
  ),
  "worker/storage": ["shared", WORKER_MODULES],
  // `context.ts` has one of each part; the others are small.
  [WORKER_MODULES]: [
    ...["shared", "worker/storage", "worker/keys", "worker/applications", "worker/badges", "worker/users"],
    ...[
      "worker/dpop/verify-proof.ts",
      "worker/webhooks/delivery-message.ts",
      "worker/scheduling",
      "worker/allocator/allocator-client.ts",
      "worker/live/live-client.ts",
    ],
  ],
};

function domain(...more: string[]): string[] {
  return ["shared", WORKER_MODULES, "worker/storage", ...more];
}

interface Import {
  from: string;
  to: string;
}

const IMPORT = /^(?:import|export)\s[^;]*?from\s+"(?<path>\.[^"]+)"|\bimport\("(?<later>\.[^"]+)"\)/gm;

/** @param path below `src` */
export function importsIn(path: string, text: string): Import[] {
  return [...text.matchAll(IMPORT)].map(({ groups }) => ({
    from: path,
    to: normalize(join(dirname(path), groups?.path ?? groups?.later ?? "")),
  }));
}

/** The longest name of the table that a file is under. */
export function layerOf(path: string): string {
  const parts = path.split("/");
  const names = parts.map((_, index) => parts.slice(0, parts.length - index).join("/"));
  const isFolder = (name: string) => name !== WORKER_MODULES || parts.length === 2;
  const name = names.find((each) => Object.hasOwn(MAY_IMPORT, each) && isFolder(each));
  if (name === undefined) throw new Error(`${path} is in no folder of the table`);
  return name;
}

export function isAllowed({ from, to }: Import): boolean {
  const [layer, target] = [layerOf(from), layerOf(to)];
  if (layer === target) return true;
  const allowed = MAY_IMPORT[layer] ?? [];
  return allowed.includes(target) || allowed.includes(to);
}

export function readImports(): Import[] {
  const source = join(import.meta.dirname, "../../../src");
  const files = readdirSync(source, { recursive: true, encoding: "utf8" }).filter((path) => /\.tsx?$/.test(path));
  return files.flatMap((path) => importsIn(path, readFileSync(join(source, path), "utf8")));
}

if (import.meta.main) {
  const faults = readImports()
    .filter((each) => !isAllowed(each))
    .map(({ from, to }) => `src/${from} may not import src/${to}`);
  for (const fault of faults) console.error(fault);
  process.exitCode = faults.length === 0 ? 0 : 1;
}
