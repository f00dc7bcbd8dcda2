import { execFile } from "node:child_process";
import { chmodSync, existsSync, mkdtempSync, rmSync } from "node:fs";
import { createServer } from "node:http";
import { networkInterfaces, tmpdir } from "node:os";
import { join } from "node:path";
import { promisify } from "node:util";
import { afterAll, beforeAll, describe, expect, it } from "vitest";
import * as z from "zod";
import { UserError } from "../../src/admin/command-line/errors.ts";
import { originsOf } from "../../src/dev/address.ts";
import { readCommandLine } from "../../src/dev/command-line.ts";
import { createLogFilter } from "../../src/dev/service.ts";
import { until } from "../support/until.ts";
import { listen } from "./support/listen.ts";
import { processesOf, untilGone } from "./support/process-tree.ts";
import { startProgram } from "./support/program.ts";
import { closeHomes, openedHomes, runScriptHere } from "./support/script.ts";
import { freePort, type RunningService, runProgram, startService } from "./support/service.ts";

/** A path at which this user may make nothing. As root, by giving up the right to pass over permissions. */
function withoutRights(): { folder: string; prefix: string[] } {
  const folder = mkdtempSync(join(tmpdir(), "badge-test-"));
  chmodSync(folder, 0o555);
  const isRoot = process.getuid?.() === 0;
  return { folder, prefix: isRoot ? ["setpriv", "--bounding-set=-dac_override,-dac_read_search"] : [] };
}

/** Where it says that it is ready. */
const originOf = (service: RunningService): string => /is ready: (\S+)/.exec(service.output())?.[1] ?? "";

/** For a machine that does ten other things. */
const START_LIMIT_MILLISECONDS = 120_000;

const program = (name: "start" | "reset", words: readonly string[], folder: string) =>
  runProgram([`src/dev/${name}.ts`, ...words], { BADGE_STATE_DIR: folder });

const fields = z.object({ badgeId: z.string(), publicKey: z.string(), signature: z.string() }).partial();

/** Runs the commands that `npm start` printed. @returns the status codes */
async function runPrinted(service: RunningService): Promise<string[]> {
  const commands = service
    .output()
    .split("\n")
    .filter((line) => line.startsWith("curl "));
  const statuses: string[] = [];
  for (const command of commands) {
    const { stdout } = await promisify(execFile)("sh", ["-c", command.replace("curl -i", "curl -si")]);
    statuses.push(stdout.split(" ")[1] ?? "");
  }
  return statuses;
}

const networkAddress = (): string | undefined =>
  Object.values(networkInterfaces())
    .flatMap((each) => each ?? [])
    .find(({ family, internal }) => family === "IPv4" && !internal)?.address;

describe("npm start", () => {
  let service: RunningService;
  let state: string;

  const admin = (...words: string[]) => runScriptHere(words, state);

  beforeAll(async () => {
    service = await startService();
    state = `${service.folder}/state`;
  }, START_LIMIT_MILLISECONDS);

  afterAll(async () => {
    await closeHomes();
    await service?.stop();
    service?.remove();
  });

  it("npm start prints commands that can be pasted", async () => {
    expect(await runPrinted(service)).toEqual(["201", "200", "200"]);
  });

  it("npm start shows requests as JSON, and nothing of wrangler's output", async () => {
    const lines = (): unknown[] => {
      const [, log = ""] = service.output().split("npm run reset deletes the data.");
      const whole = log.slice(0, log.lastIndexOf("\n") + 1).split("\n");
      return whole.filter((line) => line !== "").map((line) => JSON.parse(line));
    };
    await until(() => expect(lines()).toContainEqual(expect.objectContaining({ event: "request" })));
  });

  it("npm start refuses data or a port in use, and keeps its data from being deleted", async () => {
    const port = new URL(service.origin).port;
    const refused = (stderr: unknown) => ({ code: 1, stdout: "", stderr });
    const [again, onPort, reset] = await Promise.all([
      program("start", ["--port", String(await freePort())], state),
      program("start", ["--port", port], `${state}-2`),
      program("reset", ["--yes"], state),
    ]);
    expect(again).toEqual(
      refused("The service already runs on this data: stop it first (Ctrl-C where it was started).\n"),
    );
    expect(onPort).toEqual(
      refused(`Port ${port} is in use: stop what uses it or choose another, as in npm start -- --port 8788\n`),
    );
    expect(reset).toEqual(refused(expect.stringMatching(/^The service is running: [^\n]+\n$/)));
  });

  it("npm start leaves no process behind when it is killed", async () => {
    const { main, below } = processesOf(service);
    process.kill(main.pid, "SIGKILL");
    await untilGone([main, ...below]);
  });

  it(
    "npm start continues with the same data and the same demo application, when its secret was changed, and serves an address of the network (contract section 10)",
    async () => {
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
      expect(await response.json()).toMatchObject({ badges: [{ userId: expect.stringMatching(/^user-/) }] });
      expect(await runPrinted(service)).toEqual(["201", "200"]);
      const { stdout } = await admin("application", "list", "--json");
      expect(JSON.parse(stdout)).toMatchObject([{ applicationId, name: "Demo" }]);
      // The sweep sends it, so the cron trigger is driven at this address, too.
      const receiver = createServer((_request, response) => response.writeHead(204).end());
      await admin("application", "update", applicationId, "--webhook-url", `${await listen(receiver)}/`);
      expect(await admin("webhook", "test", applicationId, "--wait", "30")).toMatchObject({ code: 0 });
      receiver.close();
    },
    START_LIMIT_MILLISECONDS,
  );

  it("npm start serves applications of home 2: the script finds their badges by number, and their status lists have its address (contract sections 14 and 17)", async () => {
    const words = ["application", "create", "--name", "Elsewhere", "--home", "2", "--status-list", "--json"];
    const created = z
      .object({ applicationId: z.string(), firstNumber: z.number() })
      .parse(JSON.parse((await admin(...words)).stdout));
    expect(created.applicationId).toMatch(/^app2_/);
    const headers = { applicationid: created.applicationId, udid: "phone" };
    const origin = originOf(service);
    const post = async (path: string, body: object) => {
      const response = await fetch(`${origin}${path}`, { method: "POST", headers, body: JSON.stringify(body) });
      return { status: response.status, ...fields.parse(await response.json()) };
    };
    const { status, badgeId = "" } = await post("/v1/badge", { userId: "user" });
    expect(status).toBe(201);
    expect(Number(badgeId)).toBeGreaterThanOrEqual(created.firstNumber);
    expect(await post("/v1/badge", { userId: "user" })).toEqual({ status: 200, badgeId });
    const { signature = "" } = await post("/v1/badge/sign", { base64: "AAAA" });
    const { uri } = JSON.parse(Buffer.from(signature.split(".")[1] ?? "", "base64url").toString()).status.status_list;
    expect(uri).toBe(`${origin}/v1/applications/${created.applicationId}/status/0`);
    const list = await fetch(uri);
    expect([list.status, list.headers.get("content-type")]).toEqual([200, "application/statuslist+jwt"]);
    await list.body?.cancel();
    const { stdout } = await admin("badge", "revoke", badgeId, "--json");
    expect(JSON.parse(stdout)).toMatchObject({ id: badgeId, state: "revoked" });
    expect((await post("/v1/badge/sign", { base64: "AAAA" })).status).toBe(403);
    const homes = JSON.parse((await admin("home", "list", "--json")).stdout);
    expect(homes).toMatchObject([{ home: 1 }, { home: 2, applications: 1, badges: 1 }]);
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

  it(
    "the first npm start fails with that line, too, when its runtime is killed before the demo application exists (contract section 10)",
    async () => {
      const folder = mkdtempSync(join(tmpdir(), "badge-test-"));
      const port = String(await freePort());
      const words = [process.execPath, "src/dev/start.ts", "--port", port];
      const { said, ended, untilSaid } = startProgram(words, { env: { BADGE_STATE_DIR: folder } });
      await untilSaid(/"route":"\/health","status":200/);
      const { below } = processesOf({ origin: `http://localhost:${port}`, folder });
      const workerd = below.filter(({ command }) => command.includes("workerd serve"));
      process.kill(workerd[1]?.pid ?? 0, "SIGKILL");
      expect(await ended).toBe(1);
      expect(said.all).toMatch(/\nThe runtime \(workerd\) was ended by SIGKILL: [^\n]*\n$/);
      expect(said.all).not.toContain("is ready");
      rmSync(folder, { recursive: true });
    },
    START_LIMIT_MILLISECONDS,
  );

  it("npm start says at once in one line that the data belongs to another user (contract section 10)", async () => {
    const { folder, prefix } = withoutRights();
    const env = { BADGE_STATE_DIR: `${folder}/state` };
    const programs = [["src/dev/start.ts"], ["src/admin/main.ts", "application", "list"]];
    const results = await Promise.all(programs.map((words) => runProgram(words, env, prefix)));
    const stderr = expect.stringMatching(/^You may not write to [^\n]*badge-test-[^\n]* \(EACCES\)\.\n$/);
    expect(results).toEqual(programs.map(() => ({ code: 1, stdout: "", stderr })));
    rmSync(folder, { recursive: true });
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
    [["--port", "65536"], '"65536" is not a port'],
    [["--port", "http"], '"http" is not a port'],
    [["--port"], "Option '--port <value>' argument missing; see npm start -- --help"],
    [["--prot", "8788"], "Unknown option '--prot'; see npm start -- --help"],
    [["--host", "phone.example.com"], '"phone.example.com" is not an IP address'],
    [["8788"], "Unexpected argument '8788'; see npm start -- --help"],
  ])("npm start refuses %j with one line", (words, line) => {
    for (const refusal of [UserError, line, /^[^\n]+$/]) expect(() => readCommandLine(words)).toThrow(refusal);
  });
});

describe("help", () => {
  it.each([["start", "--help"] as const, ["reset", "--help"] as const, ["reset", "-h"] as const])(
    "help of npm %s %s goes to standard output, with the exit code 0",
    async (name, word) => {
      const { code, stdout, stderr } = await program(name, [word], "/nowhere");
      expect({ code, stderr }).toEqual({ code: 0, stderr: "" });
      expect(stdout).toMatch(/^Usage: npm /);
      expect(stdout.split("\n").filter((line) => line.length > 80)).toEqual([]);
    },
  );

  it("npm start -h prints the help page, too", () => {
    expect(readCommandLine(["-h"]).help).toBe(true);
  });
});

describe("where the service can be reached", () => {
  it("the service can be reached on this computer only, at one of its addresses, or from the network", () => {
    const network = networkAddress();
    expect(originsOf(undefined, 8787)).toEqual({ own: "http://localhost:8787", printed: "http://localhost:8787" });
    expect(originsOf("192.0.2.7", 1)).toEqual({ own: "http://192.0.2.7:1", printed: "http://192.0.2.7:1" });
    expect(originsOf("2001:db8::7", 1)).toMatchObject({ printed: "http://[2001:db8::7]:1" });
    expect(originsOf("0.0.0.0", 1)).toEqual({
      own: "http://127.0.0.1:1",
      printed: `http://${network ?? "127.0.0.1"}:1`,
    });
    expect(originsOf("::", 1)).toMatchObject({ own: "http://[::1]:1" });
  });
});

describe("the log filter", () => {
  const show = (...lines: string[]) => {
    const filter = createLogFilter();
    return lines.map(filter).filter((line) => line !== null);
  };

  it("the log filter passes the Worker's JSON, without wrangler's own output", () => {
    expect(show('{"a":1}', '\u001b[31m✘ [ERROR]\u001b[0m {"b":2}', '▲ [WARNING] {"c":3}')).toEqual([
      ...['{"a":1}', '{"b":2}', '{"c":3}'],
    ]);
  });

  it("the log filter passes whole errors, and nothing else of wrangler's", () => {
    const error = ["✘ [ERROR] Build failed with 1 error:", "  src/worker/index.ts:1:1: no", "", "    at line"];
    const noise = ["⎔ Reloading local server...", "[wrangler:info] GET / 200 OK (3ms)", "Your Worker has access to"];
    const warning = ["▲ [WARNING] Scheduled Workers are not triggered", "  To do so, run:"];
    expect(show(...noise, ...error, ...warning, ...noise)).toEqual(error.filter((line) => line !== ""));
  });

  it("the log filter hides callers that disconnect", () => {
    expect(show("✘ [ERROR] kj: disconnected: write(): Broken pipe", "  stack: 0x1")).toEqual([]);
  });
});
