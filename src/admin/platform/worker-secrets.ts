import * as z from "zod";
import { openAccount } from "./cloudflare.ts";
import { readTarget } from "./target.ts";
import { formatWranglerCommand, loadWrangler, runWrangler } from "./wrangler.ts";

export type WorkerSecrets = ReturnType<typeof workerSecrets>;

const secretList = z.array(z.object({ name: z.string() }));

/**
 * The secrets of a deployed Worker, which hold the private halves of sealing keys. Each key's secret is named after its
 * version and fingerprint, so that two administrators who make the same version never overwrite each other's. wrangler
 * changes them.
 *
 * @param note is called with each command that changes something, before it runs
 */
export const workerSecrets = (environment: string, note: (line: string) => void) => ({
  async put(name: string, value: string): Promise<void> {
    const command = ["secret", "put", name, "--env", environment];
    note(`Runs ${formatWranglerCommand(command)}   (the private half is passed on standard input)`);
    await runWrangler(command, value);
  },
  async delete(name: string): Promise<void> {
    const command = ["secret", "delete", name, "--env", environment];
    note(`Runs ${formatWranglerCommand(command)}`);
    await runWrangler(command);
  },
  async list(): Promise<string[]> {
    const { worker, accountId } = readTarget(loadWrangler(), environment);
    const account = await openAccount(accountId);
    const found = await account.find(secretList, `/workers/scripts/${worker}/secrets`);
    return (found ?? []).map(({ name }) => name);
  },
});
