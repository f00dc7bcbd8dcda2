import { mkdirSync, readdirSync } from "node:fs";
import { join } from "node:path";
import { MIGRATIONS, PROJECT } from "../../src/admin/platform/paths.ts";
import { generateSealingKey, importSealingPublicKey, seal } from "../../src/applications/sealing.ts";
import { createApplications, peerApplications, serviceApplications } from "./applications.ts";
import { newClients } from "./operations.ts";
import type { Contestant } from "./rounds.ts";
import { build, type Side, type SideName, start } from "./side.ts";

const SIDES: readonly SideName[] = ["service", "floor", "peer"];

/**
 * Builds and starts the three sides, each with its applications.
 *
 * @param directory for bundles and state
 * @param inspect starts them with inspectors, for profiles
 * @param started gets each side as soon as it runs, to be stopped whatever happens next
 */
export async function prepareContestants(
  directory: string,
  webhookUrl: string,
  inspect: boolean,
  started: (side: Side) => void,
): Promise<Contestant[]> {
  for (const name of SIDES) mkdirSync(join(directory, name), { recursive: true });
  await Promise.all(SIDES.map((name) => build(name, directory)));

  const sealingKey = await generateSealingKey();
  const publicKey = await importSealingPublicKey(sealingKey.publicKey);
  const sealer = { version: 1, seal: (...what: Tail<typeof seal>) => seal(publicKey, ...what) };
  const migrations = readdirSync(MIGRATIONS).filter((name) => name.endsWith(".sql"));
  const tables = migrations.sort().map((name) => join(MIGRATIONS, name));
  const peerTables = [join(PROJECT, "test/bench/peer/schema.sql")];

  const contestants: Contestant[] = [];
  for (const name of SIDES) {
    const isPeer = name === "peer";
    const secrets: Record<string, string> = isPeer ? {} : { SEALING_KEY_1: sealingKey.privateKey };
    const side = await start(name, directory, secrets, isPeer ? peerTables : tables, {
      inspects: inspect,
      consumes: false,
    });
    started(side);
    const maker = isPeer ? peerApplications(side.database) : serviceApplications(side.database, sealer);
    contestants.push({ side, clients: newClients(await createApplications(maker, webhookUrl)) });
  }
  return contestants;
}

type Tail<Call> = Call extends (first: never, ...rest: infer Rest) => unknown ? Rest : never;
