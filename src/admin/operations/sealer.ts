import { desc, gt } from "drizzle-orm";
import type { Sealer } from "../../shared/credentials.ts";
import { sealingKey } from "../../shared/schema.ts";
import { importSealingPublicKey, seal } from "../../shared/sealing.ts";
import { ADMIN, UserError } from "../errors.ts";
import type { Database } from "../platform/database.ts";

/** Seals to the newest sealing key; only the Worker can open it. @throws UserError when the environment has no sealing key yet */
export async function newestSealer(database: Database): Promise<Sealer> {
  const [newest] = await database.run((orm) =>
    orm.select().from(sealingKey).where(gt(sealingKey.version, 0)).orderBy(desc(sealingKey.version)).limit(1),
  );
  if (newest === undefined) throw new UserError(`There is no sealing key yet: run ${ADMIN} init, with the same --env.`);
  const key = await importSealingPublicKey(newest.publicKey);
  return { version: newest.version, seal: (label, plaintext) => seal(key, label, plaintext) };
}
