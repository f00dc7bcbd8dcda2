import { execFile, spawn, spawnSync } from "node:child_process";
import { existsSync, readFileSync } from "node:fs";
import { createServer } from "node:http";
import { networkInterfaces } from "node:os";
import { text } from "node:stream/consumers";
import { promisify } from "node:util";
import { afterAll, beforeAll, describe, expect, it } from "vitest";
import * as z from "zod";
import { UserError } from "../../src/admin/command-line/errors.ts";
import { PROJECT } from "../../src/admin/platform/paths.ts";
import { DeviceClient, ServerClient } from "../../src/client/index.ts";
import { originsOf } from "../../src/dev/address.ts";
import { readCommandLine } from "../../src/dev/command-line.ts";
import { listenSomewhere } from "../../src/dev/demo/listen.ts";
import { createLogFilter } from "../../src/dev/service.ts";
import { until } from "../support/until.ts";
import { processesOf, untilGone } from "./support/process-tree.ts";
import { closeHomes, openedHomes, runScriptHere } from "./support/script.ts";
import { freePort, type RunningService, runProgram, startService } from "./support/service.ts";

/** What somebody does who has just cloned the project, on one service: the README typed, the demo, stops and starts. */

/** For a machine that does ten other things. */
const LIMIT_MILLISECONDS = 240_000;

let service: RunningService;
let state: string;

const admin = (...words: string[]) => runScriptHere(words, state);

beforeAll(async () => {
  service = await startService();
  state = `${service.folder}/state`;
}, LIMIT_MILLISECONDS);

afterAll(async () => {
  await closeHomes();
  await service?.stop();
  service?.remove();
});

/** As they are started for somebody who types, without that person's own settings. */
const SHELLS = [
  ["bash", ["--norc", "--noprofile", "-i", "-s"]],
  ["zsh", ["-f", "-i", "-s"]],
] as const;

const INSTALLED = SHELLS.filter(([shell]) => spawnSync(shell, ["-c", "true"]).status === 0);

describe("the README, typed", { timeout: LIMIT_MILLISECONDS }, () => {
  const readme = readFileSync(`${PROJECT}/README.md`, "utf8");
  const blocks = [...readme.matchAll(/^```sh\n([\s\S]*?)^```$/gm)].map(([, block]) => block);

  it.each(INSTALLED.map(([shell, words], place) => ({ shell, words, place })))(
    "in $shell gets a badge, a signature and an invitation; in the first shell it opens doors, too",
    async ({ shell, words, place }) => {
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
      const [start, settings, calls, invite, door, scanner = ""] = blocks;
      const [invited = "", doorWithScanner] = scanner.split(/^(?=npx)/m);
      expect(start).toBe("npm ci\nnpm start\n");
      const printed = await type(`${settings}${calls}${invite}${invited}`);
      const answers = [...printed.matchAll(/^.*?(\{".*\})$/gm)].map(([, json = ""]): unknown => JSON.parse(json));
      const badgeId = expect.stringMatching(/^\d+$/);
      expect(answers).toEqual([
        { badgeId, publicKey: expect.any(String) },
        { signature: expect.any(String) },
        { badges: expect.arrayContaining([{ id: badgeId, userId: "alice" }]) },
        { id: expect.stringMatching(/^inv_/), badgeId, expiresAt: expect.any(String) },
      ]);
      const { signature } = z.object({ signature: z.string() }).parse(answers[1]);
      // A door's lines take seconds, and nothing in them is a shell's own.
      if (place > 0) return;
      expect(await type(`${settings}${door}${signature}\n`)).toMatch(/open: badge \d+/);
      const { pathname, hash } = new URL(/^http:\S+$/m.exec(printed)?.[0] ?? "");
      expect(pathname).toBe("/pass");
      const [, ofLink = "", invitationToken = ""] = hash.split(/[#/]/);
      const phone = new DeviceClient({ baseUrl: service.origin, applicationId: ofLink, udid: "visitor" });
      const { badgeId: visitors } = await phone.requestBadge({ userId: "visitor", invitationToken });
      const code = await phone.sign("cGFzcw==");
      // The scanner types what it reads on the visitor's phone.
      expect(await type(`${settings}${doorWithScanner}${code}\n`)).toContain(`open: badge ${visitors}\n`);
    },
  );
});

/** Nothing listens there. */
const OWN_URL = "http://127.0.0.1:9/mine";
const DEMO = `${PROJECT}/src/dev/demo/main.ts`;

describe("npm run demo with the service running (contract section 10)", () => {
  let told: Awaited<ReturnType<typeof runProgram>>;

  beforeAll(async () => {
    await admin("application", "update", service.demo.applicationId, "--webhook-url", OWN_URL);
    told = await runProgram([DEMO], { BADGE_STATE_DIR: state });
  }, LIMIT_MILLISECONDS);

  // It checks each of its steps against the contract. Nobody has told it the port.
  it("npm run demo finds the service that runs on its data, and tells the story to its end", () => {
    expect(told).toMatchObject({ code: 0, stderr: "" });
    const titles = told.stdout.split("\n").filter((line) => /^[ \d]\d {2}/.test(line));
    expect(titles.map((title) => Number.parseInt(title, 10))).toEqual(
      Array.from({ length: 25 }, (_, step) => step + 1),
    );
    expect(told.stdout).toContain("Done: 5 badges");
  });

  it("the demo leaves a day's badges in the application that npm start prints, to see in the console (contract section 19)", async () => {
    const [, baseUrl = "", applicationId = "", applicationSecret = ""] =
      /in a browser: (\S+)\/console\n {2}Application ID {2}(app_\w+)\n {2}Secret {10}(bdss_\S+)\n/.exec(told.stdout) ??
      [];
    expect(applicationId).toBe(service.demo.applicationId);
    const server = new ServerClient({ baseUrl, applicationId, applicationSecret });
    const { badgesPerDay, badgesByState } = await server.getStatistics();
    expect(badgesPerDay.reduce((sum, { badges: count }) => sum + count, 0)).toBeGreaterThanOrEqual(50);
    expect(badgesByState).toMatchObject({ suspended: 1, revoked: 1 });
    // Its own webhook URL is as it was.
    const { stdout } = await admin("application", "list", "--json");
    expect(JSON.parse(stdout)).toContainEqual(expect.objectContaining({ applicationId, webhookUrl: OWN_URL }));
  });

  it("the demo shows no secret, invitation token or signature in full, except the secret for signing in", () => {
    expect(told.stdout).toMatch(/bdss_[\w-]{4}…/);
    expect(told.stdout.match(/bdss_[\w-]{5}/g)).toHaveLength(1);
    expect(told.stdout).toMatch(/inv_[\w-]{4}…/);
    expect(told.stdout).not.toMatch(/inv_[\w-]{5}/);
    expect(told.stdout).not.toMatch(/eyJ[\w-]+\./);
  });
});

const program = (name: "start" | "reset", words: readonly string[], folder: string) =>
  runProgram([`src/dev/${name}.ts`, ...words], { BADGE_STATE_DIR: folder });

/** Runs the commands that `npm start` printed. @returns the status codes */
async function runPrinted(): Promise<string[]> {
  const statuses: string[] = [];
  for (const [command] of service.output().matchAll(/^curl .*$/gm)) {
    const { stdout } = await promisify(execFile)("sh", ["-c", command.replace("curl -i", "curl -si")]);
    statuses.push(stdout.split(" ")[1] ?? "");
  }
  return statuses;
}

const networkAddress = (): string | undefined =>
  Object.values(networkInterfaces())
    .flatMap((each) => each ?? [])
    .find(({ family, internal }) => family === "IPv4" && !internal)?.address;

describe("npm start", { timeout: LIMIT_MILLISECONDS }, () => {
  it("npm start prints commands that can be pasted, and requests as JSON, and nothing of wrangler's output", async () => {
    expect(await runPrinted()).toEqual(["201", "200", "200"]);
    const lines = (): unknown[] => {
      const [, log = ""] = service.output().split("npm run reset deletes the data.");
      const whole = log.slice(0, log.lastIndexOf("\n") + 1).split("\n");
      return whole.filter((line) => line !== "").map((line) => JSON.parse(line));
    };
    await until(() => expect(lines()).toContainEqual(expect.objectContaining({ event: "request" })));
  });

  it("npm start refuses data or a port in use, and keeps its data from being deleted", async () => {
    const port = new URL(service.origin).port;
    const [again, onPort, reset] = await Promise.all([
      program("start", ["--port", String(await freePort())], state),
      program("start", ["--port", port], `${state}-2`),
      program("reset", ["--yes"], state),
    ]);
    const running = "The service already runs on this data: stop it first (Ctrl-C where it was started).\n";
    const inUse = `Port ${port} is in use: stop what uses it or choose another, as in npm start -- --port 8788\n`;
    const kept = expect.stringMatching(/^The service is running: [^\n]+\n$/);
    expect([again, onPort, reset]).toEqual([running, inUse, kept].map((stderr) => ({ code: 1, stdout: "", stderr })));
  });

  it("npm start leaves no process behind when it is killed", async () => {
    const { main, below } = processesOf(service);
    process.kill(main.pid, "SIGKILL");
    await untilGone([main, ...below]);
  });

  it("npm start continues with the same data and the same demo application, when its secret was changed, and serves an address of the network (contract section 10)", async () => {
    const { applicationId } = service.demo;
    const added = await admin("secret", "add", applicationId, "--json");
    const { applicationSecret } = z.object({ applicationSecret: z.string() }).parse(JSON.parse(added.stdout));
    for (const words of ["promote", "retire"]) await admin("secret", words, applicationId);
    const address = networkAddress() ?? "127.0.0.1";
    service = await service.restart("--host", address);
    expect(service.demo.applicationId).toBe(applicationId);
    const origin = `http://${address}:${new URL(service.origin).port}`;
    expect(service.output()).toContain(`is ready: ${origin}\n`);
    expect(service.output()).toContain(`npm run -s admin -- secret add ${applicationId}\n`);
    expect(service.output()).not.toContain(service.demo.applicationSecret);
    const headers = { applicationid: applicationId, applicationsecret: applicationSecret };
    const response = await fetch(`${origin}/v1/badges`, { headers });
    expect(await response.text()).toContain('"userId":"user-');
    expect(await runPrinted()).toEqual(["201", "200"]);
    // The sweep sends it, so the cron trigger is driven at this address, too.
    const receiver = createServer((_request, response) => response.writeHead(204).end());
    await admin("application", "update", applicationId, "--webhook-url", `${await listenSomewhere(receiver)}/`);
    expect(await admin("webhook", "test", applicationId, "--wait", "30")).toMatchObject({ code: 0 });
    receiver.close();
  });

  it("npm start fails with one line when its runtime is killed (contract section 10)", async () => {
    const { below } = processesOf(service);
    const workerd = below.filter(({ command }) => command.includes("workerd serve"));
    expect(workerd).toHaveLength(2);
    process.kill(workerd[1]?.pid ?? 0, "SIGKILL");
    expect(await service.ended).toBe(1);
    const line = "The runtime (workerd) was ended by SIGKILL: start again with npm start. The data is kept.";
    expect(service.output().trimEnd().split("\n").at(-1)).toBe(line);
    await untilGone(below);
  });

  it("npm start refuses another version's data with one line that names reset, and changes nothing", async () => {
    const { database } = await openedHomes(state);
    const older = "INSERT INTO d1_migrations (name) VALUES ('0009_number_ranges.sql')";
    await database.run((_, d1) => d1.prepare(older).run());
    await closeHomes();
    const started = await program("start", ["--port", String(await freePort())], state);
    const refusal =
      "The local data was made by another version of the service, which this one cannot read: npm run reset\n";
    expect(started).toEqual({ code: 1, stdout: "", stderr: `Starting…\n${refusal}` });
  });

  it("npm run reset deletes the data", async () => {
    const unasked = { code: 1, stdout: "", stderr: "There is no terminal to ask on: run npm run reset -- --yes\n" };
    expect(await program("reset", [], state)).toEqual(unasked);
    expect(await program("reset", ["--yes"], state)).toMatchObject({ code: 0, stderr: "" });
    for (const name of ["v3", "sealing-keys.env", "demo-application.json"]) {
      expect(existsSync(`${state}/${name}`), name).toBe(false);
    }
    expect(await program("reset", [], state)).toMatchObject({ code: 0, stdout: "There is no local data.\n" });
  });
});

describe("the command line of npm start", () => {
  it.each([
    [["--port", "0"], '"0" is not a port: give a number from 1 to 65535'],
    [["--prot", "8788"], "Unknown option '--prot'; see npm start -- --help"],
    [["--host", "phone.example.com"], '"phone.example.com" is not an IP address'],
    [["8788"], "Unexpected argument '8788'; see npm start -- --help"],
  ])("npm start refuses %j with one line", (words, line) => {
    for (const refusal of [UserError, line, /^[^\n]+$/]) expect(() => readCommandLine(words)).toThrow(refusal);
  });
});

describe("help", () => {
  it.each(["start", "reset"] as const)("help of npm %s goes to standard output, with the exit code 0", async (name) => {
    const { code, stdout, stderr } = await program(name, ["--help"], "/nowhere");
    expect({ code, stderr }).toEqual({ code: 0, stderr: "" });
    expect(stdout).toMatch(/^Usage: npm /);
    expect(stdout.split("\n").filter((line) => line.length > 80)).toEqual([]);
  });
});

it("the service can be reached on this computer only, or from the network", () => {
  expect(originsOf(undefined, 8787)).toEqual({ own: "http://localhost:8787", printed: "http://localhost:8787" });
  const printed = `http://${networkAddress() ?? "127.0.0.1"}:1`;
  expect(originsOf("0.0.0.0", 1)).toEqual({ own: "http://127.0.0.1:1", printed });
});

describe("the log filter", () => {
  it("the log filter passes the Worker's JSON and whole errors, and nothing else of wrangler's", () => {
    const filter = createLogFilter();
    const error = ["✘ [ERROR] Build failed with 1 error:", "  src/worker/index.ts:1:1: no", "    at line"];
    const lines = [
      ...['{"a":1}', '\u001b[31m✘ [ERROR]\u001b[0m {"b":2}', '▲ [WARNING] {"c":3}'],
      ...["⎔ Reloading local server...", "[wrangler:info] GET / 200 OK (3ms)", "Your Worker has access to", ...error],
      ...["▲ [WARNING] Scheduled Workers are not triggered", "  To do so, run:"],
      ...["✘ [ERROR] kj: disconnected: write(): Broken pipe", "  stack: 0x1"],
    ];
    expect(lines.map(filter).filter((line) => line !== null)).toEqual(['{"a":1}', '{"b":2}', '{"c":3}', ...error]);
  });
});

it("npm run demo says in one line that the service must be started first", async () => {
  const origin = `http://localhost:${await freePort()}`;
  const stderr = `Nothing responds at ${origin}: run npm start first, in another terminal.\n`;
  expect(await runProgram([DEMO, "--url", origin])).toEqual({ code: 1, stdout: "", stderr });
});
