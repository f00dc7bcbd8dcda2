import { execFileSync, spawn, spawnSync } from "node:child_process";
import { readFileSync } from "node:fs";
import { text } from "node:stream/consumers";
import { pathToFileURL } from "node:url";
import { afterAll, beforeAll, describe, expect, it } from "vitest";
import * as z from "zod";
import { DeviceClient, ServerClient } from "../../src/client/index.ts";
import { byEffort } from "../support/effort.ts";
import { processesOf, untilGone } from "./support/process-tree.ts";
import { captured } from "./support/script.ts";
import { freePort, type RunningService, runProgram, startService } from "./support/service.ts";

/** What somebody does who has just cloned the project: one service, the README typed, the demo, and Ctrl-C. */

const PROJECT = new URL("../../", import.meta.url).pathname;

/** For a machine that does ten other things. */
const LIMIT_MILLISECONDS = 240_000;

let service: RunningService;

beforeAll(async () => {
  service = await startService();
}, LIMIT_MILLISECONDS);

afterAll(async () => {
  await service?.stop();
  service?.remove();
});

/** As they are started for somebody who types, without that person's own settings. */
const SHELLS = [
  ["bash", ["--norc", "--noprofile", "-i", "-s"]],
  ["zsh", ["-f", "-i", "-s"]],
] as const;

const INSTALLED = SHELLS.filter(([shell]) => spawnSync(shell, ["-c", "true"]).status === 0);

describe("the README, typed", () => {
  const readme = readFileSync(`${PROJECT}README.md`, "utf8");
  const blocks = [...readme.matchAll(/^```sh\n([\s\S]*?)^```$/gm)].map(([, block]) => block);

  // A door's lines take seconds, and nothing in them is a shell's own: by default they are typed into the first.
  it.each(INSTALLED.map(([shell, words], place) => ({ shell, words, place, opensDoor: byEffort(place === 0, true) })))(
    "in $shell gets a badge, a signature and an invitation, and opens a door: $opensDoor",
    async ({ shell, words, place, opensDoor }) => {
      const { applicationId, applicationSecret } = service.demo;
      const state = { BADGE_STATE_DIR: `${service.folder}/state`, HOME: service.folder };
      const env = { ...process.env, ...state, PS1: "", PROMPT: "" };
      /** Types lines. @returns what they print */
      const type = async (typed: string): Promise<string> => {
        const child = spawn(shell, [...words], { cwd: PROJECT, env, stdio: ["pipe", "pipe", "ignore"] });
        const lines = typed
          .replaceAll("localhost:8787", new URL(service.origin).host)
          .replace("app_…", applicationId)
          .replace("bdss_…", applicationSecret)
          // The second shell is another phone, and another visit.
          .replaceAll("phone-1", `phone-${1 + place}`)
          .replace("visit-4711", `visit-${4711 + place}`);
        child.stdin.end(lines);
        return text(child.stdout);
      };
      const [start, settings, calls, invite, door, scanner] = blocks;
      expect(start).toBe("npm ci\nnpm start\n");
      const printed = await type(`${settings}${calls}${invite}`);
      const answers = [...printed.matchAll(/^.*?(\{".*\})$/gm)].map(([, json = ""]): unknown => JSON.parse(json));
      const badgeId = expect.stringMatching(/^\d+$/);
      expect(answers).toEqual([
        { badgeId, publicKey: expect.any(String) },
        { signature: expect.any(String) },
        {
          badges: [
            // The first shell's, and of the visitor whose code its scanner read.
            ...INSTALLED.slice(0, place).flatMap(() => [
              { id: badgeId, userId: "alice" },
              { id: badgeId, userId: "visitor", name: "Ann Lee" },
            ]),
            { id: badgeId, userId: "alice" },
          ],
        },
        { id: expect.stringMatching(/^inv_/), badgeId, expiresAt: expect.any(String) },
      ]);
      const { signature } = z.object({ signature: z.string() }).parse(answers[1]);
      if (!opensDoor) return;
      expect(await type(`${settings}${door}${signature}\n`)).toMatch(/open: badge \d+/);
      // The scanner types what it reads on the visitor's phone.
      const { pathname, hash } = new URL(/^http:\S+$/m.exec(await type(`${settings}${scanner}`))?.[0] ?? "");
      expect(pathname).toBe("/pass");
      const [, ofLink = "", invitationToken = ""] = hash.split(/[#/]/);
      const phone = new DeviceClient({ baseUrl: service.origin, applicationId: ofLink, udid: `visitor-${place}` });
      const { badgeId: visitors } = await phone.requestBadge({ userId: "visitor", invitationToken });
      const code = await phone.sign("cGFzcw==");
      expect(await type(`${settings}${scanner}${code}\n`)).toContain(`open: badge ${visitors}\n`);
    },
    LIMIT_MILLISECONDS,
  );
});

/** Nothing listens there. */
const OWN_URL = "http://127.0.0.1:9/mine";
const DEMO = `${PROJECT}src/dev/demo/main.ts`;

describe("npm run demo with the service running (contract section 10)", () => {
  let told: Awaited<ReturnType<typeof runProgram>>;

  beforeAll(async () => {
    await service.admin("application", "update", service.demo.applicationId, "--webhook-url", OWN_URL);
    told = await runProgram([DEMO], { BADGE_STATE_DIR: `${service.folder}/state` });
  }, LIMIT_MILLISECONDS);

  it("the demo leaves the webhook URL of the demo application as it was (contract section 10)", async () => {
    const { stdout } = await service.admin("application", "list", "--json");
    const { applicationId } = service.demo;
    expect(JSON.parse(stdout)).toContainEqual(expect.objectContaining({ applicationId, webhookUrl: OWN_URL }));
  });

  // It checks each of its steps against the contract. Nobody has told it the port.
  it("npm run demo finds the service that runs on its data, and tells the story to its end", () => {
    expect(told).toMatchObject({ code: 0, stderr: "" });
    const titles = told.stdout.split("\n").filter((line) => /^[ \d]\d {2}/.test(line));
    expect(titles.map((title) => Number.parseInt(title, 10))).toEqual(
      Array.from({ length: 25 }, (_, step) => step + 1),
    );
    expect(told.stdout).toContain("Done: 5 badges");
  });

  it("the demo's door refuses the revoked badge within two minutes, also without the network (contract section 14)", () => {
    const [, seconds] = /< closed: revoked, (\d+) seconds after the revocation\n/.exec(told.stdout) ?? [];
    expect(Number(seconds)).toBeLessThanOrEqual(120);
    const [, withoutNetwork = ""] = told.stdout.split("the cable is pulled\n");
    expect(withoutNetwork).toMatch(
      /^ +> DoorControl.*\n +< open for badge \d+\n +> DoorControl.*\n +< closed: revoked\n/,
    );
  });

  it("the demo shows what was sent and what came back", () => {
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
      "> GET /v1/invitation\n",
      "< closed: too-old\n",
    ]) {
      expect(told.stdout).toContain(shown);
    }
  });

  it("the demo prints commands that can be pasted", () => {
    const [, pasted = ""] = / > (npm run (?:.*\\\n)*.*)\n/.exec(told.stdout) ?? [];
    // A shell of its own, in which npm prints the words that it gets.
    const printed = execFileSync("sh", ["-c", `npm() { printf '%s\\n' "$@"; }\n${pasted}`], { encoding: "utf8" });
    expect(printed.split("\n").slice(0, 10)).toEqual([
      ...["run", "-s", "admin", "--", "application", "create", "--name", "Demo story", "--webhook-url"],
      expect.stringMatching(/^http:\/\/127\.0\.0\.1:\d+\/\S+$/),
    ]);
  });

  it("the demo's output fits 80 columns, and has no colours without a terminal", () => {
    expect(told.stdout.split("\n").filter((line) => line.length > 80)).toEqual([]);
    expect(told.stdout).not.toContain("\u001b");
  });

  it("the demo leaves a day's badges in the application that npm start prints, to see in the console (contract section 19)", async () => {
    const [, baseUrl = "", applicationId = "", applicationSecret = ""] =
      /in a browser: (\S+)\/console\n {2}Application ID {2}(app_\w+)\n {2}Secret {10}(bdss_\S+)\n/.exec(told.stdout) ??
      [];
    expect(applicationId).toBe(service.demo.applicationId);
    const server = new ServerClient({ baseUrl, applicationId, applicationSecret });
    const { badges, badgesPerDay, badgesByState, deliveries, invitations } = await server.getStatistics();
    expect(badgesPerDay.reduce((sum, { badges: count }) => sum + count, 0)).toBeGreaterThanOrEqual(50);
    expect(badges.os.values.map(({ value }) => value)).toEqual(expect.arrayContaining(["iOS", "Android"]));
    expect(badgesByState).toMatchObject({ suspended: 1, revoked: 1 });
    expect(
      await server
        .searchBadges({ endsBefore: new Date(Date.now() + 7 * 86_400_000) })
        .badges()
        .next(),
    ).toMatchObject({ done: false });
    // Others are the README's.
    expect(invitations).toMatchObject({ revoked: 1 });
    expect(deliveries.filter(({ state }) => state !== "delivered")).toEqual([
      { state: "pending", outcome: expect.stringMatching(/^(answered|network)$/), events: 1 },
    ]);
  });

  it("the demo shows no secret, invitation token or signature in full, except the secret for signing in", () => {
    expect(told.stdout).toMatch(/bdss_[\w-]{4}…/);
    expect(told.stdout.match(/bdss_[\w-]{5}/g)).toHaveLength(1);
    expect(told.stdout).toMatch(/inv_[\w-]{4}…/);
    expect(told.stdout).not.toMatch(/inv_[\w-]{5}/);
    expect(told.stdout).not.toMatch(/eyJ[\w-]+\./);
  });
});

describe("npm run -s admin -- doctor (contract section 10)", () => {
  it("doctor checks the service that runs on its data, whatever its port", async () => {
    const { stdout } = await service.admin("doctor", "--json");
    const { findings } = z
      .object({ findings: z.array(z.object({ state: z.string(), detail: z.string() })) })
      .parse(JSON.parse(stdout));
    expect(findings[0]).toEqual({ state: "ok", detail: expect.stringContaining(service.origin) });
  });
});

describe("Ctrl-C", () => {
  it("Ctrl-C ends npm start and everything that it started, with exit code 0", async () => {
    const { below } = processesOf(service);
    expect(below.filter(({ command }) => command.includes("workerd")).length).toBeGreaterThan(0);
    const startedAt = Date.now();
    expect(await service.stop()).toBe(0);
    await untilGone(below);
    expect(Date.now() - startedAt).toBeLessThan(20_000);
  });
});

describe("npm run demo without the service (contract section 10)", () => {
  let runs = 0;

  /** Runs it in this process: to load its modules anew takes a second. */
  async function demo(...words: string[]) {
    const before = process.argv;
    process.argv = [process.execPath, DEMO, ...words];
    try {
      return await captured(() => import(/* @vite-ignore */ `${pathToFileURL(DEMO)}?${++runs}`));
    } finally {
      process.argv = before;
    }
  }

  it("npm run demo says in one line that the service must be started first", async () => {
    const origin = `http://localhost:${await freePort()}`;
    expect(await demo("--url", origin)).toEqual({
      code: 1,
      stdout: "",
      stderr: `Nothing responds at ${origin}: run npm start first, in another terminal.\n`,
    });
  });

  it.each([[["--url", "localhost:9000"]], [["--port", "9000"]]])(
    "npm run demo refuses %j in one line",
    async (words) => {
      const stderr = expect.stringMatching(/^[^\n]*http:\/\/localhost:\d+\n$/);
      expect(await demo(...words)).toEqual({ code: 1, stdout: "", stderr });
    },
  );

  it("npm run demo has a help page", async () => {
    const stdout = expect.stringContaining("npm run demo [-- --url URL]");
    expect(await demo("--help")).toEqual({ code: 0, stdout, stderr: "" });
  });
});
