import { eq, sql } from "drizzle-orm";
import { BoundedCache } from "../bounded-cache.ts";
import { isApplicationId } from "../identifiers.ts";
import { APPLICATION_CACHE_SECONDS, MAX_CACHED_APPLICATIONS } from "../limits.ts";
import type { NumberRange } from "../numbers/fresh-numbers.ts";
import { type Database, prepared } from "../storage/database.ts";
import { application } from "../storage/schema.ts";
import type { Sealed } from "./custody.ts";

export interface SigningKey extends Sealed {
  id: number;
  kid: string;
  /** SPKI DER, base64. */
  publicKey: string;
  /** From when new badges get it, in milliseconds. */
  signsFrom: number;
}

export interface ApplicationSecret extends Sealed {
  id: string;
  role: "current" | "added" | "previous";
  /** SHA-256 of the secret, base64url. */
  digest: string;
}

/** What requests need to know of an application. */
export interface Application {
  id: string;
  range: NumberRange;
  isDisabled: boolean;
  requireSecret: boolean;
  reuseAfterSeconds: number;
  signatureLifetimeSeconds: number | null;
  deviceKey: Sealed;
  secrets: readonly ApplicationSecret[];
  /** Oldest first. */
  signingKeys: readonly [SigningKey, ...SigningKey[]];
}

/**
 * Applications by ID. An isolate remembers each for `APPLICATION_CACHE_SECONDS`, so what an administrator takes away
 * (an application, a secret) stops working within that time everywhere.
 */
export class ApplicationRegistry {
  readonly #cache = new BoundedCache<{ application: Application; loadedAt: number }>(MAX_CACHED_APPLICATIONS);

  /**
   * @param now milliseconds
   * @returns undefined for an unknown application; a disabled one is returned as such
   */
  async find(db: Database, id: string, now: number): Promise<Application | undefined> {
    if (!isApplicationId(id)) return undefined;
    const cached = this.#cache.get(id);
    // A clock that jumped back makes an entry look new for ever: age counts in both directions.
    if (cached && Math.abs(now - cached.loadedAt) < APPLICATION_CACHE_SECONDS * 1000) return cached.application;
    return this.findFresh(db, id, now);
  }

  /**
   * Past the cache: before an administrator's newest change is denied (a secret added, an application enabled, a range
   * grown), D1 is asked once.
   */
  async findFresh(db: Database, id: string, now: number): Promise<Application | undefined> {
    const loaded = await load(db, id);
    if (loaded) this.#cache.set(id, { application: loaded, loadedAt: now });
    return loaded;
  }
}

const selectApplication = prepared((orm) =>
  orm.query.application
    .findFirst({
      where: eq(application.id, sql.placeholder("id")),
      with: { secrets: true, signingKeys: { orderBy: (key, { asc }) => asc(key.id) } },
    })
    .prepare(),
);

/** One query. */
async function load(db: Database, id: string): Promise<Application | undefined> {
  const row = await db.run((orm) => selectApplication(orm).execute({ id }));
  if (!row) return undefined;
  const [firstKey, ...laterKeys] = row.signingKeys;
  if (!firstKey) throw new Error("an application is made together with its first signing key");
  return {
    id: row.id,
    range: { first: row.firstNumber, last: row.lastNumber },
    isDisabled: row.disabledAt !== null,
    requireSecret: row.requireSecret,
    reuseAfterSeconds: row.reuseAfterSeconds,
    signatureLifetimeSeconds: row.signatureLifetimeSeconds,
    deviceKey: { sealed: row.sealedDeviceKey, sealingVersion: row.sealingVersion },
    secrets: row.secrets,
    signingKeys: [firstKey, ...laterKeys],
  };
}
