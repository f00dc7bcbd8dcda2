import { existsSync } from "node:fs";
import { join } from "node:path";
import type { Command } from "commander";
import { describe, expect, it } from "vitest";
import * as z from "zod";
import { forEnvironment } from "../../src/admin/command-line/shell.ts";
import { adviceFor } from "../../src/admin/platform/rights.ts";
import { createAdminProgram, run } from "../../src/admin/program.ts";
import { SUBSCRIBABLE } from "../support/subscribable.ts";
import { startProgram } from "./support/program.ts";
import { captured, commandsIn, localHomes } from "./support/script.ts";

const { folder, homes, database, register, admin: adminHere, create, json } = await localHomes();

describe("the administration script (contract section 10)", () => {
  it("application create prints the contract's fields, in their order", async () => {
    const printed = await json("application", "create", "--name", "App");
    const keys = ["applicationId", "applicationSecret", "name", "firstNumber", "lastNumber", "webhookUrl"];
    expect(Object.keys(z.record(z.string(), z.unknown()).parse(printed))).toEqual(keys);
    const applicationSecret = expect.stringMatching(/^bdss_[\w-]{43}$/);
    expect(printed).toMatchObject({ name: "App", webhookUrl: null, applicationSecret });
  });
}, 120_000);

const ISSUER = "--user-issuer https://login.example.com";

describe("a user error is one line on standard error, and nothing on standard output (contract section 10)", () => {
  /** A command line that is refused before the databases are opened. */
  async function expectRefused(line: string, problem: string): Promise<void> {
    const state = join(folder, "never-made");
    expect(await commandsIn(state).refusal(...line.split(" "))).toContain(problem);
    expect(existsSync(state)).toBe(false);
  }

  it.each([
    ["application list --env nowhere", 'wrangler.toml has no environment "nowhere"'],
    [`application update app_${"0".repeat(20)} --env production --webhook-url http://localhost:1`, "on localhost"],
    ["application", "Say which: create, list, show, update, disable, enable; see"],
    ["aplication list", "Unknown command 'aplication' (Did you mean application?)"],
    ["secret add", "Missing required argument 'id'; see npm run -s admin -- secret add --help"],
    ["secret retire app_1 --console Ann --secret sec_1", "cannot be used with option '--secret"],
    ["webhook replay app_00000000000000000000", "add --all-exhausted"],
    ["badge show 007", "Give a whole number"],
    ["badge expire 1", "Required option '--at <time>' not specified"],
    ["badge expire 1 --at 2099-01-01T00:00:00", "Give a date-time with a zone"],
    ["user block app_00000000000000000000 ..", '".." does not fit <user>.'],
    // What an unset variable of a shell leaves.
    ["user block app_00000000000000000000 ", '"" does not fit <user>.'],
    ["init --home 2", "--home needs --env"],
    ["init --env production --home 2 --location weur --jurisdiction eu", "cannot be used with option"],
    ["deploy --env production --address badges.example.com", '"badges.example.com" does not fit --address.'],
  ])("%j", expectRefused);

  it.each([
    ["--first 1", "A range needs both ends"],
    ["--last 1e3", "Give a whole number from 1 to 9007199254740991"],
    ["--webhook-url http://a.example.com", "does not start with https://"],
    ["--events badge:created,badge:gone", `Unknown: "badge:gone". The events are ${SUBSCRIBABLE.join(", ")}; see`],
    ...["59", "none", "1e9"].map((text) => [
      `--status-lifetime ${text}`,
      `"${text}" does not fit --status-lifetime. Give a whole number from 60 to `,
    ]),
    ["--new-badges-per-hour 0", "Give a whole number from 1"],
    ["--bind-until tomorrow", "Give a date-time with a zone"],
    [ISSUER, "Give --user-audience too"],
    [`${ISSUER} --user-audience a --user-claim \t`, "--user-claim"],
    ["--user-audience app", "give --user-issuer too"],
    ["--user-issuer http://login.example.com --user-audience app", "does not start with https://"],
    ["--user-issuer https://login.internal --user-audience app", "is a name of a local network"],
    ["--user-issuer https://login.example.com?a=b --user-audience app", "must not have a query"],
  ])("application create --name X %s", async (options, problem) => {
    await expectRefused(`application create --name X ${options}`, String(problem));
  });
});

describe("a message of a command for a deployed environment (contract section 10)", () => {
  /** The script, for which local state is an environment. */
  async function adminOf(environment: string, ...words: string[]) {
    const opened = { homes, database, backend: { environment }, wake: register.wake, close: () => Promise.resolve() };
    const program = createAdminProgram(async () => opened);
    return captured(() => run(program, [...words, "--env", environment]));
  }

  it("a message of a command for a deployed environment names commands for that environment", async () => {
    const { applicationId: id } = await create();
    expect((await adminOf("production", "secret", "promote", id)).stderr).toBe(
      `There is no added secret to promote: run npm run -s admin -- --env production secret add ${id} first.\n`,
    );
    expect((await adminOf("production", "secret", "add", id)).stdout).toContain(
      `\n  npm run -s admin -- secret promote ${id} --env production\n`,
    );
    expect((await adminHere("secret", "add", id)).stderr).toContain(`-- secret promote ${id}, or`);
  });

  it("a command for a deployed environment does not deploy production from another one", () => {
    expect(forEnvironment("Run npm run deploy.", "production")).toBe("Run npm run deploy.");
    expect(forEnvironment("npm run deploy -- --force insists.", "staging")).toBe(
      "npm run -s admin -- deploy --env staging --force insists.",
    );
    const gradual = adviceFor([10_215]) ?? "";
    expect(gradual).toContain("rollback");
    expect(forEnvironment(gradual, "staging")).not.toContain("production");
    expect(forEnvironment("npm run -s admin -- doctor --env production-eu", "production-eu")).toBe(
      "npm run -s admin -- doctor --env production-eu",
    );
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

  it.each([[[]], [["secret", "add", "--help"]]])(
    "help of %j goes to standard output, with the exit code 0",
    async (words) => {
      const shown = { code: 0, stderr: "", stdout: expect.stringMatching(/^Usage: npm run -s admin -- /) };
      expect(await adminHere(...words)).toEqual(shown);
    },
  );
});

describe("output that cannot be written (contract section 10)", () => {
  async function helpTo(destination: string) {
    const command = `"${process.execPath}" src/admin/main.ts --help ${destination}`;
    const { said, ended } = startProgram(["bash", "-c", command]);
    return { code: await ended, stderr: said.err };
  }

  it.skipIf(!existsSync("/dev/full"))("a full disk is one line on standard error, with the exit code 1", async () => {
    const stderr = "The result cannot be written (ENOSPC), and what is shown only once is lost.\n";
    expect(await helpTo("> /dev/full")).toEqual({ code: 1, stderr });
  });

  it("a reader that stops reading, as `head` does, gets no error", async () => {
    expect(await helpTo("| true")).toEqual({ code: 0, stderr: "" });
  });
});
