import { existsSync, mkdtempSync, rmSync, writeFileSync } from "node:fs";
import { tmpdir } from "node:os";
import { join } from "node:path";
import { afterAll, expect, vi } from "vitest";
import * as z from "zod";
import { type OpenedHomes, openHomes } from "../../../src/admin/command-line/session.ts";
import { isLocked } from "../../../src/admin/platform/file-lock.ts";
import { localState } from "../../../src/admin/platform/paths.ts";
import { localWake, type Wake } from "../../../src/admin/platform/wake.ts";
import { createAdminProgram, run } from "../../../src/admin/program.ts";
import { plainHomeSubmitter } from "../../../src/admin/script-command/submit.ts";
import { ensureLocalSealing } from "../../../src/admin/sealing-key/local.ts";
import { applicationId } from "../../../src/shared/identifiers.ts";
import { generateSealingKey } from "../../../src/shared/sealing.ts";
import { byEffort } from "../../support/effort.ts";
import { RegisterInProcess } from "./register.ts";
import { sqliteHomes } from "./sqlite-homes.ts";

/** What a command printed, and its exit code. */
export interface Printed {
  code: number | string;
  stdout: string;
  stderr: string;
}

/** Local homes, with a register of number ranges in this process where no service runs. */
interface LocalHomes extends OpenedHomes {
  register: RegisterInProcess;
}

/** By state folder. To open one takes as long as fifty commands on it. */
const opened = new Map<string, Promise<LocalHomes>>();

/**
 * The local database of a state folder, which the script opens at the first use. It stays open until `closeHomes`. Where no
 * other program has made it, it is a SQLite of this process; `npm run test:full` makes a real one.
 */
export function openedHomes(stateFolder: string): Promise<LocalHomes> {
  const open = opened.get(stateFolder);
  if (open !== undefined) return open;
  process.env.BADGE_STATE_DIR = stateFolder;
  const isReal = byEffort(existsSync(join(stateFolder, "v3")), true);
  const opening = openWithRegister(isReal);
  opened.set(stateFolder, opening);
  opening.catch(() => opened.delete(stateFolder));
  return opening;
}

async function openWithRegister(isReal: boolean): Promise<LocalHomes> {
  const local = localState();
  const inMemory = () => ({ homes: sqliteHomes(), backend: { local }, close: () => Promise.resolve() });
  const opened = isReal ? await openHomes(undefined) : inMemory();
  const register = new RegisterInProcess(opened.homes);
  // A service may be started, or end, while the databases are open.
  const wake: Wake = (to) => (isLocked(local.serviceLock) ? localWake(local)(to) : register.wake(to));
  return { ...opened, database: opened.homes.first.database, register, wake };
}

/** Every file that runs commands here ends with this, before it removes their state. */
export async function closeHomes(): Promise<void> {
  const all = [...opened.values()];
  opened.clear();
  for (const { close } of await Promise.all(all)) await close();
}

/** A folder for local state, which is removed when the file's tests are over. */
function stateFolder(): string {
  const folder = mkdtempSync(join(tmpdir(), "badge-admin-test-"));
  afterAll(async () => {
    await closeHomes();
    rmSync(folder, { recursive: true, force: true });
  });
  return folder;
}

/** Of all files that run in this process: to make one takes up to a second. */
let sealingKey: ReturnType<typeof generateSealingKey> | undefined;

/** Local homes that have a sealing key, in a folder of their own, and commands on them. */
export async function localHomes() {
  const folder = stateFolder();
  const opened = await openedHomes(folder);
  sealingKey ??= generateSealingKey();
  writeFileSync(localState().sealingKeys, `SEALING_KEY_1=${(await sealingKey).privateKey}\n`);
  await ensureLocalSealing(opened.homes, localState());
  return { ...opened, submit: plainHomeSubmitter(opened), folder, ...commandsIn(folder) };
}

/**
 * Runs a command line of the administration script in this process, on a database that stays open: both are much
 * quicker than a process of its own, and its database, for each.
 */
export async function runScriptHere(words: readonly string[], stateFolder: string): Promise<Printed> {
  process.env.BADGE_STATE_DIR = stateFolder;
  return captured(() =>
    run(
      createAdminProgram(async (environment) =>
        environment === undefined
          ? { ...(await openedHomes(stateFolder)), close: () => Promise.resolve() }
          : openHomes(environment),
      ),
      words,
    ),
  );
}

const createdApplication = z.object({
  applicationId,
  applicationSecret: z.string(),
  firstNumber: z.number(),
  lastNumber: z.number(),
});

/** Commands with what a test wants of one that succeeds, and of one that is refused. */
export function commandsOf(admin: (...words: string[]) => Promise<Printed>) {
  /** The JSON that a command prints, which has nothing else to say. */
  async function json(...words: string[]): Promise<unknown> {
    const { code, stdout, stderr } = await admin(...words, "--json");
    expect({ code, stderr }).toEqual({ code: 0, stderr: "" });
    return JSON.parse(stdout);
  }
  return {
    admin,
    json,
    /** Creates an application. @param words further options */
    create: async (...words: string[]) =>
      createdApplication.parse(await json("application", "create", "--name", "App", ...words)),
    /** The one line on standard error, beside which there is nothing on standard output. */
    async refusal(...words: string[]): Promise<string> {
      const { code, stdout, stderr } = await admin(...words, "--json");
      expect({ code, stdout, stderr }).toEqual({ code: 1, stdout: "", stderr: expect.stringMatching(/^[^\n]+\n$/) });
      return stderr;
    },
  };
}

/** Commands of a state folder. */
export const commandsIn = (folder: string) => commandsOf((...words) => runScriptHere(words, folder));

/** What a program's work prints in this process, and the exit code that it sets. */
export async function captured(work: () => Promise<void>): Promise<Printed> {
  const written = { stdout: "", stderr: "" };
  const spies = (["stdout", "stderr"] as const).map((stream) =>
    vi.spyOn(process[stream], "write").mockImplementation((part) => {
      written[stream] += part;
      return true;
    }),
  );
  try {
    await work();
    return { code: process.exitCode ?? 0, ...written };
  } finally {
    for (const spy of spies) spy.mockRestore();
    process.exitCode = undefined;
  }
}
