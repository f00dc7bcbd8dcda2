import { mkdirSync, readdirSync } from "node:fs";
import { join } from "node:path";
import { MIGRATIONS, PROJECT } from "../../../src/admin/platform/paths.ts";
import { generateSealingKey, importSealingPublicKey, seal } from "../../../src/shared/sealing.ts";
import { type ApplicationMaker, type Applications, peerApplications, serviceApplications } from "./applications.ts";
import { newClients } from "./operations.ts";
import type { Contestant } from "./rounds.ts";
import { build, buildSettings, type Side, type SideName, start } from "./side.ts";

/** What sides are prepared with. */
export interface Preparation {
  /** For bundles and state. */
  directory: string;
  /** Starts them with inspectors, for profiles. */
  inspects: boolean;
  /** Whether they consume their queues. */
  consumes: boolean;
  /** Gets each side as soon as it runs, to be stopped whatever happens next. */
  started(side: Side): void;
}

/** Builds and starts these sides, each with applications of its own. */
export async function prepareContestants(
  names: readonly SideName[],
  { directory, inspects, consumes, started }: Preparation,
  createApplications: (name: SideName, make: ApplicationMaker) => Promise<Applications>,
): Promise<Contestant[]> {
  refuseDifferentBuilds(names);
  for (const name of names) mkdirSync(join(directory, name), { recursive: true });
  await Promise.all(names.map((name) => build(name, directory)));

  const sealingKey = await generateSealingKey();
  const publicKey = await importSealingPublicKey(sealingKey.publicKey);
  const sealer = { version: 1, seal: (...what: Tail<typeof seal>) => seal(publicKey, ...what) };
  const migrations = readdirSync(MIGRATIONS).filter((name) => name.endsWith(".sql"));
  const tables = migrations.sort().map((name) => join(MIGRATIONS, name));
  const peerTables = [join(PROJECT, "test/long-runs/bench/peer/schema.sql")];

  const contestants: Contestant[] = [];
  for (const name of names) {
    const isPeer = name === "peer";
    const secrets: Record<string, string> = isPeer ? {} : { SEALING_KEY_1: sealingKey.privateKey };
    const side = await start(name, directory, secrets, isPeer ? peerTables : tables, { inspects, consumes });
    started(side);
    const maker = isPeer ? peerApplications(side.database) : serviceApplications(side.database, sealer);
    contestants.push({ side, clients: newClients(await createApplications(name, maker)), webhooks: 0 });
  }
  return contestants;
}

/** A side whose code is minified, or names its functions, runs at another speed for that alone. */
function refuseDifferentBuilds(names: readonly SideName[]): void {
  const settings = new Set(names.map((name) => JSON.stringify(buildSettings(name))));
  if (settings.size > 1) throw new Error(`the sides are built differently: ${[...settings].join(" and ")}`);
}

type Tail<Call> = Call extends (first: never, ...rest: infer Rest) => unknown ? Rest : never;
