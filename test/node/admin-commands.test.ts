import { spawn } from "node:child_process";
import { once } from "node:events";
import { appendFileSync, existsSync, readFileSync } from "node:fs";
import { join } from "node:path";
import { text } from "node:stream/consumers";
import type { Command } from "commander";
import { describe, expect, it } from "vitest";
import * as z from "zod";
import { forEnvironment } from "../../src/admin/command-line/shell.ts";
import { createAdminProgram, run } from "../../src/admin/program.ts";
import { applicationId, newEventId } from "../../src/shared/identifiers.ts";
import { webhookEvent } from "../../src/shared/schema.ts";
import { byEffort } from "../support/effort.ts";
import { captured, commandsIn, openedHomes, runScriptHere, stateFolder } from "./support/script.ts";

const PROJECT = new URL("../../", import.meta.url).pathname;
const folder = stateFolder();

/** Runs the script as a program of its own. */
async function admin(words: readonly string[]) {
  const child = spawn(process.execPath, ["--disable-warning=ExperimentalWarning", "src/admin/main.ts", ...words], {
    cwd: PROJECT,
    env: { ...process.env, BADGE_STATE_DIR: join(folder, "processes") },
  });
  const [stdout, stderr] = await Promise.all([text(child.stdout), text(child.stderr), once(child, "close")]);
  return { code: child.exitCode, stdout, stderr };
}

const adminHere = (words: readonly string[], state: string) => runScriptHere(words, join(folder, state));

const { json: adminJson } = commandsIn(join(folder, "main"));

/** Keeps the order of the keys, which is part of what is checked. */
const jsonObject = z.record(z.string(), z.unknown());
const created = z.object({ applicationId });
const secretList = z.array(z.object({ secretId: z.string() }));

const createJson = async (...words: string[]) => created.parse(await adminJson("application", "create", ...words));

describe("the administration script (contract section 10)", () => {
  it("creates applications on a fresh clone, from several processes at once, and prints the contract's fields", async () => {
    const names = byEffort(["A", "B"], ["A", "B", "C", "D"]);
    const runs = await Promise.all(names.map((name) => admin(["application", "create", "--name", name, "--json"])));
    expect(runs.map(({ code, stderr }) => ({ code, stderr }))).toEqual(names.map(() => ({ code: 0, stderr: "" })));
    const made = runs.map(({ stdout }) => jsonObject.parse(JSON.parse(stdout)));
    for (const [index, each] of made.entries()) {
      expect(Object.keys(each)).toEqual([
        ...["applicationId", "applicationSecret", "name", "firstNumber", "lastNumber", "webhookUrl"],
      ]);
      expect(each).toMatchObject({ name: names[index], webhookUrl: null });
      expect(each.applicationSecret).toMatch(/^bdss_/);
    }
    const firsts = made.map(({ firstNumber }) => firstNumber).sort();
    expect(firsts).toEqual(names.map((_, index) => 1_000_000_000 + index * 10_000_000));
  }, 120_000);

  it("shows an event and sends it again, as text and as JSON, and refuses an unknown one", async () => {
    const { applicationId } = await createJson("--name", "E", "--webhook-url", "https://e.test/");
    const { database } = await openedHomes(join(folder, "main"));
    const id = newEventId(Date.UTC(2026, 0, 2, 3, 4, 5, 678));
    const payload = JSON.stringify({ id, event: "badge:created", data: { id: "1000000001", userId: "\u001b[31mred" } });
    const times = { createdAt: Date.UTC(2026, 0, 2, 3, 4, 5, 678), dueAt: Date.UTC(2099, 5, 7, 8, 9, 10, 999) };
    const last = { attempts: 3, lastStatus: 503, lastOutcome: "answered", lastResponse: "busy", lastMilliseconds: 12 };
    const row = { applicationId, id, event: "badge:created", payload, state: "pending", ...times, ...last } as const;
    await database.run((orm) => orm.insert(webhookEvent).values(row));

    const shown = await adminHere(["webhook", "show", id], "main");
    expect(shown).toMatchObject({ code: 0, stderr: "" });
    for (const line of [
      /^ {2}Event ID +evt_/m,
      /^ {2}Badge number +1000000001$/m,
      /^ {2}Attempts +3$/m,
      /^ {2}Last status +503$/m,
      /^ {2}Last response +busy$/m,
      /^ {2}Created +2026-01-02 03:04:05Z$/m,
      /^ {2}Next attempt +2099-06-07 08:09:10Z$/m,
      /^ +"userId": "\\u001b\[31mred"$/m,
    ]) {
      expect(shown.stdout).toMatch(line);
    }
    expect(await adminJson("webhook", "show", id)).toMatchObject({
      badgeNumber: "1000000001",
      nextAttemptAt: "2099-06-07T08:09:10.999Z",
      payload: JSON.parse(payload),
    });
    const replay = async () => (await adminHere(["webhook", "replay", id], "main")).stdout;
    const soon = "The running service sends it within about a minute.\n";
    expect(await replay()).toBe(
      `Event ${id} of ${applicationId} was to be tried at 2099-06-07 08:09:10Z and is due now. ${soon}`,
    );
    expect(await replay()).toBe(`Event ${id} of ${applicationId} was due already. ${soon}`);
    expect((await adminHere(["webhook", "show", id], "main")).stdout).toContain("due now: within about a minute");
    await adminJson("application", "disable", applicationId);
    expect(await replay()).toContain(`nothing is sent before npm run -s admin -- application enable ${applicationId}.`);

    for (const command of ["show", "replay"]) {
      const unknown = await adminHere(["webhook", command, newEventId(1)], "main");
      expect(unknown).toMatchObject({ code: 1, stdout: "" });
      expect(unknown.stderr).toMatch(/^.*There is no event evt_\S+: .*\n$/);
    }
  });

  it("changes an application through its whole life, as JSON and as text", async () => {
    const url = "http://localhost:9/hooks";
    const { applicationId } = await createJson("--name", "Life", "--webhook-url", url);
    const added = await adminJson("secret", "add", applicationId);
    expect(Object.keys(jsonObject.parse(added))).toEqual(["applicationId", "secretId", "applicationSecret", "role"]);
    const shown = await adminHere(["application", "show", applicationId], "main");
    expect(shown.stdout).toContain(url);
    expect(shown.stdout).not.toContain("bdss_");
    expect(shown.stdout.split("\n").filter((line) => line.length > 80)).toEqual([]);
    expect(await adminJson("application", "update", applicationId, "--no-webhook-url")).toMatchObject({
      webhookUrl: null,
    });
    expect(await adminJson("webhook", "list", applicationId)).toEqual([]);
    await adminJson("application", "update", applicationId, "--signature-lifetime", "60");
    expect(await adminJson("application", "update", applicationId, "--signature-lifetime", "none")).toMatchObject({
      signatureLifetimeSeconds: null,
    });
    const [current] = secretList.parse(await adminJson("secret", "list", applicationId));
    const refused = await adminHere(["secret", "retire", applicationId, "--secret", current?.secretId ?? ""], "main");
    expect(refused).toMatchObject({ code: 1, stdout: "", stderr: expect.stringContaining("is the current secret") });
    const person = await adminHere(["secret", "add", applicationId, "--console", "Ann Lee"], "main");
    expect(person.stdout).toMatch(/bdss_[\w-]{43}/);
    expect(person.stdout).toContain(`npm run -s admin -- secret retire ${applicationId} --console 'Ann Lee'`);
    expect((await adminHere(["secret", "list", applicationId], "main")).stdout).toMatch(/ operator .* Ann Lee\n/);
    const retired = await adminJson("secret", "retire", applicationId, "--console", "Ann Lee");
    expect(Object.keys(jsonObject.parse(retired))).toEqual(["applicationId", "secretId", "secrets"]);
    const unknown = await adminHere(["secret", "retire", applicationId, "--console", "Ann Lee"], "main");
    expect(unknown).toMatchObject({ code: 1, stdout: "", stderr: expect.stringContaining("see npm run -s admin") });
  });

  it("removes a sealing key once, and what an interrupted run left of it", async () => {
    const remove = () => adminHere(["sealing-key", "remove", "1"], "sealing");
    const unknown = {
      code: 1,
      stdout: "",
      stderr: "There is no sealing key 1: see npm run -s admin -- sealing-key list.\n",
    };
    const removed = { code: 0, stderr: "", stdout: expect.stringMatching(/^Sealing key 1 is removed\./) };
    expect(await remove()).toEqual(unknown);
    await adminHere(["init"], "sealing");
    const file = join(folder, "sealing", "sealing-keys.env");
    const [firstKey] = readFileSync(file, "utf8").split("\n");
    await adminHere(["sealing-key", "rotate"], "sealing");
    expect(await remove()).toEqual(removed);
    expect(await remove()).toEqual(unknown);
    // Killed after the row, before the file.
    appendFileSync(file, `${firstKey}\n`);
    expect(await remove()).toEqual(removed);
    expect(readFileSync(file, "utf8")).not.toContain("SEALING_KEY_1=");
    expect(await remove()).toEqual(unknown);
  }, 120_000);

  it("names the application whose range overlaps", async () => {
    const range = ["--name", "X", "--first", "1000000000", "--last", "1000000000"];
    const { code, stdout, stderr } = await adminHere(["application", "create", ...range, "--json"], "main");
    expect({ code, stdout }).toEqual({ code: 1, stdout: "" });
    expect(stderr).toMatch(/^Numbers 1000000000-1000000000 overlap application app_\w+ \([^\n]+\n$/);
  });
});

describe("a user error is one line on standard error, and nothing on standard output (contract section 10)", () => {
  it.each([
    [["application", "create"], "Required option '--name <name>' not specified; see"],
    [["application", "create", "--name", "X", "--first", "1"], "A range needs both ends"],
    [["application", "create", "--name", "X", "--first", "9", "--last", "8"], "--first 9 is above --last 8"],
    [["application", "create", "--name", "X", "--last", "1e3"], "Give a whole number from 1 to 9007199254740991"],
    [["application", "create", "--name", " "], "Give one line of 1 to 100 characters"],
    [["secret", "add", "app_1", "--console", "two\nlines"], "Give one line of 1 to 100 characters"],
    [["secret", "retire", "app_1", "--console", "Ann", "--secret", "sec_1"], "cannot be used with option '--secret"],
    [["application", "create", "--name", "X", "--webhook-url", "http://a.example.com"], "does not start with https://"],
    [["application", "create", "--name", "X", "--webhook-url", "https://10.0.0.1"], "is an IP address"],
    [
      ["application", "update", `app_${"0".repeat(20)}`, "--env", "production", "--webhook-url", "http://localhost:1"],
      "on localhost",
    ],
    [["application", "list", "--env", "nowhere"], 'wrangler.toml has no environment "nowhere"'],
    [["application"], "Say which: create, list, show, update, disable, enable; see"],
    [["aplication", "list"], "Unknown command 'aplication' (Did you mean application?)"],
    [["webhook", "list", "app_1", "--state", "lost"], "Allowed choices are pending, delivered, exhausted, held"],
    [["webhook", "replay", "app_00000000000000000000"], "add --all-exhausted"],
    [["badge", "show", "007"], "Give a whole number"],
    [["secret", "add"], "Missing required argument 'id'; see npm run -s admin -- secret add --help"],
  ])("%j", async (words, line) => {
    const { code, stdout, stderr } = await adminHere([...words, "--json"], "never-made");
    expect({ code, stdout }).toEqual({ code: 1, stdout: "" });
    expect(stderr).toContain(line);
    expect(stderr.trimEnd().split("\n")).toHaveLength(1);
    expect(existsSync(join(folder, "never-made"))).toBe(false);
  });
});

describe("a message of a command for a deployed environment (contract section 10)", () => {
  /** The script, for which local state is an environment. */
  async function adminOf(environment: string, ...words: string[]) {
    const state = join(folder, "main");
    const opened = { ...(await openedHomes(state)), place: { environment }, close: () => Promise.resolve() };
    const program = createAdminProgram(async () => opened);
    return captured(() => run(program, [...words, "--env", environment]));
  }

  it("names commands for that environment", async () => {
    const { applicationId: id } = await createJson("--name", "Deployed");
    expect((await adminOf("production", "secret", "promote", id)).stderr).toBe(
      `There is no added secret to promote: run npm run -s admin -- --env production secret add ${id} first.\n`,
    );
    expect((await adminOf("production", "secret", "add", id)).stdout).toContain(
      `\n  npm run -s admin -- secret promote ${id} --env production\n`,
    );
    expect((await adminHere(["secret", "add", id], "main")).stderr).toContain(`-- secret promote ${id}, or`);
  });

  it("does not deploy production from another environment", () => {
    expect(forEnvironment("Run npm run deploy.", "production")).toBe("Run npm run deploy.");
    expect(forEnvironment("Run npm run deploy.", "staging")).toBe("Run npm run -s admin -- deploy --env staging.");
  });
});

describe("help", () => {
  const all = (command: Command): Command[] => [command, ...command.commands.flatMap(all)];
  const commands = all(createAdminProgram()).map((command): [string, Command] => [command.name(), command]);

  it.each(commands)("of %s is a page of 80 columns with a description", (_name, command) => {
    let page = "";
    command.configureOutput({ writeOut: (part) => (page += part), getOutHasColors: () => false });
    command.outputHelp();
    expect(page.split("\n").filter((line) => line.length > 80)).toEqual([]);
    expect(command.description()).toMatch(/\.$/);
    expect(page).not.toContain("\u001b");
    if (command.commands.length === 0) expect(page).toContain("Examples:");
  });

  it("goes to standard output, with the exit code 0", async () => {
    const shown = { code: 0, stderr: "", stdout: expect.stringMatching(/^Usage: npm run -s admin -- /) };
    expect(await admin([])).toEqual(shown);
    for (const words of [["--help"], ["secret", "add", "--help"]])
      expect(await adminHere(words, "main")).toEqual(shown);
  });

  it("of badge show says that a number in no range is a result, not an error", async () => {
    const { stdout } = await adminHere(["badge", "show", "--help"], "main");
    expect(stdout.replaceAll(/\s+/g, " ")).toContain("is a result like the others (state: outside, exit code 0)");
  });
});
