import * as z from "zod";
import type { WorkerSecrets } from "../operations/sealing-secrets.ts";
import { runWrangler, shownWrangler } from "./run-wrangler.ts";

/** The command that makes a value a Worker secret; it reads the value from standard input. */
export const putCommand = (name: string, environment: string): string[] => [
  ...["secret", "put", name, "--env", environment],
];

const secretList = z.array(z.object({ name: z.string() }));

/**
 * The secrets of a deployed Worker, by way of wrangler.
 *
 * @param note is told each command that changes something, before it runs
 */
export function workerSecrets(environment: string, note: (line: string) => void): WorkerSecrets {
  return {
    async put(name, value) {
      const command = putCommand(name, environment);
      note(`${shownWrangler(command)}   (the private half goes in by standard input)`);
      await runWrangler(command, value);
    },
    async delete(name) {
      const command = ["secret", "delete", name, "--env", environment];
      note(shownWrangler(command));
      await runWrangler(command);
    },
    async list() {
      const printed = await runWrangler(["secret", "list", "--format", "json", "--env", environment]);
      return secretList.parse(JSON.parse(printed)).map(({ name }) => name);
    },
  };
}
