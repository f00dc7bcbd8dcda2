import { execFileSync } from "node:child_process";
import { mkdtempSync, rmSync, writeFileSync } from "node:fs";
import { createServer } from "node:http";
import { tmpdir } from "node:os";
import { join } from "node:path";
import { afterAll, describe, expect, it, onTestFinished } from "vitest";
import { untilHealthy } from "../../src/admin/deploy/address.ts";
import { reasonToRefuse } from "../../src/admin/deploy/deployed-release.ts";
import { openAccount } from "../../src/admin/platform/cloudflare.ts";
import { checkoutCommit, containsCommit } from "../../src/admin/platform/git.ts";
import { knownErrorIn } from "../../src/admin/platform/rights.ts";
import { warningsIn } from "../../src/admin/platform/wrangler.ts";
import { listenSomewhere } from "../../src/dev/demo/listen.ts";

const folder = mkdtempSync(join(tmpdir(), "badge-deploy-checks-"));
afterAll(() => rmSync(folder, { recursive: true, force: true }));

it("no account is chosen where wrangler would choose another one (contract section 25)", async () => {
  process.env.CLOUDFLARE_ACCOUNT_ID = "b".repeat(32);
  await expect(openAccount("a".repeat(32))).rejects.toThrow(
    /^CLOUDFLARE_ACCOUNT_ID is b{32}, and account_id in wrangler\.toml is a{32}: unset the one, or change the other\.$/,
  );
});

it("a deployment waits for its own release, because the previous Worker may still respond (contract section 25)", async () => {
  const builds = ["0.9.0+aaaaaaaaaaaa", "0.9.0+bbbbbbbbbbbb"];
  const server = createServer((_, response) => {
    const [release = ""] = builds.length > 1 ? builds.splice(0, 1) : builds;
    response.writeHead(200, { release }).end('{"status":"ok"}');
  });
  onTestFinished(() => void server.close());
  const origin = await listenSomewhere(server);
  const notes: string[] = [];
  await untilHealthy(origin, "production", (line) => notes.push(line), "0.9.0+bbbbbbbbbbbb");
  const before = "release 0.9.0+aaaaaaaaaaaa responded, but 0.9.0+bbbbbbbbbbbb was uploaded";
  expect(notes).toEqual([`… ${origin}/health: ${before}; waiting for up to two minutes`]);
});

it("a deployment shows wrangler's warnings, except the one about local development's homes (contract section 25)", () => {
  const about = (name: string) =>
    `    - There is a d1_databases binding with name "${name}" at the top level, but not on "env.production".\n      This is not what you probably want.\n      Please add a binding for "${name}" to "env.production.d1_databases.bindings".\n`;
  const head =
    '▲ [WARNING] Processing wrangler.toml configuration:\n\n  - "env.production" environment configuration\n';
  expect(warningsIn(`${head}${about("DB_2")}\n▲ [WARNING] The queue is slow\n  today\n\nDone\n`)).toEqual([
    "The queue is slow today",
  ]);
  expect(warningsIn(`${head}${about("DB_2")}    - Unexpected fields found: "roots"\n`)).toEqual([
    expect.stringContaining('Unexpected fields found: "roots"'),
  ]);
});

it.each([
  ["/accounts/1/queues/2/consumers", "Account, Queues, Edit"],
  ["/accounts/1/workers/scripts/badges/domains/records", "Zone, Workers Routes, Edit"],
])(
  "a refusal that wrangler has in a list names the right and the platform's words (contract section 25): %s",
  (path, right) => {
    const printed = `✘ [ERROR] Some triggers were not updated:
  - A request to the Cloudflare API (${path}) failed.
    - Authentication error [code: 10000]`;
    expect(knownErrorIn(printed)?.message).toContain(`lacks the right "${right}" (Authentication error [code: 10000])`);
  },
);

describe("a checkout under git (contract section 25)", () => {
  const repository = join(folder, "git");
  const git = (...words: string[]) =>
    execFileSync("git", ["-c", "user.name=a", "-c", "user.email=a@example.com", ...words], {
      cwd: repository,
      encoding: "utf8",
    });
  const commit = (text: string) => {
    writeFileSync(join(repository, "file"), text);
    git("add", ".");
    git("commit", "-qm", text);
    return checkoutCommit(repository);
  };
  const deployed = { id: 1, release: "0.9.0", commit: null, deployedAt: 0 };

  it("a checkout may replace an earlier commit of its own history, but not a later commit or one of another history", () => {
    execFileSync("git", ["init", "-q", "-b", "main", repository]);
    const [first, second] = [commit("one"), commit("two")];
    expect(containsCommit(first, repository)).toBe("contained");
    expect(containsCommit(second, repository)).toBe("contained");
    git("checkout", "-q", String(first));
    expect(containsCommit(second, repository)).toBe("older");
    commit("three");
    expect(containsCommit(second, repository)).toBe("foreign");
    expect(containsCommit("0".repeat(40), repository)).toBe("foreign");
    expect(containsCommit(null, repository)).toBe("unknown");
    expect(containsCommit(first, folder)).toBe("unknown");
  });

  it.each([
    ["0.8.9", "unknown", "is older than what is deployed"],
    ["0.9.0", "unknown", null],
    ["0.10.0", "contained", null],
    ["0.9.0", "older", "is older than what is deployed"],
    ["0.9.1", "foreign", "does not contain the commit that is deployed"],
  ] as const)(
    "a checkout of release %s, whose history has the deployed commit as %s: %s",
    (own, containment, reason) => {
      expect(reasonToRefuse(deployed, own, containment)).toBe(reason);
    },
  );
});
