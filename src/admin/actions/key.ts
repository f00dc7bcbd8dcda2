import type { Command } from "commander";
import type { ShownSigningKey } from "../operations/signing-keys.ts";
import { shownNumber, tableLines } from "../output.ts";
import { withSession } from "../session.ts";

const operations = () => import("../operations/signing-keys.ts");

/** `key rotate` */
export async function rotate(id: string, command: Command): Promise<void> {
  await withSession(
    command,
    async ({ database, output }) => {
      const rotated = await (await operations()).rotateSigningKey(database, id);
      output.result(rotated, () => `New badges of ${id} are signed with key ${rotated.keyId}.`);
    },
    { seals: true },
  );
}

/** `key list` */
export async function list(id: string, command: Command): Promise<void> {
  await withSession(command, async ({ database, output }) => {
    const keys = await (await operations()).listSigningKeys(database, id);
    output.result(keys, () => signingKeyTable(keys));
  });
}

/** A table of signing keys. */
export function signingKeyTable(keys: readonly ShownSigningKey[]): string {
  const rows = keys.map(({ keyId, current, badges, createdAt }) => [
    keyId,
    current ? "current" : "",
    shownNumber(badges),
    createdAt?.slice(0, 10) ?? "",
  ]);
  return tableLines(["KEY ID", "USE", "BADGES", "CREATED"], rows, "There are no signing keys.");
}
