import { sealingSecretName } from "./local-sealing-keys.ts";
import { runWrangler, shownWrangler } from "./run-wrangler.ts";

/** The command that makes a private half a Worker secret; it reads the value from standard input. */
export const putCommand = (version: number, environment: string): string[] => [
  ...["secret", "put", sealingSecretName(version), "--env", environment],
];

/**
 * Makes private halves of sealing keys secrets of a deployed Worker.
 *
 * @param note is told the command before it runs
 */
export function secretPutter(environment: string, note: (line: string) => void) {
  return async (version: number, privateKey: string): Promise<void> => {
    const command = putCommand(version, environment);
    note(`${shownWrangler(command)}   (the private half goes in by standard input)`);
    await runWrangler(command, privateKey);
  };
}

/** Takes a sealing key's private half from the secrets of a deployed Worker. */
export async function deleteSecret(version: number, environment: string, note: (line: string) => void): Promise<void> {
  const command = ["secret", "delete", sealingSecretName(version), "--env", environment];
  note(shownWrangler(command));
  await runWrangler(command);
}
