import { appendFileSync, mkdtempSync, readFileSync, renameSync, rmSync, writeFileSync } from "node:fs";
import { tmpdir } from "node:os";
import { join } from "node:path";
import { afterAll, beforeAll, describe, expect, it, onTestFinished, vi } from "vitest";
import * as z from "zod";
import { RELEASE_NUMBER } from "../../src/admin/deploy/release-number.ts";
import { DeviceClient } from "../../src/client/index.ts";
import { byEffort } from "../support/effort.ts";
import { until } from "../support/until.ts";
import { Refusal } from "./support/platform/account.ts";
import { Rehearsal } from "./support/platform/rehearsal.ts";
import { type Fault, LIMITED } from "./support/platform/stand-in.ts";
import { commandsOf } from "./support/script.ts";

const folder = mkdtempSync(join(tmpdir(), "badge-deploy-"));
const WORKER = "badge-distribution-production";

const finding = z.object({ check: z.string(), state: z.string(), detail: z.string(), advice: z.string().nullable() });
const planned = z.object({ done: z.boolean(), steps: z.array(z.object({ action: z.string().optional() })) });
const diagnosis = z.object({ healthy: z.boolean(), findings: z.array(finding) });

afterAll(() => rmSync(folder, { recursive: true, force: true }));

/** One account from its first minute on; each test goes on where the one before has ended. */
describe("npm run deploy (contract section 25)", { timeout: 240_000 }, () => {
  let rehearsal: Rehearsal;
  let application: Awaited<ReturnType<typeof create>>;

  beforeAll(async () => {
    rehearsal = await Rehearsal.start(join(folder, "whole"));
  });
  afterAll(() => rehearsal?.stop());

  const { admin, create, json, refusal } = commandsOf((...words) => rehearsal.admin(...words, "--env", "production"));

  /** Calls of the platform that may have changed something: to read D1 is a POST, and a check of rights deletes what nobody has. */
  const writes = () => {
    const reads = /^GET |^POST .*\/raw$|^DELETE \/(d1\/database\/ID|queues\/0{32}|workers\/scripts\/NAME)$/;
    return rehearsal.platform.calls.filter((call) => !reads.test(call));
  };

  /** With a platform that refuses some calls, until `work` has ended. */
  async function withFault<Result>(fault: (call: string) => Fault, work: () => Promise<Result>): Promise<Result> {
    rehearsal.platform.fault = fault;
    return work().finally(() => {
      rehearsal.platform.fault = () => null;
    });
  }

  const phone = ({ applicationId }: typeof application, udid: string) =>
    new DeviceClient({ baseUrl: rehearsal.platform.address, applicationId, udid });

  const logIn = (of: typeof application, udid: string) => phone(of, udid).requestBadge({ userId: "alice" });

  /** The build that responds. */
  const release = async () => (await fetch(`${rehearsal.platform.address}/health`)).headers.get("release");

  const webhooks = (path = "hook") =>
    rehearsal.platform.sent.filter(({ url }) => url === `https://example.com/${path}`);

  /** The webhook comes by the queue: nobody sweeps meanwhile. */
  async function issueAndDeliver(of: typeof application, udid: string, path = "hook"): Promise<void> {
    const { badgeId } = await logIn(of, udid);
    await until(() => expect(webhooks(path).some(({ body }) => body.includes(`"${badgeId}"`))).toBe(true));
  }

  it("the first deployment asks for the place of home 1, and everything else needs a deployment first", async () => {
    const { code, stderr } = await rehearsal.deploy();
    expect(code).toBe(1);
    expect(stderr).toContain(
      "--location wnam|enam|weur|eeur|apac|oc (near most devices), or --jurisdiction eu|us|fedramp",
    );
    expect(await refusal("application", "list")).toContain(
      'The database of "production" has no ID in wrangler.toml yet',
    );
    const further = await refusal("init", "--home", "2", "--jurisdiction", "eu");
    expect(further).toBe("Home 2 needs home 1: run npm run deploy first.\n");
    expect(await refusal("application", "create", "--name", "App", "--status-list")).toMatch(
      /^.*set PUBLIC_URL in \[env\.production\.vars\] of wrangler\.toml.*\n$/,
    );
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
        'record "jurisdiction=eu", which never changes',
        "create badge-distribution-production-2, jurisdiction=eu",
      ]),
    );
  });

  it("deploy --check prints the plan and changes nothing", async () => {
    const before = rehearsal.configuration();
    const { code, stdout, stderr } = await rehearsal.deploy("--location", "weur", "--check");
    expect({ code, stdout }).toEqual({ code: 0, stdout: "10 of 16 steps would be taken.\n" });
    expect(stderr).toContain("✗ D1 database of home 1: would create badge-distribution-production, location=weur\n");
    expect(rehearsal.configuration()).toBe(before);
    expect(writes()).toEqual([]);
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

  it.each([
    ["DELETE /d1/database/ID", 'lacks the right "Account, D1, Edit"'],
    ["DELETE /workers/scripts/NAME", 'lacks the right "Account, Workers Scripts, Edit"'],
  ])(
    "deploy writes nothing with a token that may not %s, and names the right that it lacks",
    async (refused, right) => {
      const isRefused = (call: string) => (call === refused ? "refuse" : null);
      expect(await withFault(isRefused, refusedDeployment)).toContain(right);
    },
  );

  it("deploy writes nothing before queues are enabled, without a workers.dev name and on the Free plan, and says what to do", async () => {
    const { state } = rehearsal.platform.account;
    Object.assign(state, { plan: "free", workersDevName: null, hasQueues: false });
    expect(await refusedDeployment()).toMatch(
      /^Queues are not enabled .* https:\/\/dash\.cloudflare\.com\/\S+\/workers\/queues /,
    );
    state.hasQueues = true;
    expect(await refusedDeployment()).toMatch(
      / no workers\.dev name yet.* --workers-dev NAME .* \S+\/workers\/onboarding, /,
    );
    expect(await refusedDeployment("--workers-dev", "taken")).toContain(
      "cannot be registered: This subdomain is not available.",
    );
    expect(await refusedDeployment("--workers-dev", "No name")).toContain('"No name" cannot be a workers.dev name');
    expect(await refusedDeployment("--workers-dev", "acme")).toMatch(
      /^The account is on the Workers Free plan, and the service needs /,
    );
    expect(state.workersDevName).toBe(null);
    state.plan = "paid";
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
    const { databases, queues, scripts } = rehearsal.platform.account;
    expect(databases).toMatchObject([{ name: WORKER, hint: "weur", read_replication: { mode: "auto" } }]);
    expect(queues.map(({ queue_name: name, consumers }) => [name, consumers.length])).toEqual([
      ["badge-webhooks-production", 1],
      ["badge-webhooks-dead-production", 1],
    ]);
    expect([...scripts.keys()]).toEqual([WORKER]);
    expect(rehearsal.configuration()).toContain(`database_id = "${databases[0]?.uuid}"`);
    expect(rehearsal.configuration()).toContain('HOME_1 = "location=weur"');
    expect(JSON.stringify(await rehearsal.platform.execute("SELECT release FROM deployment"))).toContain(
      RELEASE_NUMBER,
    );
  });

  it("a second run of deploy changes nothing", async () => {
    const before = rehearsal.configuration();
    rehearsal.platform.calls.length = 0;
    const { code, stdout } = await rehearsal.deploy();
    expect({ code, stdout }).toMatchObject({ code: 0, stdout: expect.stringMatching(/^Nothing changed: /) });
    expect(rehearsal.configuration()).toBe(before);
    expect(writes()).toEqual([]);
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
  });

  it("doctor --first-day checks six facts, and reports each that does not hold", async () => {
    const { state } = rehearsal.platform.account;
    const check = async (wait: string) => {
      const { code, stdout } = await admin("doctor", "--first-day", "--wait", wait, "--json");
      const { findings } = z.object({ findings: z.array(z.object({ state: z.string() })) }).parse(JSON.parse(stdout));
      return [code, ...findings.map((each) => each.state)];
    };
    state.activeMicroseconds = [12_000_000];
    // Cron is off here.
    expect(await check("1")).toEqual([0, "ok", "warning", "ok", "ok", "ok", "ok"]);
    state.activeMicroseconds = [3_600_000_000];
    expect((await check("0"))[4]).toBe("warning");
  });

  it("deploy --no-replicas switches read replication off, and deploy without it switches it on again", async () => {
    expect(await rehearsal.deploy("--no-replicas")).toMatchObject({ code: 0 });
    expect(rehearsal.platform.account.databases).toMatchObject([{ read_replication: { mode: "disabled" } }]);
    expect(await admin("init")).toMatchObject({ code: 0 });
    expect(rehearsal.platform.account.databases).toMatchObject([{ read_replication: { mode: "disabled" } }]);
    expect((await rehearsal.deploy()).stderr).toContain("… Read replication of home 1 (auto): switch it on\n");
  });

  it("secrets and sealing keys of the deployed service can be rotated; after the loss of the Worker, it works again with a copy of the key (contract section 9)", async () => {
    const { account } = rehearsal.platform;
    const secrets = () => account.scripts.get(WORKER)?.secrets ?? new Map<string, string>();
    expect(await json("secret", "add", application.applicationId)).toMatchObject({ role: "added" });
    const [[first, value] = ["", ""]] = secrets();
    const rotated = await admin("sealing-key", "rotate");
    expect(rotated).toMatchObject({ code: 0, stdout: expect.stringContaining("Sealing key 2 is the newest.") });
    const [, second] = secrets().keys();
    // Its value is on no command line.
    expect(second).toMatch(/^SEALING_KEY_2_[0-9a-f]{16}$/);
    const put = `Runs npx wrangler secret put ${second} --env production   (the private half is passed on standard input)\n`;
    expect(rotated.stderr).toBe(put);
    const copied = await admin("sealing-key", "add", "--recovery");
    const [, third = "", key = ""] = /^(SEALING_KEY_3_[0-9a-f]{16})=(\S+)$/m.exec(copied.stdout) ?? [];
    expect(copied.stderr).not.toContain(key);
    // Values are still sealed to the first key.
    secrets().delete(first);
    const { stdout: found } = await admin("doctor", "--json");
    expect(found).toContain(`the Worker has no secret ${first}`);
    expect(found).toContain("create new applications");
    secrets().set(first, value);
    await rehearsal.platform.sweep();
    const kept =
      "A restore of D1 needs the others for 31 days. After that: npm run -s admin -- --env production sealing-key remove";
    expect(await admin("sealing-key", "reseal")).toMatchObject({ code: 0, stdout: expect.stringContaining(kept) });
    const removed = await admin("sealing-key", "remove", "1");
    expect(removed).toMatchObject({ code: 0, stderr: `Runs npx wrangler secret delete ${first} --env production\n` });
    expect([...secrets().keys()].toSorted()).toEqual([second, third]);
    expect(await logIn(application, "phone-2")).toMatchObject({ created: true });

    await account.deleteWorker(WORKER);
    // The next deployments upload the assets that the first one has built.
    writeFileSync(join(rehearsal.repository, "src/dev/docs-assets.ts"), "");
    const asked = expect.stringContaining(`wrangler secret put ${third} --env production`);
    expect(await rehearsal.deploy()).toMatchObject({ code: 1, stderr: asked });
    secrets().set(third, key);
    expect(await rehearsal.deploy()).toMatchObject({ code: 0 });
    // Its allocator has lost its storage, and copies it from D1 first (contract section 21).
    const outcome = () => logIn(application, "phone-3").then(() => "issued", String);
    await expect.poll(outcome, { timeout: 60_000 }).toBe("issued");
    expect(await phone(application, "phone-3").sign("aGVsbG8=")).toMatch(/^eyJ/);
  });

  it("init creates a home and its queues in a jurisdiction, also after a refused run (contract section 17)", async () => {
    const init = ["init", "--home", "2", "--jurisdiction", "eu"];
    const isRefused = (call: string) => (call === "POST /queues" ? "refuse" : null);
    const refused = { code: 1, stderr: expect.stringContaining('lacks the right "Account, Queues, Edit"') };
    expect(await withFault(isRefused, () => admin(...init))).toMatchObject(refused);
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

  it("an upgrade migrates every home before it uploads the Worker, also after a refusal, and keeps the first address when it gets a domain", async () => {
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

    platform.calls.length = 0;
    const reach = vi.fn((input: string | URL | Request, init?: RequestInit) => {
      const url = String(input instanceof Request ? input.url : input);
      return direct(url.replace(/^https:\/\/[^/]*\.(workers\.dev|example\.com)/, platform.address), init);
    });
    const direct = globalThis.fetch;
    vi.stubGlobal("fetch", reach);
    const { code, stdout, stderr } = await admin("deploy").finally(() => vi.unstubAllGlobals());
    expect({ code, stderr }).toMatchObject({ code: 0 });
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

  it("a deployment that was cut off before it set the Worker's address or its consumers, or whose traffic is shared, is completed by the next, and no secret changes meanwhile", async () => {
    const script = rehearsal.platform.account.scripts.get(WORKER);
    const reason = async () => (await rehearsal.deploy("--check")).stderr;
    expect(await reason()).not.toContain("would upload it");
    Object.assign(script ?? {}, { isReachable: false });
    expect(await reason()).toContain("would upload it (it has no workers.dev address)");
    const [consumer] = rehearsal.platform.account.queues[0]?.consumers ?? [];
    Object.assign(script ?? {}, { isReachable: true });
    // Refused or lost after the upload, which had other settings.
    const { max_retries } = consumer?.settings ?? {};
    Object.assign(consumer?.settings ?? {}, { max_retries: 99 });
    expect(await reason()).toMatch(/would upload it \(the consumer of \S+ has other settings\)/);
    Object.assign(consumer?.settings ?? {}, { max_retries });
    Object.assign(script ?? {}, { isGradual: true });
    expect(await reason()).toContain("would upload it (several versions share the traffic)");
    const advice = expect.stringContaining("(a gradual deployment, or a rollback)");
    expect(await admin("sealing-key", "rotate")).toMatchObject({ code: 1, stderr: advice });
    Object.assign(script ?? {}, { isGradual: false });
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
    rehearsal.configure(before.replace(tablesOfHome2, ""));
    const lacking = expect.stringContaining("home 2 has applications");
    expect(await rehearsal.deploy()).toMatchObject({ code: 1, stderr: lacking });
    rehearsal.configure(before);
    expect((await rehearsal.deploy()).stdout).toMatch(/^Nothing changed: /);

    // The Worker is lost, and its keys are restored.
    const { account } = rehearsal.platform;
    const secrets = [...(account.scripts.get(WORKER)?.secrets ?? [])];
    await account.deleteWorker(WORKER);
    rehearsal.configure(before.replace(tablesOfHome2, ""));
    expect(await rehearsal.deploy()).toMatchObject({ code: 1 });
    for (const [name, value] of secrets) account.scripts.get(WORKER)?.secrets.set(name, value);
    expect(await rehearsal.deploy()).toMatchObject({ code: 1, stderr: lacking });
    rehearsal.configure(before);
    expect(await rehearsal.deploy()).toMatchObject({ code: 0 });
  });

  it("deploy makes another environment with its own names, and nothing for a name that is production's", async () => {
    const before = rehearsal.configuration();
    const refused = await rehearsal.admin("deploy", "--env", "production-2");
    expect(refused.stderr).toMatch(/^"production-2" cannot be the name of an environment: [^\n]*\n$/);
    const deploy = (...words: string[]) =>
      rehearsal.admin("deploy", "--env", "staging", "--location", "weur", ...words);
    const plan = await deploy("--check");
    expect(plan.stderr).toContain("✗ Environment staging in wrangler.toml: would add its tables");
    expect(rehearsal.configuration()).toBe(before);
    // It goes on as production's did.
    const isRefused = (call: string) => (call === "POST /queues" ? "refuse" : null);
    expect(await withFault(isRefused, deploy)).toMatchObject({ code: 1 });
    expect(rehearsal.platform.account.databases.map(({ name }) => name)).toContain("badge-distribution-staging");
    expect(rehearsal.configuration().slice(before.length)).toContain('ENVIRONMENT = "staging"');
  });

  it("deploy refuses an older checkout and prints both releases, unless --force is given", async () => {
    await rehearsal.platform.execute("UPDATE deployment SET release = '99.0.0'");
    rehearsal.platform.calls.length = 0;
    const { code, stderr } = await rehearsal.deploy();
    expect(code).toBe(1);
    expect(stderr).toMatch(
      /is older than what is deployed: it is \d+\.\d+\.\d+, and 99\.0\.0 was deployed at .* --force insists\.\n$/,
    );
    expect(writes()).toEqual([]);
    // As a clone that does not have the database's ID yet.
    const committed = rehearsal.configuration();
    const running = await release();
    rehearsal.configure(committed.replace(/^database_id = "(?!0{8}).*\n/m, ""));
    const fresh = await rehearsal.deploy("--location", "weur");
    expect(fresh).toMatchObject({ code: 1, stderr: expect.stringContaining("is older than what is deployed") });
    expect(await release()).toBe(running);
    rehearsal.configure(committed);
    expect(await rehearsal.deploy("--force", "--check")).toMatchObject({ code: 0 });
    await rehearsal.platform.execute(`UPDATE deployment SET release = '${RELEASE_NUMBER}'`);
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
  it.each([
    ["lose", /run the command again|failed: /],
    ["refuse", /lacks the right "/],
  ] as const)("further runs complete a deployment each of whose calls fails once: %s", async (fault, advice) => {
    const rehearsal = await Rehearsal.start(join(folder, fault));
    onTestFinished(() => rehearsal.stop());
    const failed = new Set<string>();
    rehearsal.platform.fault = (call) => {
      if (failed.has(call)) return null;
      failed.add(call);
      return fault;
    };
    for (let runs = 1; ; runs++) {
      const { code, stderr } = await rehearsal.deploy("--location", "weur");
      if (code === 0) break;
      expect(stderr).toMatch(advice);
      expect(runs).toBeLessThan(60);
    }
    expect(rehearsal.platform.account.databases).toHaveLength(1);
    expect(rehearsal.platform.account.queues).toHaveLength(2);
  });
});
