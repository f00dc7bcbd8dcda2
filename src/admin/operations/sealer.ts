import { desc } from "drizzle-orm";
import { importSealingPublicKey, type SealLabel, seal } from "../../applications/sealing.ts";
import { sealingKey } from "../../storage/schema.ts";
import { ADMIN, Mistake } from "../mistake.ts";
import type { Database } from "../platform/database.ts";

/** Seals to the newest sealing key. What it sealed can be opened by the Worker only. */
export interface Sealer {
  version: number;
  seal(label: SealLabel, plaintext: BufferSource): Promise<string>;
}

/** @throws Mistake when the environment has no sealing key yet */
export async function newestSealer(database: Database): Promise<Sealer> {
  const [newest] = await database.run((orm) =>
    orm.select().from(sealingKey).orderBy(desc(sealingKey.version)).limit(1),
  );
  if (newest === undefined) throw new Mistake(`There is no sealing key yet: run ${ADMIN} init, with the same --env.`);
  const key = await importSealingPublicKey(newest.publicKey);
  return { version: newest.version, seal: (label, plaintext) => seal(key, label, plaintext) };
}
