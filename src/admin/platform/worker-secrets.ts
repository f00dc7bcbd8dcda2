import * as z from "zod";
import { openAccount } from "./cloudflare.ts";
import { readTarget } from "./target.ts";
import { loadWrangler, runWrangler, shownWrangler } from "./wrangler.ts";

/**
 * The secrets of a deployed Worker, which hold the private halves of sealing keys. Each key's secret is named after its
 * version and fingerprint, so that two administrators who make the same version never overwrite each other's.
 */
export interface WorkerSecrets {
  put(name: string, value: string): Promise<void>;
  delete(name: string): Promise<void>;
  /** The names of all secrets. */
  list(): Promise<string[]>;
}

/** The command that makes a value a Worker secret; it reads the value from standard input. */
export const putCommand = (name: string, environment: string): string[] => [
  ...["secret", "put", name, "--env", environment],
];

const secretList = z.array(z.object({ name: z.string() }));

/**
 * The secrets of a deployed Worker, which wrangler changes.
 *
 * @param note is called with each command that changes something, before it runs
 */
export function workerSecrets(environment: string, note: (line: string) => void): WorkerSecrets {
  return {
    async put(name, value) {
      const command = putCommand(name, environment);
      note(`Runs ${shownWrangler(command)}   (the private half goes in by standard input)`);
      await runWrangler(command, value);
    },
    async delete(name) {
      const command = ["secret", "delete", name, "--env", environment];
      note(`Runs ${shownWrangler(command)}`);
      await runWrangler(command);
    },
    async list() {
      const { worker, accountId } = readTarget(loadWrangler(), environment);
      const account = await openAccount(accountId);
      const found = await account.find(secretList, `/workers/scripts/${worker}/secrets`);
      return (found ?? []).map(({ name }) => name);
    },
  };
}
