import { execFile } from "node:child_process";
import { appendFileSync, mkdtempSync, readFileSync, renameSync, rmSync, writeFileSync } from "node:fs";
import { tmpdir } from "node:os";
import { join } from "node:path";
import { setTimeout as wait } from "node:timers/promises";
import { promisify } from "node:util";
import { afterAll, afterEach, beforeAll, beforeEach, describe, expect, it, vi } from "vitest";
import * as z from "zod";
import { RELEASE_NUMBER } from "../../src/admin/deploy/release-number.ts";
import { QUIET_WRANGLER, WRANGLER_PROGRAM } from "../../src/admin/platform/wrangler.ts";
import { byEffort } from "../support/effort.ts";
import { until } from "../support/until.ts";
import { Refusal } from "./support/platform/account.ts";
import { Rehearsal } from "./support/platform/rehearsal.ts";
import { type Fault, LIMITED } from "./support/platform/stand-in.ts";
import { commandsOf } from "./support/script.ts";

const folder = mkdtempSync(join(tmpdir(), "badge-deploy-"));
const DEPLOYMENT_MILLISECONDS = 240_000;
const WORKER = "badge-distribution-production";

const finding = z.object({ check: z.string(), state: z.string(), detail: z.string(), advice: z.string().nullable() });
const planned = z.object({ done: z.boolean(), steps: z.array(z.object({ action: z.string().optional() })) });
const diagnosis = z.object({ healthy: z.boolean(), findings: z.array(finding) });
const responseBody = z.object({ badgeId: z.string().optional(), error: z.string().optional() });

afterAll(() => rmSync(folder, { recursive: true, force: true }));

/** One account from its first minute on; each test goes on where the one before has ended. */
describe("npm run deploy (contract section 25)", { timeout: DEPLOYMENT_MILLISECONDS }, () => {
  let rehearsal: Rehearsal;
  let application = { applicationId: "", applicationSecret: "" };

  beforeAll(async () => {
    rehearsal = await Rehearsal.start(join(folder, "whole"));
  });
  afterAll(() => rehearsal?.stop());

  const { admin, create, json, refusal } = commandsOf((...words) => rehearsal.admin(...words, "--env", "production"));

  /** The version that served before an upgrade. */
  let versionBefore: { id: string; release: string | null };

  /** With a platform that refuses some calls, until `work` has ended. */
  async function withFault<Result>(fault: (call: string) => Fault, work: () => Promise<Result>): Promise<Result> {
    rehearsal.platform.fault = fault;
    return work().finally(() => {
      rehearsal.platform.fault = () => null;
    });
  }

  /** With another wrangler.toml, until `work` has ended. */
  async function withConfiguration<Result>(place: RegExp, text: string, work: () => Promise<Result>): Promise<Result> {
    const before = rehearsal.configuration();
    rehearsal.configure(before.replace(place, text));
    return work().finally(() => rehearsal.configure(before));
  }

  /** A call of the deployed service. */
  async function call(
    { applicationId, applicationSecret }: typeof application,
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

  const logIn = (of: typeof application, udid: string) => call(of, udid, "POST", "/v1/badge", { userId: "alice" });

  /** The build that responds. */
  const release = async () => (await fetch(`${rehearsal.platform.address}/health`)).headers.get("release");

  /** As docs/operations.md has it, with production's environment. */
  const wrangler = (...words: string[]) =>
    promisify(execFile)(process.execPath, [WRANGLER_PROGRAM, ...words, "--env", "production"], {
      cwd: rehearsal.repository,
      env: { ...process.env, ...rehearsal.platform.environment, ...QUIET_WRANGLER, WRANGLER_LOG: "log" },
    });

  const webhooks = (path = "hook") =>
    rehearsal.platform.sent.filter(({ url }) => url === `https://example.com/${path}`);

  /** The webhook comes by the queue: nobody sweeps meanwhile. */
  async function issueAndDeliver(of: typeof application, udid: string, path = "hook"): Promise<void> {
    const { status, badgeId } = await logIn(of, udid);
    expect(status).toBe(201);
    await until(() => expect(webhooks(path).some(({ body }) => body.includes(`"${badgeId}"`))).toBe(true));
  }

  it("the first deployment asks for the place of home 1", async () => {
    const { code, stderr } = await rehearsal.deploy();
    expect(code).toBe(1);
    expect(stderr).toContain(
      "--location wnam|enam|weur|eeur|apac|oc (near most devices), or --jurisdiction eu|us|fedramp",
    );
    const check = await rehearsal.deploy("--check");
    expect(check).toMatchObject({ code: 0, stdout: "10 of 16 steps would be taken.\n" });
    expect(check.stderr).toContain("✗ Place of home 1 (HOME_1 in wrangler.toml): would ask where the data should be");
  });

  it("every other command, and a further home, need a deployment first", async () => {
    expect(await refusal("application", "list")).toContain(
      'The database of "production" has no ID in wrangler.toml yet',
    );
    const further = await refusal("init", "--home", "2", "--jurisdiction", "eu");
    expect(further).toBe("Home 2 needs home 1: run npm run deploy first.\n");
  });

  it("init --dry-run plans a further home before any login (section 17)", async () => {
    const init = ["init", "--home", "2", "--jurisdiction", "eu", "--env", "production"];
    const { code, stdout, stderr } = await rehearsal.adminBeforeLogin(...init, "--dry-run", "--json");
    expect(code).toBe(0);
    expect(stderr).toMatch(/^This is what an empty account would need, because yours cannot be read\. Log in first: /);
    const { steps, done } = planned.parse(JSON.parse(stdout));
    expect(done).toBe(false);
    expect(steps.map(({ action }) => action)).toEqual(
      expect.arrayContaining([
        "bind badge-distribution-production-2",
        'record "jurisdiction=eu", which never changes',
        "bind badge-webhooks-production-2",
        "create badge-distribution-production-2, jurisdiction=eu",
      ]),
    );
  });

  it.each(["create --name App", "update app_00000000000000000000"])(
    "`deploy` without PUBLIC_URL has no status lists: application %s asks nothing (section 14)",
    async (command) => {
      const words = ["application", ...command.split(" "), "--status-list", "--env", "production"];
      const { code, stdout, stderr } = await rehearsal.adminBeforeLogin(...words);
      expect({ code, stdout }).toEqual({ code: 1, stdout: "" });
      expect(stderr).toMatch(/^.*set PUBLIC_URL in \[env\.production\.vars\] of wrangler\.toml.*\n$/);
    },
  );

  const VARIABLES = /(?<=\[env\.production\.vars\])/;

  it.each([
    [
      /(?<=\[env\.production\.vars\]\n[^[]*)PUBLIC_URL = .*/,
      'PUBLIC_URL = "badges.example.com"',
      /is not an https URL/,
    ],
    [VARIABLES, '\nCONSOLE = "on"', /^wrangler\.toml cannot be read at line \d+: .*redefine/],
  ])("deploy names a mistake in wrangler.toml and does nothing: %s %s", async (place, mistake, problem) => {
    const { code, stderr } = await withConfiguration(place, mistake, () => rehearsal.deploy("--location", "weur"));
    expect({ code, stderr }).toEqual({ code: 1, stderr: expect.stringMatching(problem) });
  });

  it("deploy --check prints the plan and changes nothing; the place can change until the database exists", async () => {
    const before = rehearsal.configuration();
    const { code, stdout, stderr } = await rehearsal.deploy("--location", "weur", "--check");
    expect({ code, stdout }).toEqual({ code: 0, stdout: "10 of 16 steps would be taken.\n" });
    expect(stderr).toContain("✗ D1 database of home 1: would create badge-distribution-production, location=weur\n");
    expect(rehearsal.configuration()).toBe(before);
    const check = () => rehearsal.deploy("--jurisdiction", "eu", "--check");
    expect(await withConfiguration(VARIABLES, '\nHOME_1 = "location=weur"', check)).toMatchObject({
      code: 0,
      stderr: expect.stringContaining("would create badge-distribution-production, jurisdiction=eu"),
    });
    expect(rehearsal.platform.writes()).toEqual([]);
  });

  /** Deploys, is refused, and has written nothing. */
  async function refusedDeployment(...words: string[]): Promise<string> {
    const before = rehearsal.configuration();
    const { code, stdout, stderr } = await rehearsal.deploy("--location", "weur", ...words);
    expect({ code, stdout }).toEqual({ code: 1, stdout: "" });
    const { databases, queues, scripts } = rehearsal.platform.account;
    expect({ databases, queues, scripts: [...scripts.keys()] }).toEqual({ databases: [], queues: [], scripts: [] });
    expect(rehearsal.configuration()).toBe(before);
    return stderr.trimEnd().split("\n").at(-1) ?? "";
  }

  it("deploy writes nothing with a token that may only read, and names the right that it lacks", async () => {
    Object.assign(rehearsal.platform.account.state, { plan: "free", workersDevName: null, hasQueues: false });
    const isWrite = (call: string) => (call.startsWith("GET ") ? null : "refuse");
    expect(await withFault(isWrite, refusedDeployment)).toContain('lacks the right "Account, D1, Edit"');
  });

  it("deploy writes nothing before queues are enabled, and names the page where to enable them", async () => {
    expect(await refusedDeployment()).toMatch(
      /^Queues are not enabled .* https:\/\/dash\.cloudflare\.com\/\S+\/workers\/queues /,
    );
    rehearsal.platform.account.state.hasQueues = true;
  });

  it("deploy writes nothing without a workers.dev name, and says how to register one", async () => {
    expect(await refusedDeployment()).toMatch(
      / no workers\.dev name yet.* --workers-dev NAME .* \S+\/workers\/onboarding, /,
    );
    expect(await refusedDeployment("--workers-dev", "taken")).toContain(
      "cannot be registered: This subdomain is not available.",
    );
    expect(await refusedDeployment("--workers-dev", "No name")).toContain('"No name" cannot be a workers.dev name');
  });

  it("deploy writes nothing on the Free plan, and says that the service needs Workers Paid", async () => {
    expect(await refusedDeployment("--workers-dev", "acme")).toMatch(
      /^The account is on the Workers Free plan, and the service needs /,
    );
    expect(rehearsal.platform.account.state.workersDevName).toBe(null);
    rehearsal.platform.account.state.plan = "paid";
  });

  it("deploy creates every resource on an empty account, although the platform limits the rate of calls, and prints the next command", async () => {
    let isLimited = false;
    const limitOnce = (call: string): Fault => {
      if (call !== "POST /d1/database" || isLimited) return null;
      isLimited = true;
      return LIMITED;
    };
    const words = ["--location", "weur", "--workers-dev", "acme"];
    // As an earlier build left it.
    const page = join(rehearsal.repository, "dist/assets/console.html");
    writeFileSync(page, "");
    const { code, stdout, stderr } = await withFault(limitOnce, () => rehearsal.deploy(...words));
    expect({ code, stderr }).toMatchObject({ code: 0 });
    expect(readFileSync(page, "utf8")).not.toBe("");
    expect(rehearsal.platform.account.state.workersDevName).toBe("acme");
    expect(stdout).toContain('\nNext: npm run -s admin -- application create --name "First"');
    expect(stderr).toContain("… the platform limits the rate of calls: trying again in 1 s\n");
    expect(stderr).toContain("✓ First tick\n");
    // A warning of wrangler's that is none.
    expect(stderr).not.toContain("DB_2");
    const { databases, queues, scripts } = rehearsal.platform.account;
    expect(databases).toMatchObject([{ name: WORKER, hint: "weur", read_replication: { mode: "auto" } }]);
    expect(queues.map(({ queue_name: name, consumers }) => [name, consumers.length])).toEqual([
      ["badge-webhooks-production", 1],
      ["badge-webhooks-dead-production", 1],
    ]);
    expect([...scripts.keys()]).toEqual([WORKER]);
    expect(rehearsal.configuration()).toContain(`database_id = "${databases[0]?.uuid}"`);
    expect(rehearsal.configuration()).toContain('HOME_1 = "location=weur"');
    // The comments stay.
    expect(rehearsal.configuration()).toContain("# Abuse damping, counted per location");
  });

  it("a second run of deploy changes nothing", async () => {
    const before = rehearsal.configuration();
    rehearsal.platform.calls.length = 0;
    const { code, stdout } = await rehearsal.deploy();
    expect({ code, stdout }).toMatchObject({ code: 0, stdout: expect.stringMatching(/^Nothing changed: /) });
    expect(rehearsal.configuration()).toBe(before);
    // Reading D1 is a POST.
    expect(rehearsal.platform.writes().filter((call) => !call.endsWith("/raw"))).toEqual([]);
  });

  it("the deployed service issues badges and sends their webhooks", async () => {
    application = await create("--webhook-url", "https://example.com/hook");
    await issueAndDeliver(application, "phone-1");
    expect((await rehearsal.deploy()).stdout).toContain("\nNext: npm run -s admin -- doctor --env production\n");
    expect(JSON.parse(webhooks()[0]?.body ?? "")).toMatchObject({ event: "badge:created" });
  });

  it("doctor finds no error a minute after the deployment, with cron still off, and names each fault (contract section 25)", async () => {
    const diagnose = async (address = rehearsal.platform.address) => {
      const { code, stdout } = await admin("doctor", "--address", address, "--json");
      const { healthy, findings } = diagnosis.parse(JSON.parse(stdout));
      return { code, healthy, findings, problems: findings.filter(({ state }) => state !== "ok") };
    };
    const well = await diagnose();
    expect(well).toMatchObject({ code: 0, healthy: true, problems: [] });
    expect(well.findings.map(({ check }) => check)).toEqual([
      ...["Health", "PUBLIC_URL", "Status lists", "LOG_SAMPLE"],
      ...["Migrations", "Sealing keys", "Sweep", "Clock", "Deliveries", "Number ranges", "New badges", "Homes", "Logs"],
      ...["Private half of the sealing key", "Read replication", "Queues"],
    ]);
    expect(well.findings).toContainEqual(expect.objectContaining({ check: "Read replication", detail: "home 1 auto" }));
    const [queue] = rehearsal.platform.account.queues;
    const consumers = queue?.consumers.splice(0) ?? [];
    const ill = await diagnose("http://localhost:1");
    queue?.consumers.push(...consumers);
    expect(ill).toMatchObject({ code: 1, healthy: false });
    expect(ill.problems).toMatchObject([
      { check: "Health", advice: expect.stringContaining("see npx wrangler tail --env production.") },
      { check: "Queues", detail: "nothing consumes badge-webhooks-production", advice: "Run npm run deploy." },
    ]);
    await rehearsal.platform.execute("UPDATE heartbeat SET ticked_at = ticked_at - 120000");
    const late = await diagnose();
    expect(late).toMatchObject({ code: 0, problems: [{ check: "Sweep", state: "warning" }] });
    expect(late.problems[0]?.advice).toContain("up to 15 minutes to start");
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
    expect(await admin("init")).toMatchObject({ code: 0 });
    expect(rehearsal.platform.account.databases).toMatchObject([{ read_replication: { mode: "disabled" } }]);
    expect((await rehearsal.deploy()).stderr).toContain("… Read replication of home 1 (auto): switch it on\n");
  });

  it("secrets and sealing keys of the deployed service can be rotated (contract section 9)", async () => {
    const { account } = rehearsal.platform;
    const secrets = () => [...(account.scripts.get(WORKER)?.secrets.keys() ?? [])];
    expect(await json("secret", "add", application.applicationId)).toMatchObject({ role: "added" });
    const [first] = secrets();
    const rotated = await admin("sealing-key", "rotate");
    expect(rotated).toMatchObject({ code: 0, stdout: expect.stringContaining("Sealing key 2 is the newest.") });
    const [, second] = secrets();
    // Its value is on no command line.
    expect(second).toMatch(/^SEALING_KEY_2_[0-9a-f]{16}$/);
    const put = `Runs npx wrangler secret put ${second} --env production   (the private half is passed on standard input)\n`;
    expect(rotated.stderr).toBe(put);
    await rehearsal.platform.sweep();
    const kept =
      "A restore of D1 needs the others for 31 days. After that: npm run -s admin -- --env production sealing-key remove";
    expect(await admin("sealing-key", "reseal")).toMatchObject({ code: 0, stdout: expect.stringContaining(kept) });
    const removed = await admin("sealing-key", "remove", "1");
    expect(removed).toMatchObject({ code: 0, stderr: `Runs npx wrangler secret delete ${first} --env production\n` });
    expect(secrets()).toEqual([second]);
    expect((await logIn(application, "phone-2")).status).toBe(201);
  });

  it("after the loss of the Worker, the service works again with a copy of the sealing key (contract section 9)", async () => {
    const copied = await admin("sealing-key", "add", "--recovery");
    const [, name = "", key = ""] = /^(SEALING_KEY_3_[0-9a-f]{16})=(\S+)$/m.exec(copied.stdout) ?? [];
    expect(copied.stderr).not.toContain(key);
    // Values are still sealed to the key before it, so its secret is needed, too.
    const worker = rehearsal.platform.account.scripts.get(WORKER);
    const [former = "", value = ""] =
      [...(worker?.secrets ?? [])].find(([each]) => each.startsWith("SEALING_KEY_2_")) ?? [];
    worker?.secrets.delete(former);
    expect((await admin("doctor", "--json")).stdout).toContain(`the Worker has no secret ${former}`);
    expect((await rehearsal.deploy()).stderr).toContain(`wrangler secret put ${former} --env production`);
    worker?.secrets.set(former, value);
    await rehearsal.platform.sweep();
    expect(await admin("sealing-key", "reseal")).toMatchObject({ code: 0 });

    await rehearsal.platform.account.deleteWorker(WORKER);
    const asked = await rehearsal.deploy();
    expect(asked).toMatchObject({
      code: 1,
      stderr: expect.stringContaining(`wrangler secret put ${name} --env production`),
    });
    rehearsal.platform.account.scripts.get(WORKER)?.secrets.set(name, key);
    expect(await rehearsal.deploy()).toMatchObject({ code: 0 });
    // Its allocator has lost its storage, and copies it from D1 first (contract section 21).
    const status = async () => (await logIn(application, "phone-3")).status;
    await expect.poll(status, { timeout: 60_000 }).toBeOneOf([200, 201]);
    expect((await call(application, "phone-3", "POST", "/v1/badge/sign", { base64: "aGVsbG8=" })).status).toBe(200);
  });

  it("D1 restored to before a migration is migrated again, and has everything that callers were told (contract section 21)", async () => {
    const { platform, repository } = rehearsal;
    const { badgeId: first } = await logIn(application, "early");
    const { stdout } = await wrangler("d1", "time-travel", "info", WORKER, "--json");
    const { bookmark } = z.object({ bookmark: z.string() }).parse(JSON.parse(stdout));

    writeFileSync(join(repository, "migrations/9998_restored.sql"), "CREATE TABLE restored (id INTEGER);\n");
    expect(await rehearsal.deploy()).toMatchObject({ code: 0 });
    await platform.sweep();
    const { badgeId: second } = await logIn(application, "late");
    expect((await call(application, "", "PATCH", `/v1/badges/${first}/suspend`)).status).toBe(200);

    await wrangler("d1", "time-travel", "restore", WORKER, `--bookmark=${bookmark}`, "--json");
    expect((await rehearsal.deploy("--check")).stderr).toContain("✗ Tables of home 1: would apply 1 migration\n");
    expect(await rehearsal.deploy()).toMatchObject({ code: 0 });
    const told = async () => {
      await platform.sweep();
      const [one, two] = [await logIn(application, "early"), await logIn(application, "late")];
      return [one.status, one.error, two.status, two.badgeId];
    };
    await expect.poll(told, { timeout: 60_000, interval: 500 }).toEqual([403, "SUSPENDED_BADGE", 200, second]);
  });

  it("init creates a home and its queues in a jurisdiction, also after refused and killed runs (contract section 17)", async () => {
    const init = ["init", "--home", "2", "--jurisdiction", "eu"];
    const isRefused = (call: string) => (call === "POST /d1/database" ? "refuse" : null);
    const right = 'lacks the right "Account, D1, Edit"';
    const refused = { code: 1, stderr: expect.stringContaining(right) };
    expect(await withFault(isRefused, () => admin(...init))).toMatchObject(refused);
    // When it has made the database of home 2, and begins with its tables.
    await rehearsal.deployKilledAfter(20);
    expect(rehearsal.platform.account.databases).toHaveLength(2);
    const { code, stdout } = await admin(...init);
    const next = 'application create --name "First" --home 2 --env production\n';
    expect({ code, stdout }).toEqual({ code: 0, stdout: expect.stringContaining(next) });
    const { databases, queues } = rehearsal.platform.account;
    expect(databases.slice(1)).toMatchObject([{ name: "badge-distribution-production-2", jurisdiction: "eu" }]);
    expect(queues.slice(2)).toMatchObject([
      { queue_name: "badge-webhooks-production-2", jurisdiction: "eu" },
      { queue_name: "badge-webhooks-dead-production-2", jurisdiction: "eu" },
    ]);
  });

  it("an upgrade migrates every home before it uploads the Worker, also after refusals, and keeps the first address when it gets a domain", async () => {
    const { platform, repository } = rehearsal;
    versionBefore = { id: platform.account.scripts.get(WORKER)?.versions.serving?.id ?? "", release: await release() };
    writeFileSync(join(repository, "migrations/9999_rehearsal.sql"), "CREATE TABLE rehearsal (id INTEGER);\n");
    appendFileSync(join(repository, "src/worker/index.ts"), "\n// another release\n");
    const domain = '$&routes = [{ pattern = "badges.example.com", custom_domain = true }]\n';
    rehearsal.configure(rehearsal.configuration().replace("[env.production]\n", domain));
    expect((await rehearsal.deploy("--check")).stdout).toMatch(/^3 of \d+ steps would be taken/);

    platform.calls.length = 0;
    const isUpload = (call: string) => (/^(PUT|DELETE) \/workers\/scripts\/NAME$/.test(call) ? "refuse" : null);
    expect(await withFault(isUpload, () => rehearsal.deploy())).toMatchObject({
      code: 1,
      stderr: expect.stringContaining('lacks the right "Account, Workers Scripts, Edit"'),
    });
    expect(platform.writes()).toEqual([]);

    const tooSlow = new Refusal(400, 10_021, "Script startup exceeded CPU time limit.");
    const upload = (call: string) => (call === "PUT /workers/scripts/NAME" ? tooSlow : null);
    const refused = await withFault(upload, () => rehearsal.deploy());
    expect(refused).toMatchObject({
      code: 1,
      stderr: expect.stringMatching(/ failed: .* Script startup exceeded CPU/),
    });
    expect(refused.stderr).toContain("… Tables of home 1: apply 1 migration");
    expect(refused.stderr).toContain("… Tables of home 2: apply 1 migration");

    const attach = (call: string) => (call.endsWith("/domains/records") ? "refuse" : null);
    const unattached = await withFault(attach, () => rehearsal.deploy());
    const right = 'lacks the right "Zone, Workers Routes, Edit"';
    expect(unattached).toMatchObject({ code: 1, stderr: expect.stringContaining(right) });

    platform.calls.length = 0;
    const reach = vi.fn((input: string | URL | Request, init?: RequestInit) => {
      const url = String(input instanceof Request ? input.url : input);
      return direct(url.replace(/^https:\/\/[^/]*\.(workers\.dev|example\.com)/, platform.address), init);
    });
    const direct = globalThis.fetch;
    vi.stubGlobal("fetch", reach);
    const { code, stdout, stderr } = await admin("deploy").finally(() => vi.unstubAllGlobals());
    expect({ code, stderr }).toMatchObject({ code: 0 });
    expect(stderr).toContain("upload it (badges.example.com is not attached to it)");
    expect(platform.calls.filter((call) => call === "PUT /workers/scripts/NAME")).toHaveLength(1);
    expect(platform.account.domains).toMatchObject([{ hostname: "badges.example.com" }]);
    // It waits for the release at both addresses: the first one stays reachable.
    expect(stdout).toContain("The service runs at https://badges.example.com.\n");
    expect(stderr).toContain("✓ https://badges.example.com/health\n");
    expect(stderr).toContain(`✓ https://${WORKER}.acme.workers.dev/health\n`);
    expect(platform.account.scripts.get(WORKER)?.isReachable).toBe(true);
    expect(await release()).toMatch(new RegExp(`^${RELEASE_NUMBER.replaceAll(".", "\\.")}\\+[0-9a-f]{12}$`));
    expect(platform.account.queues.map(({ consumers }) => consumers.length)).toEqual([1, 1, 1, 1]);
    expect((await rehearsal.deploy()).stdout).toMatch(/^Nothing changed: /);
  });

  it("a deployment that was cut off before it closed the workers.dev address closes it the next time", async () => {
    const { account } = rehearsal.platform;
    const isRefused = (call: string) => (call === "POST /workers/scripts/NAME/subdomain" ? "refuse" : null);
    await withConfiguration(/^workers_dev = true$/m, "workers_dev = false", async () => {
      expect(await withFault(isRefused, () => rehearsal.deploy())).toMatchObject({ code: 1 });
      expect(await rehearsal.deploy()).toMatchObject({ code: 0 });
      expect(account.scripts.get(WORKER)?.isReachable).toBe(false);
    });
    expect(await rehearsal.deploy()).toMatchObject({ code: 0 });
    expect(account.scripts.get(WORKER)?.isReachable).toBe(true);
  });

  it("the upgraded service serves applications of both homes, each by its own queue", async () => {
    const paris = await create("--home", "2", "--webhook-url", "https://example.com/paris");
    expect(paris.applicationId).toMatch(/^app2_/);
    await issueAndDeliver(paris, "phone-1", "paris");
    await issueAndDeliver(application, "phone-4");
  });

  it("deploy uploads no Worker that lacks a home with applications, because wrangler.toml may be another computer's", async () => {
    const before = rehearsal.configuration();
    const tablesOfHome2 = /\[\[env[^[]*(?:"DB_2"|-production-2")[^[]*/g;
    const refused = await withConfiguration(tablesOfHome2, "", () => rehearsal.deploy());
    expect(refused).toMatchObject({ code: 1, stderr: expect.stringContaining("home 2 has applications") });
    expect(rehearsal.configuration()).toBe(before);
    expect((await rehearsal.deploy()).stdout).toMatch(/^Nothing changed: /);
  });

  it("a release gets a share of the traffic, changes no secret meanwhile, and `deploy` ends that; a rollback goes back to the version before", async () => {
    const deployed = await release();
    expect(deployed).not.toBe(versionBefore.release);
    await rehearsal.platform.execute("UPDATE deployment SET release = '0.0.1'");
    expect(await admin("init")).toMatchObject({ code: 0 });
    // From now on an older checkout is refused, also by the gradual deployment.
    const recorded = await rehearsal.platform.execute("SELECT release FROM deployment");
    expect(JSON.stringify(recorded)).toContain(RELEASE_NUMBER);
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
    await wrangler("rollback", versionBefore.id);
    expect(await release()).toBe(versionBefore.release);
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
    expect([...platform.account.scripts.keys()]).toEqual([WORKER, "badge-distribution-staging"]);
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
    // As a clone that does not have the database's ID yet.
    const committed = rehearsal.configuration();
    const running = await release();
    rehearsal.configure(committed.replace(/^database_id = "(?!0{8}).*\n/m, ""));
    const fresh = await rehearsal.deploy("--location", "weur");
    expect(fresh).toMatchObject({ code: 1, stderr: expect.stringContaining("is older than what is deployed") });
    expect(await release()).toBe(running);
    rehearsal.configure(committed);
    expect(await rehearsal.deploy("--force")).toMatchObject({ code: 0 });
    // It was rolled back before.
    expect(await release()).not.toBe(versionBefore.release);
    expect((await rehearsal.deploy()).stdout).toMatch(/^Nothing changed: /);
  });

  it("deploy leaves the tables of another version alone, and does not name reset, which is for local data", async () => {
    const migrations = join(rehearsal.repository, "migrations");
    renameSync(join(migrations, "9999_rehearsal.sql"), join(migrations, "9999_other.sql"));
    const { code, stderr } = await rehearsal.deploy();
    expect(code).toBe(1);
    expect(stderr).toMatch(
      /\nThe database of home 1 was made by another version of the service, .*: deploy that version, or a later one\.\n$/,
    );
  });
});

/** Minutes: not part of every run. */
describe.runIf(byEffort(false, true))("every fault of a deployment (contract section 25)", { timeout: 900_000 }, () => {
  let rehearsal: Rehearsal;
  let count = 0;

  beforeEach(async () => {
    count++;
    rehearsal = await Rehearsal.start(join(folder, `fault-${count}`));
  });
  afterEach(() => rehearsal?.stop());

  /** Deploys until it succeeds. @returns what the runs printed that did not */
  async function deployUntilDone(): Promise<string[]> {
    const failures: string[] = [];
    for (;;) {
      const { code, stderr } = await rehearsal.deploy("--location", "weur");
      if (code === 0) break;
      failures.push(stderr);
      expect(failures.length).toBeLessThan(60);
    }
    expect(rehearsal.platform.account.databases).toHaveLength(1);
    expect(rehearsal.platform.account.queues).toHaveLength(2);
    return failures;
  }

  it.each(["lose", "refuse"] as const)("further runs complete a deployment with failing calls: %s", async (fault) => {
    const failed = new Set<string>();
    rehearsal.platform.fault = (call) => {
      if (failed.has(call)) return null;
      failed.add(call);
      return fault;
    };
    const failures = await deployUntilDone();
    const advice = { lose: /run the command again|failed: /, refuse: /lacks the right "/ }[fault];
    for (const stderr of failures) expect(stderr).toMatch(advice);
  });

  it("further runs complete a deployment that was killed after any step", async () => {
    for (let step = 1; step <= 16; step++) await rehearsal.deployKilledAfter(step);
    await deployUntilDone();
  });
});
