import type { Command } from "commander";
import type { RotatedSigningKey, ShownSigningKey } from "../operations/signing-keys.ts";
import { shownNumber, shownTime, tableLines } from "../output.ts";
import { withSession } from "../session.ts";

const operations = () => import("../operations/signing-keys.ts");

/** `key rotate` */
export async function rotate(
  id: string,
  { now: isUrgent = false }: { now?: boolean },
  command: Command,
): Promise<void> {
  await withSession(
    command,
    async ({ database, output }) => {
      const rotated = await (await operations()).rotateSigningKey(database, id, { isUrgent });
      output.result(rotated, () => rotationText(rotated, isUrgent));
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

const secondOf = (time: string | null): string => shownTime(time === null ? null : Date.parse(time));

/** What `key rotate` says. */
export function rotationText({ applicationId, keyId, signsFrom }: RotatedSigningKey, isUrgent: boolean): string {
  const doors = isUrgent
    ? "Doors whose copy of the key set is older refuse those signatures until they fetch it again, at most 5 minutes."
    : "By then every cached copy of the key set has it.";
  return [
    `Published key ${keyId} of ${applicationId}.`,
    `New badges are signed with it from ${secondOf(signsFrom)} on. ${doors}`,
  ].join("\n");
}

/** A table of signing keys, 80 columns wide. */
export function signingKeyTable(keys: readonly ShownSigningKey[]): string {
  const newestFirst = keys.map(({ current }) => current).indexOf(true);
  const rows = keys.map(({ keyId, current, badges, signsFrom }, place) => [
    keyId,
    secondOf(signsFrom),
    current ? "now" : signsFrom !== null && place < newestFirst ? "next" : "",
    shownNumber(badges),
  ]);
  return tableLines(["KEY ID", "SIGNS FROM", "USE", "BADGES"], rows, "There are no signing keys.");
}
