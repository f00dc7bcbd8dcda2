import { execFileSync, spawn } from "node:child_process";
import { once } from "node:events";
import { text } from "node:stream/consumers";
import { afterAll, beforeAll, describe, expect, it } from "vitest";
import { ServerClient } from "../../src/client/index.ts";
import { processesOf, untilGone } from "./support/process-tree.ts";
import { freePort, type RunningService, startService } from "./support/service.ts";

const PROJECT = new URL("../../", import.meta.url).pathname;

async function demo(words: readonly string[], settings: Record<string, string> = {}) {
  const env = { ...process.env, ...settings };
  const child = spawn(process.execPath, ["src/dev/demo/main.ts", ...words], { cwd: PROJECT, env });
  const ended = once(child, "close");
  const [stdout, stderr] = await Promise.all([text(child.stdout), text(child.stderr)]);
  await ended;
  return { code: child.exitCode, stdout, stderr };
}

describe("npm run demo with the service running (contract section 10)", () => {
  let service: RunningService;
  let told: Awaited<ReturnType<typeof demo>>;

  beforeAll(async () => {
    service = await startService();
    const state = { BADGE_STATE_DIR: `${service.folder}/state` };
    told = await demo(["--url", service.origin], state);
  }, 240_000);

  afterAll(async () => {
    await service?.stop();
    service?.remove();
  });

  it("tells the story to its end", () => {
    expect(told).toMatchObject({ code: 0, stderr: "" });
    const titles = told.stdout.split("\n").filter((line) => /^[ \d]\d {2}/.test(line));
    expect(titles).toEqual([
      " 1  An administrator creates an application",
      " 2  Alice's phone asks for her badge",
      " 3  The phone asks again, say after a lost connection",
      " 4  At a door the phone signs, and has the service attest it",
      " 5  The door checks both signatures, offline",
      " 6  Bob logs in on the same phone",
      " 7  The application's server pages its badges",
      " 8  Bob mislays the phone: his badge is suspended, and resumed",
      " 9  Bob leaves the company: his badge is revoked",
      "10  Bob visits: an invitation to a badge that ends in 5 seconds",
      "11  The door learns from its status list that Bob's badge was revoked",
      "12  The door loses the network, and then its power for a moment",
      "13  The server invites a visitor",
      "14  The visitor's phone claims the invitation",
      "15  4 webhooks have arrived at the server",
      "16  Another invitation takes the last number; Carol comes too late",
      "17  The visitor cancels: the server revokes the invitation",
      "18  Carol asks again, and gets the number that came back",
      "19  Another application has its users verified, by their identity provider",
      "20  A stranger with the application's ID asks for Alice's badge",
      "21  Alice logs in, and her phone asks",
      "22  She loses the phone, and stops its badge from another one",
      "23  A day passes at a company: phones, visitors, a webhook that fails",
    ]);
    expect(told.stdout).toContain("Done: 5 badges");
  });

  it("ends with a door that refuses the revoked badge, within two minutes and without the network (contract section 14)", () => {
    const [, seconds] = /< closed: revoked, (\d+) seconds after the revocation\n/.exec(told.stdout) ?? [];
    expect(Number(seconds)).toBeLessThanOrEqual(120);
    const [, withoutNetwork = ""] = told.stdout.split("the cable is pulled\n");
    expect(withoutNetwork).toMatch(
      /^ +> DoorControl.*\n +< open for badge \d+\n +> DoorControl.*\n +< closed: revoked\n/,
    );
  });

  it("shows what was sent and what came back", () => {
    for (const shown of [
      "> npm run -s admin -- application create --name 'Demo story' ",
      "> POST /v1/badge\n",
      '< 201 {"badgeId":"',
      "> POST /v1/badge/sign\n",
      "< open for badge ",
      "< closed: ",
      "> GET /v1/badges?per_page=1&cursor=",
      '< 403 {"error":"SUSPENDED_BADGE"}',
      '< 403 {"error":"REVOKED_BADGE"}',
      '< 403 {"error":"EXPIRED_BADGE"}',
      "< closed: expired",
      "> POST /v1/invitation\n",
      "< POST /webhooks/",
      '< 503 {"error":"NUMBERS_EXHAUSTED"}',
      "> PATCH /v1/invitation/inv_",
    ]) {
      expect(told.stdout).toContain(shown);
    }
  });

  it("prints commands that work when they are pasted", async () => {
    const [, pasted = ""] = / > (npm run (?:.*\\\n)*.*)\n/.exec(told.stdout) ?? [];
    expect(pasted).toContain("application create");
    // A shell of its own, in which npm prints the words that it gets.
    const printed = execFileSync("sh", ["-c", `npm() { printf '%s\\n' "$@"; }\n${pasted}`], { encoding: "utf8" });
    expect(printed.split("\n").slice(0, 10)).toEqual([
      ...["run", "-s", "admin", "--", "application", "create", "--name", "Demo story", "--webhook-url"],
      expect.stringMatching(/^http:\/\/127\.0\.0\.1:\d+\/\S+$/),
    ]);
  });

  it("fits 80 columns, and has no colours without a terminal", () => {
    expect(told.stdout.split("\n").filter((line) => line.length > 80)).toEqual([]);
    expect(told.stdout).not.toContain("\u001b");
  });

  it("leaves a day to look at in the console, in the application that npm start prints (contract section 19)", async () => {
    const [, baseUrl = "", applicationId = "", applicationSecret = ""] =
      /in a browser: (\S+)\/console\n {2}Application ID {2}(app_\w+)\n {2}Secret {10}(bdss_\S+)\n/.exec(told.stdout) ??
      [];
    const server = new ServerClient({ baseUrl, applicationId, applicationSecret });
    const { badges, badgesPerDay, badgesByState, deliveries, invitations } = await server.getStatistics();
    expect(badgesPerDay.reduce((sum, { badges: count }) => sum + count, 0)).toBeGreaterThanOrEqual(50);
    expect(badges.os.values.map(({ value }) => value)).toEqual(expect.arrayContaining(["iOS", "Android"]));
    expect(badgesByState).toMatchObject({ suspended: 1, revoked: 1 });
    expect(invitations).toMatchObject({ pending: 1, claimed: 1, revoked: 1 });
    expect(deliveries.filter(({ state }) => state !== "delivered")).toEqual([
      { state: "pending", outcome: expect.stringMatching(/^(answered|network)$/), events: 1 },
    ]);
  });

  it("shows no secret, no invitation token and no signature in full, but the one to sign in with", () => {
    expect(told.stdout).toMatch(/bdss_[\w-]{4}…/);
    expect(told.stdout.match(/bdss_[\w-]{5}/g)).toHaveLength(1);
    expect(told.stdout).toMatch(/inv_[\w-]{4}…/);
    expect(told.stdout).not.toMatch(/inv_[\w-]{5}/);
    expect(told.stdout).not.toMatch(/eyJ[\w-]+\./);
  });

  // Here, where a service that has worked is no longer needed.
  it("leaves a service behind that ends on Ctrl-C with everything it started, by itself and with success", async () => {
    const { below } = processesOf(service);
    expect(below.filter(({ command }) => command.includes("workerd")).length).toBeGreaterThan(0);
    const startedAt = Date.now();
    expect(await service.stop()).toBe(0);
    await untilGone(below);
    expect(Date.now() - startedAt).toBeLessThan(20_000);
  });
});

describe("npm run demo without the service (contract section 10)", () => {
  it("says in one line that the service must be started first", async () => {
    const origin = `http://localhost:${await freePort()}`;
    const { code, stdout, stderr } = await demo(["--url", origin]);
    expect({ code, stdout }).toEqual({ code: 1, stdout: "" });
    expect(stderr).toBe(`Nothing answers at ${origin}: run npm start first, in another terminal.\n`);
  });

  it.each([[["--url", "localhost:9000"]], [["--port", "9000"]]])("refuses %j in one line", async (words) => {
    const { code, stdout, stderr } = await demo(words);
    expect({ code, stdout }).toEqual({ code: 1, stdout: "" });
    expect(stderr).toMatch(/^[^\n]*http:\/\/localhost:\d+\n$/);
  });

  it("has a help page", async () => {
    const { code, stdout, stderr } = await demo(["--help"]);
    expect({ code, stderr }).toEqual({ code: 0, stderr: "" });
    expect(stdout).toContain("npm run demo [-- --url URL]");
  });
});
