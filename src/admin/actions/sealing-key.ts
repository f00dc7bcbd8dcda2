import type { Command } from "commander";
import { ADMIN } from "../errors.ts";
import { shownNumber, tableLines } from "../output.ts";
import { type Session, shownCommand, withSession } from "../session.ts";

const operations = () => import("../operations/sealing-keys.ts");

/** `sealing-key list` */
export async function list(command: Command): Promise<void> {
  await withSession(command, async ({ database, output }) => {
    const keys = await (await operations()).listSealingKeys(database);
    const rows = keys.map(({ version, newest, values, createdAt }) => [
      version,
      newest ? "newest" : "",
      shownNumber(values),
      createdAt ?? "",
    ]);
    output.result(keys, () =>
      tableLines(["VERSION", "USE", "VALUES", "CREATED"], rows, `There are no sealing keys yet: run ${ADMIN} init.`),
    );
  });
}

/** `sealing-key rotate` */
export async function rotate(command: Command): Promise<void> {
  await withSession(command, async (session) => {
    const { output } = session;
    const { version, isOurs } = await makeNext(session);
    if (!isOurs)
      output.note(`Another administrator made sealing key ${version} at the same moment; this run made none.`);
    output.result({ version }, () => rotatedText(version, session));
  });
}

const rotatedText = (version: number, session: Session): string =>
  `Sealing key ${version} is the newest.${restarts(session)}\nNext: ${shownCommand(session, "sealing-key reseal")}`;

/** wrangler reads local keys only when it starts. */
const restarts = ({ place }: Session): string =>
  "local" in place ? " A running npm start restarts itself with it, which takes a few seconds." : "";

async function makeNext({ database, output, place }: Session): Promise<{ version: number; isOurs: boolean }> {
  if ("local" in place) {
    const { rotateLocalSealingKey } = await import("../operations/local-sealing.ts");
    return { version: await rotateLocalSealingKey(database, place.local), isOurs: true };
  }
  const { makeDeployedSealingKey } = await import("../operations/deployed-sealing.ts");
  const { workerSecrets } = await import("../platform/worker-secrets.ts");
  return makeDeployedSealingKey(database, workerSecrets(place.environment, output.note));
}

/** `sealing-key reseal` */
export async function reseal(patienceMilliseconds: number, command: Command): Promise<void> {
  await withSession(command, async ({ database, output }) => {
    const { watchResealing } = await import("../operations/watch-resealing.ts");
    await watchResealing(database, (left) => output.note(`${left} values left.`), patienceMilliseconds);
    output.result({ left: 0 }, () => "Everything is sealed to the newest key.");
  });
}

/** `sealing-key remove` */
export async function remove(version: number, command: Command): Promise<void> {
  await withSession(command, async (session) => {
    const { removeSealingKey, unknownSealingKey } = await operations();
    // The row first: as long as D1 names the key, something may be sealed to it.
    const wasThere = await removeSealingKey(session.database, version);
    // Also when the row is gone: a run that died in between left the private half behind.
    const hadPrivateHalf = await removePrivateHalf(session, version);
    if (!wasThere && !hadPrivateHalf) throw unknownSealingKey(version);
    session.output.result({ removed: version }, () => `Sealing key ${version} is removed.${restarts(session)}`);
  });
}

/** @returns whether there was anything to remove */
async function removePrivateHalf({ place, output }: Session, version: number): Promise<boolean> {
  if ("local" in place) {
    const { removeLocalKey } = await import("../platform/local-sealing-keys.ts");
    return removeLocalKey(place.local, version);
  }
  const { deleteSealingSecrets } = await import("../operations/deployed-sealing.ts");
  const { workerSecrets } = await import("../platform/worker-secrets.ts");
  return (await deleteSealingSecrets(workerSecrets(place.environment, output.note), version)) > 0;
}
