import { execFile, execFileSync } from "node:child_process";
import { appendFileSync, mkdtempSync, rmSync, writeFileSync } from "node:fs";
import { tmpdir } from "node:os";
import { join } from "node:path";
import { setTimeout as wait } from "node:timers/promises";
import { promisify } from "node:util";
import { afterAll, beforeAll, describe, expect, it, vi } from "vitest";
import * as z from "zod";
import { reasonToRefuse } from "../../src/admin/deploy/deployed-release.ts";
import { RELEASE_NUMBER } from "../../src/admin/deploy/release-number.ts";
import { checkoutCommit, containsCommit } from "../../src/admin/platform/git.ts";
import { QUIET_WRANGLER, WRANGLER_PROGRAM } from "../../src/admin/platform/wrangler.ts";
import { Rehearsal } from "./support/platform/rehearsal.ts";
import { type Fault, LIMITED } from "./support/platform/stand-in.ts";

const folder = mkdtempSync(join(tmpdir(), "badge-accounts-"));

const credentials = z.object({ applicationId: z.string(), applicationSecret: z.string() });
const responseBody = z.object({ badgeId: z.string().optional(), error: z.string().optional() });

afterAll(() => rmSync(folder, { recursive: true, force: true }));

/** One account from its first minute on; each test goes on where the one before has ended. */
describe("the first day on an account (contract section 25)", { timeout: 240_000 }, () => {
  let rehearsal: Rehearsal;
  let untouched = "";

  beforeAll(async () => {
    rehearsal = await Rehearsal.start(join(folder, "account"));
    untouched = rehearsal.configuration();
    Object.assign(rehearsal.platform.account.state, { plan: "free", workersDevName: null, hasQueues: false });
  });
  afterAll(() => rehearsal?.stop());

  const admin = (...words: string[]) => rehearsal.admin(...words, "--env", "production");

  /** A call of the deployed service. */
  async function call(
    { applicationId, applicationSecret }: z.output<typeof credentials>,
    udid: string,
    method: string,
    path: string,
    body?: object,
  ) {
    const response = await fetch(`${rehearsal.platform.address}${path}`, {
      method,
      headers: { applicationid: applicationId, applicationsecret: applicationSecret, ...(udid !== "" && { udid }) },
      ...(body && { body: JSON.stringify(body) }),
    });
    return { status: response.status, ...responseBody.parse(await response.json()) };
  }

  async function withFault<Result>(fault: (call: string) => Fault, work: () => Promise<Result>): Promise<Result> {
    rehearsal.platform.fault = fault;
    return work().finally(() => {
      rehearsal.platform.fault = () => null;
    });
  }

  /** Deploys, is refused, and has written nothing. */
  async function refusal(...words: string[]): Promise<string> {
    const { code, stdout, stderr } = await rehearsal.deploy("--location", "weur", ...words);
    expect({ code, stdout }).toEqual({ code: 1, stdout: "" });
    const { databases, queues, scripts } = rehearsal.platform.account;
    expect({ databases, queues, scripts: [...scripts.keys()] }).toEqual({ databases: [], queues: [], scripts: [] });
    expect(rehearsal.configuration()).toBe(untouched);
    return stderr.trimEnd().split("\n").at(-1) ?? "";
  }

  it("deploy writes nothing with a token that may only read, and names the right that it lacks", async () => {
    const isWrite = (call: string) => (call.startsWith("GET ") ? null : "refuse");
    expect(await withFault(isWrite, refusal)).toContain('lacks the right "Account, D1, Edit"');
  });

  it("deploy writes nothing before queues are enabled, and names the page where to enable them", async () => {
    expect(await refusal()).toMatch(
      /^Queues are not enabled .* https:\/\/dash\.cloudflare\.com\/\S+\/workers\/queues /,
    );
    rehearsal.platform.account.state.hasQueues = true;
  });

  it("deploy writes nothing without a workers.dev name, and says how to register one", async () => {
    expect(await refusal()).toMatch(/ no workers\.dev name yet.* --workers-dev NAME .* \S+\/workers\/onboarding, /);
    expect(await refusal("--workers-dev", "taken")).toContain("cannot be registered: This subdomain is not available.");
    expect(await refusal("--workers-dev", "No name")).toContain('"No name" cannot be a workers.dev name');
  });

  it("deploy writes nothing on the Free plan, and says that the service needs Workers Paid", async () => {
    expect(await refusal("--workers-dev", "acme")).toMatch(
      /^The account is on the Workers Free plan, and the service needs /,
    );
    expect(rehearsal.platform.account.state.workersDevName).toBe("acme");
    rehearsal.platform.account.state.plan = "paid";
  });

  it("deploy succeeds once the account has everything, although the platform limits the rate of calls", async () => {
    const limited = new Set<string>();
    const limitOnce = (call: string): Fault => {
      if (!call.includes("/d1/") || limited.has(call)) return null;
      limited.add(call);
      return LIMITED;
    };
    const { code, stderr } = await withFault(limitOnce, () => rehearsal.deploy("--location", "weur"));
    expect({ code, stderr }).toMatchObject({ code: 0 });
    expect(stderr).toContain("… the platform limits the rate of calls: trying again in 1 s\n");
    expect(stderr).toContain("✓ First tick\n");
    expect(rehearsal.platform.account.databases).toMatchObject([{ read_replication: { mode: "auto" } }]);
    // A warning of wrangler's that is none.
    expect(stderr).not.toContain("DB_2");
  });

  it("doctor finds no error a minute after the deployment, with cron still off (contract section 25)", async () => {
    const { code, stdout } = await admin("doctor", "--address", rehearsal.platform.address);
    expect({ code, others: stdout.split("\n").filter((line) => !line.startsWith("✓")) }).toEqual({
      code: 0,
      others: [""],
    });
    expect(stdout).toContain("✓ Read replication: home 1 auto\n");
    await rehearsal.platform.execute("UPDATE heartbeat SET ticked_at = ticked_at - 120000");
    const late = await admin("doctor", "--address", rehearsal.platform.address);
    expect(late).toMatchObject({
      code: 0,
      stdout: expect.stringMatching(/\n! Sweep: .*\n.* up to 15 minutes to start/),
    });
  });

  it("doctor --first-day checks six facts, and reports each that does not hold", async () => {
    const { state } = rehearsal.platform.account;
    const check = async (waitSeconds = "1") => {
      const { code, stdout } = await admin("doctor", "--first-day", "--wait", waitSeconds, "--json");
      const findings = z
        .object({ findings: z.array(z.object({ state: z.string(), detail: z.string() })) })
        .parse(JSON.parse(stdout)).findings;
      return { code, states: findings.map(({ state: each }) => each), details: findings.map(({ detail }) => detail) };
    };
    // Cron is off here, and there are no figures yet.
    expect(await check()).toMatchObject({ code: 0, states: ["ok", "warning", "ok", "warning", "ok", "ok"] });
    state.activeMicroseconds = [12_000_000];
    let isTicking = true;
    const ticking = (async () => {
      // A bookmark stops the stand-in's runtime for a moment.
      for (; isTicking; await wait(300)) await rehearsal.platform.sweep().catch(() => {});
    })();
    const second = await check("30").finally(() => {
      isTicking = false;
      return ticking;
    });
    expect(second).toMatchObject({ code: 0, states: ["ok", "ok", "ok", "ok", "ok", "ok"] });
    expect(second.details[0]).toBe("a failing second statement undid the first");
    state.activeMicroseconds = [3_600_000_000];
    expect((await check()).states[3]).toBe("warning");
  });

  it("deploy --no-replicas switches read replication off, and deploy without it switches it on again", async () => {
    expect(await rehearsal.deploy("--no-replicas")).toMatchObject({ code: 0 });
    expect(rehearsal.platform.account.databases).toMatchObject([{ read_replication: { mode: "disabled" } }]);
    expect((await rehearsal.deploy()).stderr).toContain("… Read replication of home 1 (auto): switch it on\n");
  });

  it("the service keeps its first address when it gets a domain, and deploy waits for the release at both", async () => {
    const reach = vi.fn((input: string | URL | Request, init?: RequestInit) => {
      const url = String(input instanceof Request ? input.url : input);
      return direct(url.replace(/^https:\/\/[^/]*\.(workers\.dev|example\.com)/, rehearsal.platform.address), init);
    });
    const direct = globalThis.fetch;
    vi.stubGlobal("fetch", reach);
    const domain = '$&routes = [{ pattern = "badges.example.com", custom_domain = true }]\n';
    rehearsal.configure(rehearsal.configuration().replace("[env.production]\n", domain));
    const { code, stdout, stderr } = await admin("deploy").finally(() => vi.unstubAllGlobals());
    expect({ code, stderr }).toMatchObject({ code: 0 });
    expect(stdout).toContain("The service runs at https://badges.example.com.\n");
    expect(stderr).toContain("✓ https://badges.example.com/health\n");
    expect(stderr).toContain("✓ https://badge-distribution-production.acme.workers.dev/health\n");
    expect(rehearsal.platform.account.scripts.get("badge-distribution-production")?.isReachable).toBe(true);
    const response = await fetch(`${rehearsal.platform.address}/health`);
    expect(response.headers.get("release")).toMatch(
      new RegExp(`^${RELEASE_NUMBER.replaceAll(".", "\\.")}\\+[0-9a-f]{12}$`),
    );
  });

  /** As docs/operations.md has it, with production's environment. */
  const wrangler = (...words: string[]) =>
    promisify(execFile)(process.execPath, [WRANGLER_PROGRAM, ...words, "--env", "production"], {
      cwd: rehearsal.repository,
      env: { ...process.env, ...rehearsal.platform.environment, ...QUIET_WRANGLER, WRANGLER_LOG: "log" },
    });

  const release = async () => (await fetch(`${rehearsal.platform.address}/health`)).headers.get("release");

  it("a release gets a share of the traffic, changes no secret meanwhile, and `deploy` ends that", async () => {
    const deployed = await release();
    expect(await admin("init")).toMatchObject({ code: 0 });
    const old = /\(100%\) (\S+)/.exec((await wrangler("deployments", "status")).stdout)?.[1];
    const added = /Version ID: (\S+)/.exec((await wrangler("versions", "upload")).stdout)?.[1];
    expect(await release()).toBe(deployed);
    await wrangler("versions", "deploy", `${added}@10%`, `${old}@90%`);
    expect(await release()).toBe(deployed);
    const refused = await admin("sealing-key", "rotate");
    const advice = expect.stringContaining("A gradual deployment is under way");
    expect(refused).toMatchObject({ code: 1, stderr: advice });
    const { code, stderr } = await rehearsal.deploy();
    expect({ code, stderr }).toMatchObject({
      code: 0,
      stderr: expect.stringContaining("several versions share the traffic"),
    });
    expect(await release()).toBe(deployed);
  });

  it("a rollback goes back to the version before, and forth again", async () => {
    const before = await release();
    appendFileSync(join(rehearsal.repository, "src/pass/words.ts"), "\n// another release\n");
    expect(await rehearsal.deploy()).toMatchObject({ code: 0 });
    const after = await release();
    expect(after).not.toBe(before);
    await wrangler("rollback");
    expect(await release()).toBe(before);
    expect(await rehearsal.deploy()).toMatchObject({ code: 0 });
    expect(await release()).toBe(after);
  });

  it("after the loss of the Worker, the service works again with a copy of the sealing key (contract section 9)", async () => {
    const application = credentials.parse(
      JSON.parse((await admin("application", "create", "--name", "App", "--json")).stdout),
    );
    const copied = await admin("sealing-key", "add", "--recovery");
    const [, name = "", key = ""] = /^(SEALING_KEY_2_[0-9a-f]{16})=(\S+)$/m.exec(copied.stdout) ?? [];
    expect(copied.stderr).not.toContain(key);
    await rehearsal.platform.sweep();
    expect(await admin("sealing-key", "reseal")).toMatchObject({ code: 0 });

    await rehearsal.platform.account.deleteWorker("badge-distribution-production");
    const asked = await rehearsal.deploy();
    expect(asked).toMatchObject({
      code: 1,
      stderr: expect.stringContaining(`wrangler secret put ${name} --env production`),
    });
    rehearsal.platform.account.scripts.get("badge-distribution-production")?.secrets.set(name, key);
    expect(await rehearsal.deploy()).toMatchObject({ code: 0 });
    expect((await call(application, "phone", "POST", "/v1/badge", { userId: "alice" })).status).toBe(201);
    expect((await call(application, "phone", "POST", "/v1/badge/sign", { base64: "aGVsbG8=" })).status).toBe(200);
  });

  it("D1 restored to before a migration is migrated again, and has everything that callers were told (contract section 21)", async () => {
    const { platform, repository } = rehearsal;
    const application = credentials.parse(
      JSON.parse((await admin("application", "create", "--name", "Restored", "--json")).stdout),
    );
    const login = (udid: string) => call(application, udid, "POST", "/v1/badge", { userId: "alice" });
    const { badgeId: first } = await login("phone-1");
    const name = "badge-distribution-production";
    const { stdout } = await wrangler("d1", "time-travel", "info", name, "--json");
    const { bookmark } = z.object({ bookmark: z.string() }).parse(JSON.parse(stdout));

    writeFileSync(join(repository, "migrations/9999_rehearsal.sql"), "CREATE TABLE rehearsal (id INTEGER);\n");
    expect(await rehearsal.deploy()).toMatchObject({ code: 0 });
    await platform.sweep();
    const { badgeId: second } = await login("phone-2");
    expect((await call(application, "", "PATCH", `/v1/badges/${first}/suspend`)).status).toBe(200);

    await wrangler("d1", "time-travel", "restore", name, `--bookmark=${bookmark}`, "--json");
    expect((await rehearsal.deploy("--check")).stderr).toContain("✗ Tables of home 1: would apply 1 migration\n");
    expect(await rehearsal.deploy()).toMatchObject({ code: 0 });
    const told = async () => {
      await platform.sweep();
      const [one, two] = [await login("phone-1"), await login("phone-2")];
      return [one.status, one.error, two.status, two.badgeId];
    };
    await expect.poll(told, { timeout: 60_000, interval: 500 }).toEqual([403, "SUSPENDED_BADGE", 200, second]);
  });

  it("deploy creates another environment with its own names and none of production's data", async () => {
    const before = rehearsal.configuration();
    // The last ones: its database would be that of a home of production's, and its queue one of dead letters.
    for (const name of ["No name", "production-2", "staging-12", "deadline", "a-dead"]) {
      expect((await rehearsal.admin("deploy", "--env", name)).stderr).toMatch(
        new RegExp(
          `^"${name}" cannot be the name of an environment: use up to 20 of a-z, 0-9 and hyphens, without .*\\n$`,
        ),
      );
    }
    const plan = await rehearsal.admin("deploy", "--env", "staging", "--location", "weur", "--check");
    expect(plan.stderr).toContain("✗ Environment staging in wrangler.toml: would add its tables");
    expect(rehearsal.configuration()).toBe(before);
    const { platform } = rehearsal;
    const words = ["deploy", "--env", "staging", "--location", "weur", "--address", platform.address];
    const { code, stdout, stderr } = await rehearsal.admin(...words);
    expect({ code, stderr }).toMatchObject({ code: 0 });
    expect(stdout).toContain("run npm run types, and commit both.");
    expect([...platform.account.scripts.keys()]).toEqual([
      "badge-distribution-production",
      "badge-distribution-staging",
    ]);
    expect(platform.account.databases.map(({ name }) => name)).toContain("badge-distribution-staging");
    expect(platform.account.queues.map(({ queue_name: name }) => name)).toContain("badge-webhooks-dead-staging");
    const staging = rehearsal.configuration().slice(before.length);
    expect(staging).toContain('ENVIRONMENT = "staging"');
    expect(staging).not.toContain("badges.example.com");
    expect(staging).toContain('namespace_id = "8721"');
  });

  it("deploy refuses an older checkout and prints both releases, unless --force is given", async () => {
    await rehearsal.platform.execute("UPDATE deployment SET release = '99.0.0'");
    const before = rehearsal.platform.writes().filter((call) => !call.endsWith("/raw")).length;
    const { code, stderr } = await rehearsal.deploy();
    expect({ code, stderr }).toMatchObject({
      code: 1,
      stderr: expect.stringMatching(
        /is older than what is deployed: it is \d+\.\d+\.\d+, and 99\.0\.0 was deployed at .* --force insists\.\n$/,
      ),
    });
    expect(rehearsal.platform.writes().filter((call) => !call.endsWith("/raw"))).toHaveLength(before);
    expect(await rehearsal.deploy("--force")).toMatchObject({ code: 0 });
    expect((await rehearsal.deploy()).stdout).toMatch(/^Nothing changed: /);
  });
});

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
    expect(containsCommit(first, join(folder))).toBe("unknown");
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
