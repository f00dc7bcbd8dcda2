import { spawn, spawnSync } from "node:child_process";
import { once } from "node:events";
import { describe, expect, it } from "vitest";

/** Asks for a name, and prints the answer or the line for what was thrown. */
const PROGRAM = `
  import { askOnTerminal } from "./src/admin/command-line/terminal.ts";
  import { describeError } from "./src/admin/command-line/errors.ts";
  const answer = askOnTerminal("Which NAME? ", (text) => (text === "acme" ? text : undefined));
  console.log(await answer.then((name) => "answer: " + name, describeError));
`;

const hasTerminal = spawnSync("script", ["--version"]).status === 0;

/** Runs the program on a pseudo-terminal, and types a line whenever it asks. @returns what is then on the screen */
async function type(...lines: string[]): Promise<string> {
  const command = `'${process.execPath}' --disable-warning=ExperimentalWarning --input-type=module --eval '${PROGRAM}'`;
  const child = spawn("script", ["--quiet", "--return", "--command", command, "/dev/null"]);
  let screen = "";
  let typed = 0;
  child.stdout.on("data", (bytes) => {
    screen += bytes;
    const next = screen.split("Which NAME? ").length > typed + 1 ? lines[typed] : undefined;
    if (next === undefined) return;
    typed++;
    child.stdin.write(next);
  });
  await once(child, "close");
  return screen;
}

describe.skipIf(!hasTerminal)("questions of the administration script (contract section 25)", () => {
  it("a question is asked again until the answer can be used", async () => {
    expect(await type("Acme & Co.\n", "acme\n")).toContain("answer: acme");
  });

  it.each([
    ["Ctrl-C", "\u0003"],
    ["Ctrl-D", "\u0004"],
  ])("%s at a question ends the command with a plain line", async (_, key) => {
    expect(await type("Acme & Co.\n", key)).toContain("Stopped without an answer: nothing was changed.");
  });
});
