import { mkdtempSync, readFileSync, rmSync, writeFileSync } from "node:fs";
import { tmpdir } from "node:os";
import { join } from "node:path";
import { afterAll, describe, expect, it } from "vitest";
import { UserError } from "../../src/admin/command-line/errors.ts";
import { withEnvironment } from "../../src/admin/deploy/environment-tables.ts";
import { WRANGLER_CONFIG } from "../../src/admin/platform/paths.ts";
import { readTarget } from "../../src/admin/platform/target.ts";
import { loadWrangler } from "../../src/admin/platform/wrangler.ts";
import { editWranglerToml, withDatabaseId } from "../../src/admin/platform/wrangler-toml.ts";
import { undeployed } from "./support/undeployed.ts";

const folder = mkdtempSync(join(tmpdir(), "environment-tables-"));
afterAll(() => rmSync(folder, { recursive: true, force: true }));

/** The new environment as wrangler reads it. @param text wrangler.toml before */
function copied(text: string) {
  const path = join(folder, "wrangler.toml");
  writeFileSync(path, withEnvironment(text, "staging"));
  return readTarget(loadWrangler(), "staging", path);
}

const present = readFileSync(WRANGLER_CONFIG, "utf8");
const original = undeployed(present);
const TABLE = "[env.production]\n";
const DOMAIN = '{ pattern = "badges.example.com", custom_domain = true }';

describe("deploy --env of a new environment copies production's tables without its addresses (contract section 25)", () => {
  it.each([
    ["on one line", `${TABLE}routes = [${DOMAIN}] # ours\n`],
    ["on several lines", `${TABLE}routes = [ # ours\n  ${DOMAIN},\n]\n`],
    [
      "whose brackets are beside them",
      `${TABLE}routes = [${DOMAIN},\n  { pattern = "[b.example.com/*", zone_name = "example.com" } ]\n`,
    ],
    ["as tables", `[[env.production.routes]]\npattern = "badges.example.com"\ncustom_domain = true\n\n${TABLE}`],
  ])("routes %s", (_, tables) => {
    const copy = copied(original.replace(TABLE, tables));
    expect(copy).toEqual(copied(original));
    expect(copy.customDomains).toEqual([]);
  });

  it("the copy has its own names and counters, and has an address even if production has only its domain", () => {
    const text = original.replace("\nworkers_dev = true\n", "\nworkers_dev = false\n");
    expect(copied(text)).toMatchObject({ worker: "badge-distribution-staging", isOnWorkersDev: true });
    const tables = withEnvironment(original, "staging").slice(original.length);
    expect(tables).toContain('ENVIRONMENT = "staging"');
    expect(tables).toContain('namespace_id = "8721"');
    expect(tables).toContain('queue = "badge-webhooks-dead-staging"');
    expect(tables).not.toMatch(/^[^#]*production/m);
  });

  // The last ones: its database would be that of a home of production's, and its queue one of dead letters.
  it.each(["No name", "production-2", "staging-12", "deadline", "a-dead"])(
    "an environment cannot be named %s",
    (name) => {
      expect(() => withEnvironment(original, name)).toThrow(
        `"${name}" cannot be the name of an environment: use up to 20`,
      );
    },
  );
});

it("a domain, another environment and a home's ID leave the tests the same wrangler.toml (docs/operations.md)", () => {
  const routes = `${TABLE}routes = [${DOMAIN}]\n`;
  const withDomain = original.replace(TABLE, routes).replace("\nworkers_dev = true\n", "\nworkers_dev = false\n");
  expect(undeployed(withDomain)).toBe(original);
  const withHome = withDatabaseId(original, "production", "DB", "00000000-0000-0000-0000-000000000001");
  expect(undeployed(withEnvironment(withEnvironment(withHome, "staging"), "trial"))).toBe(original);
});

it.each([
  '[env.production]\nd1_databases = [{ binding = "DB", database_name = "a" }]',
  '[[ env.production.d1_databases ]]\nbinding = "DB"',
  "[[env.production.d1_databases]]\nbinding = 'DB'",
])("a database in another form of TOML gets no ID, and the message says how to write it: %j", (text) => {
  const edit = () => withDatabaseId(text, "production", "DB", "1");
  expect(edit).toThrow(UserError);
  expect(edit).toThrow("no table [[env.production.d1_databases]]");
});

it("a change that wrangler could not read leaves wrangler.toml as it was, and the message is one line that says why", () => {
  const change = () => editWranglerToml(loadWrangler(), "production", (text) => `${text}vars = { A = "1"\n`);
  expect(change).toThrow(
    /^wrangler\.toml stays as it was, because .*\(Invalid TOML document: .*\)\. Write .* run the command again\.$/,
  );
  expect(readFileSync(WRANGLER_CONFIG, "utf8")).toBe(present);
});
