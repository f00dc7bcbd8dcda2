import { sql } from "drizzle-orm";
import { sealingKey } from "../../shared/schema.ts";
import { wholeNumber } from "../command-line/arguments.ts";
import { argument, command, group, option } from "../command-line/command.ts";
import { UserError } from "../command-line/errors.ts";
import { formatNumber, tableLines } from "../command-line/output.ts";
import { formatCommand, type Session } from "../command-line/session.ts";
import { ADMIN, DEPLOY } from "../command-line/shell.ts";
import { assertHomesBound } from "../number-range/owners.ts";
import type { Homes } from "../platform/homes.ts";
import { removeLocalKey } from "../platform/sealing-key-file.ts";
import { workerSecrets } from "../platform/worker-secrets.ts";
import { formatWranglerCommand } from "../platform/wrangler.ts";
import { deleteSealingSecrets, makeDeployedSealingKey } from "./deployed.ts";
import { rotateLocalSealingKey } from "./local.ts";
import { publishNewestEverywhere } from "./newest.ts";
import { resealCommand } from "./reseal.ts";
import { listSealingKeys, readSealingKeys, SEALED, valuesStillNeed } from "./usage.ts";

export const sealingKeyCommands = group("sealing-key", {
  summary: "list and rotate the keys that seal secrets",
  description:
    "Lists and rotates the sealing keys. Secrets and private keys are sealed to the public half, in D1; the private " +
    "half is a Worker secret and opens them. To change the key: rotate, reseal, remove the old version.",
  commands: [
    command("list", {
      summary: "list the sealing keys and what needs them",
      description: "Lists the sealing keys, with the number of sealed values that need each.",
      examples: ["", "--env production"],
      work: ({ homes }) => listSealingKeys(homes),
      text: sealingKeyTable,
    }),
    command("rotate", {
      summary: "create the next sealing key",
      description:
        "Creates the next sealing key, to which every home seals everything new from now on. Locally, the private half goes into " +
        ".wrangler/sealing-keys.env, and a running npm start restarts itself with it. With --env it becomes a Worker secret, by " +
        "wrangler secret put, under a name of its own (version and fingerprint), and is never on this computer's disk.",
      examples: ["", "--env production"],
      work: rotate,
      text: ({ version }, session) =>
        `Sealing key ${version} is the newest.${restarts(session)}\nNext: ${formatCommand(session, "sealing-key reseal")}`,
    }),
    command("add", {
      summary: "create the next sealing key, with a copy to keep outside the platform",
      description:
        "Creates the next sealing key as rotate does, and prints its private half, once. Keep it offline: if the Worker is deleted, it " +
        "makes everything readable again that is sealed to this key. After a later rotate, a new copy is needed. Anyone who has the " +
        "copy and D1 can read all secrets (.github/SECURITY.md).",
      options: { recovery: option("--recovery", "print the private half, once (required)") },
      examples: ["--recovery --env production"],
      work: (session, { recovery = false }) => {
        if (!recovery) throw new UserError("Add --recovery, or use sealing-key rotate for a key without a copy.");
        return addRecovery(session);
      },
      text: ({ version, name, privateKey, restore }, session) =>
        [
          `Sealing key ${version} is the newest. This line is the copy, and is shown only this once:`,
          "",
          `${name}=${privateKey}`,
          "",
          `If the Worker is lost: ${DEPLOY} creates a new one and asks for this key. Give it the part after the first "=" with`,
          `${restore}, and run ${DEPLOY} again.`,
          `Next: ${formatCommand(session, "sealing-key reseal")}`,
        ].join("\n"),
    }),
    resealCommand,
    command("remove", {
      arguments: [argument("<version>", "the version to remove", "1", wholeNumber(1))],
      summary: "remove a sealing key that nothing needs",
      description:
        "Removes an old sealing key: its row in D1, and its private half from the local key file or every secret of its " +
        "version from the Worker. Refused for the newest, and while any value of any home needs it.",
      examples: ["--env production"],
      work: (session, version) => remove(session, version),
      text: ({ removed }, session) => `Sealing key ${removed} is removed.${restarts(session)}`,
    }),
  ],
});

function sealingKeyTable(keys: Awaited<ReturnType<typeof listSealingKeys>>): string {
  const rows = keys.map(({ version, newest, values, createdAt }) => [
    version,
    newest ? "newest" : "",
    formatNumber(values),
    createdAt ?? "",
  ]);
  return tableLines(["VERSION", "USE", "VALUES", "CREATED"], rows, `There are no sealing keys yet: run ${ADMIN} init.`);
}

async function rotate({ homes, output, backend }: Session): Promise<{ version: number }> {
  if ("local" in backend) return { version: await rotateLocalSealingKey(homes, backend.local) };
  const { version, isOurs } = await makeDeployedSealingKey(homes, workerSecrets(backend.environment, output.note));
  if (!isOurs)
    output.note(`Another administrator created sealing key ${version} at the same moment; this run created none.`);
  return { version };
}

/** @throws UserError for local state, and when another administrator has created the key */
async function addRecovery({ homes, output, backend }: Session) {
  if ("local" in backend) throw new UserError("The local key is in .wrangler/sealing-keys.env: copy that file.");
  const made = await makeDeployedSealingKey(homes, workerSecrets(backend.environment, output.note));
  if (!made.isOurs) {
    throw new UserError(
      `Another administrator created sealing key ${made.version} at the same moment, so this run has no copy of it: run the command again.`,
    );
  }
  const { version, secret } = made;
  return {
    version,
    ...secret,
    restore: formatWranglerCommand(["secret", "put", secret.name, "--env", backend.environment]),
  };
}

/** wrangler reads the local key file only when it starts. */
const restarts = ({ backend }: Session): string =>
  "local" in backend ? " A running npm start restarts itself with it, which takes a few seconds." : "";

async function remove({ homes, backend, output }: Session, version: number): Promise<{ removed: number }> {
  // The row first: as long as D1 names the key, something may be sealed to it.
  const hadRow = await removeSealingKey(homes, version);
  // Even when the row is gone: a run that was killed in between leaves the private half behind.
  const hadPrivateHalf =
    "local" in backend
      ? removeLocalKey(backend.local, version)
      : (await deleteSealingSecrets(workerSecrets(backend.environment, output.note), version)) > 0;
  if (!hadRow && !hadPrivateHalf) throw unknownSealingKey(version);
  return { removed: version };
}

/**
 * Removes a sealing key's public half from D1, so that nothing is sealed to it any more. All homes are checked first: a key
 * that one of them needs stays in all of them.
 *
 * @returns false for a version that was removed before
 * @throws UserError while a value needs it, when it is the newest, and when there never was such a version
 */
export async function removeSealingKey(homes: Homes, version: number): Promise<boolean> {
  await publishNewestEverywhere(homes);
  const before = await readSealingKeys(homes);
  if (version > (before.keys.at(-1)?.version ?? 0)) throw unknownSealingKey(version);
  assertUnused(before, version);
  await assertHomesBound(homes, `Sealing key ${version} may still be needed`);
  const unused = SEALED.map(
    (table) => sql`NOT EXISTS (SELECT 1 FROM ${table} WHERE ${table.sealingVersion} = ${version})`,
  );
  const hasNewer = sql`EXISTS (SELECT 1 FROM ${sealingKey} WHERE ${sealingKey.version} > ${version})`;
  await homes.map(({ database }) =>
    database.run((orm) =>
      orm
        .delete(sealingKey)
        .where(sql`${sealingKey.version} = ${version} AND ${hasNewer} AND ${sql.join(unused, sql` AND `)}`),
    ),
  );
  const after = await readSealingKeys(homes);
  assertUnused(after, version);
  if (after.keys.some((key) => key.version === version)) {
    throw new UserError(`Sealing key ${version} came into use meanwhile: run the command again.`);
  }
  return before.keys.some((key) => key.version === version);
}

/** @throws UserError while a value of any home needs the key, and when it is the newest */
function assertUnused({ keys, valuesOf }: Awaited<ReturnType<typeof readSealingKeys>>, version: number): void {
  if (keys.at(-1)?.version === version) {
    throw new UserError(`Sealing key ${version} is the newest: run ${ADMIN} sealing-key rotate first.`);
  }
  if (valuesOf(version) === 0) return;
  throw new UserError(
    `${valuesStillNeed(valuesOf(version))} sealing key ${version}: run ${ADMIN} sealing-key reseal first.`,
  );
}

const unknownSealingKey = (version: number): UserError =>
  new UserError(`There is no sealing key ${version}: see ${ADMIN} sealing-key list.`);
