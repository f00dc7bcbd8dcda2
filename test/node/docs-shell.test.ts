import { spawn, spawnSync } from "node:child_process";
import { readdirSync, readFileSync } from "node:fs";
import { join } from "node:path";
import { text } from "node:stream/consumers";
import { fileURLToPath } from "node:url";
import { afterAll, beforeAll, describe, expect, it } from "vitest";
import * as z from "zod";
import { closeHomes, runScriptHere } from "./support/script.ts";
import { type RunningService, startService } from "./support/service.ts";

const PROJECT = fileURLToPath(new URL("../../", import.meta.url));

/** For a machine that does ten other things. */
const LIMIT_MILLISECONDS = 120_000;

/** The contract and the interface came from elsewhere. */
const GIVEN = ["docs/contract.md", "docs/interface.md"];

const DOCUMENTS = [".", ".github", "docs", "src", "test"]
  .flatMap((folder) =>
    readdirSync(join(PROJECT, folder), { recursive: folder !== ".", encoding: "utf8" }).map((name) =>
      join(folder, name),
    ),
  )
  .filter((path) => path.endsWith(".md") && !GIVEN.includes(path));

/** The code blocks of a language: its lines are typed by readers. */
const blocksOf = (document: string, language: string): string[] =>
  [...readFileSync(join(PROJECT, document), "utf8").matchAll(/^```(\w*)\n([\s\S]*?)^```$/gm)].flatMap(
    ([, name, block = ""]) => (name === language ? [block] : []),
  );

const README_BLOCKS = blocksOf("README.md", "sh");

/** As they are started for somebody who types, without that person's own settings. */
const SHELLS = [
  ["bash", ["--norc", "--noprofile", "-i", "-s"]],
  ["zsh", ["-f", "-i", "-s"]],
] as const;

const credentials = z.object({ applicationId: z.string(), applicationSecret: z.string() });

const isInstalled = (shell: string): boolean => spawnSync(shell, ["-c", "true"]).status === 0;

describe("the shell lines of the documents", () => {
  it.each(DOCUMENTS)("%s has comments on lines of their own: an interactive zsh takes them for words", (document) => {
    const lines = ["sh", ""]
      .flatMap((language) => blocksOf(document, language))
      .join("")
      .split("\n");
    expect(lines.filter((line) => /^\s*[^#\s].*\s#/.test(line))).toEqual([]);
  });

  it("of the README are short enough to read at once, as is the rest of it", () => {
    expect(Buffer.byteLength(readFileSync(join(PROJECT, "README.md")))).toBeLessThanOrEqual(9000);
    expect(README_BLOCKS).toHaveLength(5);
  });
});

describe("the README, typed", () => {
  let service: RunningService;

  beforeAll(async () => {
    if (SHELLS.some(([shell]) => isInstalled(shell))) service = await startService();
  }, LIMIT_MILLISECONDS);

  afterAll(async () => {
    await closeHomes();
    await service?.stop();
    service?.remove();
  });

  it.each(SHELLS.filter(([shell]) => isInstalled(shell)))(
    "in %s gets a badge, a signature and an invitation, and opens a door",
    async (shell, words) => {
      const stateFolder = `${service.folder}/state`;
      const made = await runScriptHere(["application", "create", "--name", shell, "--json"], stateFolder);
      const { applicationId, applicationSecret } = credentials.parse(JSON.parse(made.stdout));
      const env = { ...process.env, BADGE_STATE_DIR: stateFolder, HOME: service.folder, PS1: "", PROMPT: "" };
      /** Types lines. @returns what they print */
      const type = async (typed: string): Promise<string> => {
        const child = spawn(shell, [...words], { cwd: PROJECT, env, stdio: ["pipe", "pipe", "ignore"] });
        const lines = typed
          .replaceAll("localhost:8787", new URL(service.origin).host)
          .replace("app_…", applicationId)
          .replace("bdss_…", applicationSecret);
        child.stdin.end(lines);
        return text(child.stdout);
      };
      const [start = "", settings = "", calls = "", invite = "", door = ""] = README_BLOCKS;
      expect(start).toBe("npm ci\nnpm start\n");
      const printed = await type(`${settings}${calls}${invite}`);
      const answers = [...printed.matchAll(/^.*?(\{".*\})$/gm)].map(([, json = ""]): unknown => JSON.parse(json));
      const badgeId = expect.stringMatching(/^\d+$/);
      expect(answers).toEqual([
        { badgeId, publicKey: expect.any(String) },
        { signature: expect.any(String) },
        { badges: [{ id: badgeId, userId: "alice" }] },
        { id: expect.stringMatching(/^inv_/), badgeId, expiresAt: expect.any(String) },
      ]);
      const { signature } = z.object({ signature: z.string() }).parse(answers[1]);
      expect(await type(`${settings}${door}${signature}\n`)).toMatch(/open: badge \d+/);
    },
    LIMIT_MILLISECONDS,
  );
});
