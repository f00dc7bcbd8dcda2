import type { ApplicationId } from "../../shared/identifiers.ts";
import {
  APPLICATION_CACHE_SECONDS,
  DENIAL_CACHE_MILLISECONDS,
  MAX_CACHED_APPLICATIONS,
  MAX_CACHED_UNKNOWN_APPLICATIONS,
  MAX_CACHED_WRONG_SECRETS,
} from "../../shared/limits/cache-limits.ts";
import { MAX_CACHED_DOORS } from "../../shared/limits/live-limits.ts";
import type { NumberRange } from "../../shared/number-range.ts";
import { requiresSecret } from "../../shared/required-secret.ts";
import type { Role } from "../../shared/roles.ts";
import { happenedWithin } from "../../shared/time.ts";
import type { Sealed } from "../keys/unsealed-keys.ts";
import { LruCache } from "../lru-cache.ts";
import { type ApplicationRow, findApplication, findApplicationAndDoor } from "../storage/applications.ts";
import type { Database } from "../storage/database.ts";
import { findDoorByDigest } from "../storage/door-secrets.ts";

export interface SigningKey extends Sealed {
  id: number;
  kid: string;
  /** SPKI DER, base64. */
  publicKey: string;
  createdAt: number;
  /** Time from which new badges are issued with this key, in milliseconds. */
  signsFrom: number;
}

/** A person who signs in with a console secret. */
export interface ConsoleUser {
  name: string;
  role: Role;
}

export interface LiveSecret {
  /** SHA-256 of the secret, base64url. */
  digest: string;
  /** Null if it is the server's. */
  consoleUser: ConsoleUser | null;
}

/** A door with a secret. */
export interface Door {
  /** ID of its secret. */
  id: string;
  name: string;
  /** SHA-256 of its secret, base64url. */
  digest: string;
}

/** The settings that verify an application's users. */
export interface UserSettings {
  /** URL of an OpenID provider, exactly as `iss` of its tokens. */
  issuer: string;
  /** The required member of `aud`. */
  audience: string;
  /** The claim that contains the user ID. */
  claim: string;
  /** Whether tokens are only checked and counted, but not required. */
  observe: boolean;
}

/** An application, as requests need it. */
export interface Application {
  id: ApplicationId;
  range: NumberRange;
  isDisabled: boolean;
  /** Whether invitations need the secret: an administrator or an issuer of user tokens requires it (contract section 5). */
  requireSecret: boolean;
  reuseAfterSeconds: number;
  signatureLifetimeSeconds: number | null;
  /** Whether it has status lists. */
  statusList: boolean;
  statusLifetimeSeconds: number;
  /** Whether device calls need a proof, and badges a key. */
  requireProof: boolean;
  /** Until this time, the first proof of a login binds an unbound badge. Milliseconds; null for never. */
  bindUntil: number | null;
  /**
   * Maximum of fresh numbers in a clock hour for badges and invitations without the secret (contract section 7); null
   * without a limit.
   */
  newBadgesPerHour: number | null;
  /** The issuer of user tokens; null without one. */
  users: UserSettings | null;
  rootKey: Sealed;
  /** The secrets of its server and of people. */
  secrets: readonly LiveSecret[];
  /** Oldest first. */
  signingKeys: readonly [SigningKey, ...SigningKey[]];
}

const CACHE_MILLISECONDS = APPLICATION_CACHE_SECONDS * 1000;

/**
 * Applications by ID. An isolate caches each for `APPLICATION_CACHE_SECONDS`, so a disabled application or a removed
 * secret stops working everywhere within that time. Unknown IDs and wrong secrets are cached for the same time: both are
 * random, so no caller can have presented one before it was created.
 */
export class ApplicationCache {
  readonly #cache = new LruCache<{ application: Application; text: string; loadedAt: number }>(MAX_CACHED_APPLICATIONS);
  /** When D1 was last queried, in milliseconds, by ID. */
  readonly #unknown = new LruCache<number>(MAX_CACHED_UNKNOWN_APPLICATIONS);
  /** When D1 was last queried, in milliseconds, by ID and digest. */
  readonly #wrongSecrets = new LruCache<number>(MAX_CACHED_WRONG_SECRETS);
  /** Doors and the times of their D1 reads, by application and digest, because an application may have thousands. */
  readonly #doors = new LruCache<{ door: Door; loadedAt: number }>(MAX_CACHED_DOORS);

  /**
   * The cached application.
   *
   * @param now milliseconds
   * @returns undefined if D1 must be queried
   */
  peek(id: ApplicationId, now: number, maxAgeMilliseconds = CACHE_MILLISECONDS): Application | "unknown" | undefined {
    const cached = this.#cache.get(id);
    if (cached && happenedWithin(cached.loadedAt, now, maxAgeMilliseconds)) return cached.application;
    return happenedWithin(this.#unknown.get(id), now, CACHE_MILLISECONDS) ? "unknown" : undefined;
  }

  /** Time of the cached application's D1 read, in milliseconds; undefined if none is cached. */
  loadedAt(id: ApplicationId): number | undefined {
    return this.#cache.get(id)?.loadedAt;
  }

  /** @param now milliseconds */
  isWrongSecret(id: ApplicationId, digest: string, now: number): boolean {
    return happenedWithin(this.#wrongSecrets.get(`${id} ${digest}`), now, CACHE_MILLISECONDS);
  }

  /** @param now milliseconds */
  rememberWrongSecret(id: ApplicationId, digest: string, now: number): void {
    this.#wrongSecrets.set(`${id} ${digest}`, now);
  }

  /** The cached door whose secret has this digest. `isFresh`: D1 need not be read. @param now milliseconds */
  peekDoor(id: ApplicationId, digest: string, now: number): { door: Door; isFresh: boolean } | undefined {
    const cached = this.#doors.get(`${id} ${digest}`);
    return cached && { door: cached.door, isFresh: happenedWithin(cached.loadedAt, now, CACHE_MILLISECONDS) };
  }

  /** Loads the door from D1 and caches it. @param now milliseconds */
  async findDoor(db: Database, id: ApplicationId, digest: string, now: number): Promise<Door | undefined> {
    return this.#keepDoor(id, digest, now, await findDoorByDigest(db, id, digest));
  }

  /** Removes a door whose secret was retired. */
  forgetDoor(id: ApplicationId, { digest }: Door): void {
    this.#doors.delete(`${id} ${digest}`);
  }

  #keepDoor(id: ApplicationId, digest: string, now: number, row: Omit<Door, "digest"> | undefined): Door | undefined {
    const door = row && { ...row, digest };
    if (door) this.#doors.set(`${id} ${digest}`, { door, loadedAt: now });
    else this.#doors.delete(`${id} ${digest}`);
    return door;
  }

  /**
   * The application as of at most a second ago. Before a refusal the state must be recent, and one second bounds the
   * rate of D1 reads.
   */
  async findRecent(db: Database, id: ApplicationId, now: number): Promise<Application | undefined> {
    const remembered = this.peek(id, now, DENIAL_CACHE_MILLISECONDS);
    return remembered === "unknown" ? undefined : (remembered ?? this.reload(db, id, now));
  }

  /** Loads the application from D1 and caches it, because an administrator may just have changed a setting. */
  async reload(db: Database, id: ApplicationId, now: number): Promise<Application | undefined> {
    return this.#keep(id, now, await findApplication(db, id));
  }

  /** Loads the application, and the door whose secret has this digest. */
  async reloadWithDoor(db: Database, id: ApplicationId, digest: string, now: number) {
    const found = await findApplicationAndDoor(db, id, digest);
    return {
      application: this.#keep(id, now, found.application),
      door: this.#keepDoor(id, digest, now, found.door),
    };
  }

  #keep(id: ApplicationId, now: number, row: ApplicationRow | undefined): Application | undefined {
    if (row === undefined) {
      this.#cache.delete(id);
      this.#unknown.set(id, now);
      return undefined;
    }
    const cached = this.#cache.get(id);
    const text = JSON.stringify(row);
    // Unchanged settings keep the same object, so that `withRecentSettings` does not retry their refusal.
    const application = cached?.text === text ? cached.application : applicationOf(row);
    this.#cache.set(id, { application, text, loadedAt: now });
    this.#unknown.delete(id);
    return application;
  }
}

function applicationOf(row: ApplicationRow): Application {
  const [firstKey, ...laterKeys] = row.signingKeys;
  if (!firstKey) throw new Error("an application is made together with its first signing key");
  return {
    id: row.id,
    range: { first: row.firstNumber, last: row.lastNumber },
    isDisabled: row.disabledAt !== null,
    requireSecret: requiresSecret(row),
    reuseAfterSeconds: row.reuseAfterSeconds,
    signatureLifetimeSeconds: row.signatureLifetimeSeconds,
    statusList: row.statusList,
    statusLifetimeSeconds: row.statusLifetimeSeconds,
    requireProof: row.requireProof,
    bindUntil: row.bindUntil,
    newBadgesPerHour: row.newBadgesPerHour,
    users: toUserSettings(row),
    rootKey: { sealed: row.sealedRootKey, sealingVersion: row.sealingVersion },
    secrets: [
      ...row.secrets.map(({ digest }) => ({ digest, consoleUser: null })),
      ...row.consoleSecrets.map(({ digest, name, role }) => ({ digest, consoleUser: { name, role } })),
    ],
    signingKeys: [firstKey, ...laterKeys],
  };
}

function toUserSettings(row: ApplicationRow): UserSettings | null {
  const { userIssuer: issuer, userAudience: audience, userClaim: claim, userObserve: observe } = row;
  return issuer === null || audience === null ? null : { issuer, audience, claim, observe };
}
