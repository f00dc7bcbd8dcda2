import { appendFileSync, mkdtempSync, renameSync, rmSync, writeFileSync } from "node:fs";
import { tmpdir } from "node:os";
import { join } from "node:path";
import { afterAll, afterEach, beforeAll, beforeEach, describe, expect, it } from "vitest";
import * as z from "zod";
import { byEffort } from "../support/effort.ts";
import { until } from "../support/until.ts";
import { Refusal } from "./support/platform/account.ts";
import { Rehearsal } from "./support/platform/rehearsal.ts";
import type { Fault } from "./support/platform/stand-in.ts";
import { commandsOf } from "./support/script.ts";

const folder = mkdtempSync(join(tmpdir(), "badge-deploy-"));
const DEPLOYMENT_MILLISECONDS = 120_000;

const finding = z.object({ check: z.string(), state: z.string(), detail: z.string(), advice: z.string().nullable() });
const planned = z.object({ done: z.boolean(), steps: z.array(z.object({ action: z.string().optional() })) });
const diagnosis = z.object({ healthy: z.boolean(), findings: z.array(finding) });

afterAll(() => rmSync(folder, { recursive: true, force: true }));

describe("npm run deploy (contract section 25)", { timeout: DEPLOYMENT_MILLISECONDS }, () => {
  let rehearsal: Rehearsal;
  let application = "";

  beforeAll(async () => {
    rehearsal = await Rehearsal.start(join(folder, "whole"));
  });
  afterAll(() => rehearsal?.stop());

  const { admin, create, json, refusal } = commandsOf((...words) => rehearsal.admin(...words, "--env", "production"));

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

  async function issueBadge(applicationid: string, udid: string): Promise<number> {
    const response = await fetch(`${rehearsal.platform.address}/v1/badge`, {
      method: "POST",
      headers: { applicationid, udid, "content-type": "application/json" },
      body: JSON.stringify({ userId: "user" }),
    });
    return response.status;
  }

  const webhooks = (path = "hook") =>
    rehearsal.platform.sent.filter(({ url }) => url === `https://example.com/${path}`);

  /** The webhook comes by the queue: nobody sweeps meanwhile. */
  async function issueAndDeliver(id: string, udid: string, path = "hook"): Promise<void> {
    const before = webhooks(path).length;
    expect(await issueBadge(id, udid)).toBe(201);
    await until(() => expect(webhooks(path)).toHaveLength(before + 1));
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

  it("deploy creates every resource on an empty account, and prints the next command", async () => {
    const { code, stdout, stderr } = await rehearsal.deploy("--location", "weur");
    expect({ code, stderr }).toMatchObject({ code: 0 });
    expect(stdout).toContain('\nNext: npm run -s admin -- application create --name "First"');
    const { databases, queues, scripts } = rehearsal.platform.account;
    expect(databases).toMatchObject([{ name: "badge-distribution-production", hint: "weur" }]);
    expect(queues.map(({ queue_name: name, consumers }) => [name, consumers.length])).toEqual([
      ["badge-webhooks-production", 1],
      ["badge-webhooks-dead-production", 1],
    ]);
    expect([...scripts.keys()]).toEqual(["badge-distribution-production"]);
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
    application = (await create("--webhook-url", "https://example.com/hook")).applicationId;
    await issueAndDeliver(application, "phone-1");
    expect((await rehearsal.deploy()).stdout).toContain("\nNext: npm run -s admin -- doctor --env production\n");
    expect(JSON.parse(webhooks()[0]?.body ?? "")).toMatchObject({ event: "badge:created" });
  });

  it("the deployed service passes doctor's checks, and doctor names each fault", async () => {
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
    const [queue] = rehearsal.platform.account.queues;
    const consumers = queue?.consumers.splice(0) ?? [];
    const ill = await diagnose("http://localhost:1");
    queue?.consumers.push(...consumers);
    expect(ill).toMatchObject({ code: 1, healthy: false });
    expect(ill.problems).toMatchObject([
      { check: "Health", advice: expect.stringContaining("see npx wrangler tail --env production.") },
      { check: "Queues", detail: "nothing consumes badge-webhooks-production", advice: "Run npm run deploy." },
    ]);
  });

  it("secrets and sealing keys of the deployed service can be rotated (contract section 9)", async () => {
    const { account } = rehearsal.platform;
    const secrets = () => [...(account.scripts.get("badge-distribution-production")?.secrets.keys() ?? [])];
    expect(await json("secret", "add", application)).toMatchObject({ role: "added" });
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
    expect(await issueBadge(application, "phone-2")).toBe(201);
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
    expect(await admin(...init)).toMatchObject({ code: 0 });
    const { databases, queues } = rehearsal.platform.account;
    expect(databases.slice(1)).toMatchObject([{ name: "badge-distribution-production-2", jurisdiction: "eu" }]);
    expect(queues.slice(2)).toMatchObject([
      { queue_name: "badge-webhooks-production-2", jurisdiction: "eu" },
      { queue_name: "badge-webhooks-dead-production-2", jurisdiction: "eu" },
    ]);
  });

  it("an upgrade migrates every home before it uploads the Worker, also with a domain and after refusals", async () => {
    const { platform, repository } = rehearsal;
    writeFileSync(join(repository, "migrations/9999_rehearsal.sql"), "CREATE TABLE rehearsal (id INTEGER);\n");
    appendFileSync(join(repository, "src/worker/index.ts"), "\n// another release\n");
    const domain = '$&routes = [{ pattern = "badges.example.com", custom_domain = true }]\n';
    rehearsal.configure(rehearsal.configuration().replace("[env.production]\n", domain));
    expect((await rehearsal.deploy("--check")).stdout).toMatch(/^3 of \d+ steps would be taken/);

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
    const { code, stderr } = await rehearsal.deploy();
    expect({ code, stderr }).toMatchObject({ code: 0 });
    expect(stderr).toContain("upload it (badges.example.com is not attached to it)");
    expect(platform.calls.filter((call) => call === "PUT /workers/scripts/NAME")).toHaveLength(1);
    expect(platform.account.domains).toMatchObject([{ hostname: "badges.example.com" }]);
    expect(platform.account.queues.map(({ consumers }) => consumers.length)).toEqual([1, 1, 1, 1]);
    expect((await rehearsal.deploy()).stdout).toMatch(/^Nothing changed: /);
  });

  it("the upgraded service serves applications of both homes, each by its own queue", async () => {
    const { applicationId: paris } = await create("--home", "2", "--webhook-url", "https://example.com/paris");
    expect(paris).toMatch(/^app2_/);
    await issueAndDeliver(paris, "phone-1", "paris");
    await issueAndDeliver(application, "phone-3");
  });

  it("deploy uploads no Worker that lacks a home with applications, because wrangler.toml may be another computer's", async () => {
    const before = rehearsal.configuration();
    const tablesOfHome2 = /\[\[env[^[]*(?:"DB_2"|-production-2")[^[]*/g;
    const refused = await withConfiguration(tablesOfHome2, "", () => rehearsal.deploy());
    expect(refused).toMatchObject({ code: 1, stderr: expect.stringContaining("home 2 has applications") });
    expect(rehearsal.configuration()).toBe(before);
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
