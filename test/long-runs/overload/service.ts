import { mkdirSync, readdirSync } from "node:fs";
import { join } from "node:path";
import { MIGRATIONS } from "../../../src/admin/platform/paths.ts";
import { generateSealingKey, importSealingPublicKey, seal } from "../../../src/shared/sealing.ts";
import { serviceApplications } from "../bench/applications.ts";
import { build, type Side, start } from "../bench/side.ts";
import type { Application } from "./phones.ts";

/**
 * Builds the Worker as it is deployed and starts it in a process of its own, with its state on disk and one application.
 * Its rate limits are asked and never refuse: what is measured is the service, not the limits before it.
 *
 * @param started gets it as soon as it runs, to be stopped whatever happens next
 */
export async function startBuilt(directory: string, started: (side: Side) => void): Promise<[Side, Application]> {
  mkdirSync(join(directory, "service"), { recursive: true });
  await build("service", directory);
  const { publicKey, privateKey } = await generateSealingKey();
  const key = await importSealingPublicKey(publicKey);
  const migrations = readdirSync(MIGRATIONS).filter((name) => name.endsWith(".sql"));
  const tables = migrations.sort().map((name) => join(MIGRATIONS, name));
  const side = await start("service", directory, { SEALING_KEY_1: privateKey }, tables, {
    inspects: false,
    consumes: false,
  });
  started(side);
  const make = serviceApplications(side.database, {
    version: 1,
    seal: (label, plaintext) => seal(key, label, plaintext),
  });
  // An event is recorded for every badge; no queue consumer runs, so none is sent.
  return [side, await make(0, "https://hooks.example/")];
}
