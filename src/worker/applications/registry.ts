import type { Role } from "../../shared/actor.ts";
import type { ApplicationId } from "../../shared/identifiers.ts";
import {
  APPLICATION_CACHE_SECONDS,
  DENIAL_CACHE_MILLISECONDS,
  MAX_CACHED_APPLICATIONS,
  MAX_CACHED_DOORS,
  MAX_CACHED_UNKNOWN_APPLICATIONS,
  MAX_CACHED_WRONG_SECRETS,
} from "../../shared/limits.ts";
import type { NumberRange } from "../../shared/number-range.ts";
import { requiresSecret } from "../../shared/required-secret.ts";
import { isYounger } from "../../shared/time.ts";
import { BoundedCache } from "../bounded-cache.ts";
import type { Sealed } from "../keys/custody.ts";
import { type ApplicationRow, findApplication, findApplicationAndDoor } from "../storage/applications.ts";
import type { Database } from "../storage/database.ts";
import { findDoorByDigest } from "../storage/door-secrets.ts";

export interface SigningKey extends Sealed {
  id: number;
  kid: string;
  /** SPKI DER, base64. */
  publicKey: string;
  createdAt: number;
  /** From when new badges get it, in milliseconds. */
  signsFrom: number;
}

/** Somebody who signs in with a console secret (contract section 24). */
export interface Person {
  name: string;
  role: Role;
}

export interface LiveSecret {
  /** SHA-256 of the secret, base64url. */
  digest: string;
  /** Null: it is the server's. */
  person: Person | null;
}

/** A door that has a secret (contract section 26). */
export interface Door {
  /** ID of its secret. */
  id: string;
  name: string;
  /** SHA-256 of its secret, base64url. */
  digest: string;
}

/** How an application's users are verified. */
export interface UserSettings {
  /** URL of an OpenID provider, exactly as `iss` of its tokens. */
  issuer: string;
  /** What `aud` must contain. */
  audience: string;
  /** The claim that contains the user ID. */
  claim: string;
  /** Logins are counted by their tokens, and none is refused. */
  observe: boolean;
}

/** What requests need to know about an application. */
export interface Application {
  id: ApplicationId;
  range: NumberRange;
  isDisabled: boolean;
  /** Whether invitations need the secret: an administrator or an issuer of user tokens requires it (contract section 5). */
  requireSecret: boolean;
  reuseAfterSeconds: number;
  signatureLifetimeSeconds: number | null;
  /** Whether it has status lists (contract section 14). */
  statusList: boolean;
  statusLifetimeSeconds: number;
  /** Whether device calls need a proof, and badges a key (contract section 15). */
  requireProof: boolean;
  /** Until when the first proof of a login binds an unbound badge, in milliseconds; null: never. */
  bindUntil: number | null;
  /** Fresh numbers that badges and invitations without the secret take in a clock hour at most (contract section 7); null: no limit. */
  newBadgesPerHour: number | null;
  /** Whose tokens say who has logged in (contract section 22); null: nobody's. */
  users: UserSettings | null;
  deviceKey: Sealed;
  /** Those of its server and of people (contract sections 9 and 19). */
  secrets: readonly LiveSecret[];
  /** Oldest first. */
  signingKeys: readonly [SigningKey, ...SigningKey[]];
}

const CACHE_MILLISECONDS = APPLICATION_CACHE_SECONDS * 1000;

/**
 * Applications by ID. An isolate caches each for `APPLICATION_CACHE_SECONDS`, so a disabled application or a removed
 * secret stops working everywhere within that time. Unknown IDs and wrong secrets are cached as long: both are random, so
 * no caller can have presented one before it was created.
 */
export class ApplicationRegistry {
  readonly #cache = new BoundedCache<{ application: Application; loadedAt: number }>(MAX_CACHED_APPLICATIONS);
  /** When D1 was last queried, in milliseconds, by ID. */
  readonly #unknown = new BoundedCache<number>(MAX_CACHED_UNKNOWN_APPLICATIONS);
  /** When D1 was last queried, in milliseconds, by ID and digest. */
  readonly #wrongSecrets = new BoundedCache<number>(MAX_CACHED_WRONG_SECRETS);
  /** Doors, and when D1 was asked for them, by application and digest: an application may have thousands. */
  readonly #doors = new BoundedCache<{ door: Door; loadedAt: number }>(MAX_CACHED_DOORS);

  /**
   * The cached application.
   *
   * @param now milliseconds
   * @returns undefined if D1 has to be queried
   */
  recall(id: ApplicationId, now: number, maxAgeMilliseconds = CACHE_MILLISECONDS): Application | "unknown" | undefined {
    const cached = this.#cache.get(id);
    if (cached && isYounger(cached.loadedAt, now, maxAgeMilliseconds)) return cached.application;
    const askedAt = cached ? undefined : this.#unknown.get(id);
    return isYounger(askedAt, now, CACHE_MILLISECONDS) ? "unknown" : undefined;
  }

  /** Whether an enabled application is cached, no matter how old the entry is. */
  isServing(id: ApplicationId): boolean {
    return this.#cache.get(id)?.application.isDisabled === false;
  }

  /** When D1 was asked for the cached application, in milliseconds; undefined: none is cached. */
  loadedAt(id: ApplicationId): number | undefined {
    return this.#cache.get(id)?.loadedAt;
  }

  /** @param now milliseconds */
  isWrongSecret(id: ApplicationId, digest: string, now: number): boolean {
    return isYounger(this.#wrongSecrets.get(`${id} ${digest}`), now, CACHE_MILLISECONDS);
  }

  /** @param now milliseconds */
  rememberWrongSecret(id: ApplicationId, digest: string, now: number): void {
    this.#wrongSecrets.set(`${id} ${digest}`, now);
  }

  /** The door whose secret has this digest, if an isolate has seen it; `isFresh`: D1 need not be asked. @param now milliseconds */
  recallDoor(id: ApplicationId, digest: string, now: number): { door: Door; isFresh: boolean } | undefined {
    const cached = this.#doors.get(`${id} ${digest}`);
    return cached && { door: cached.door, isFresh: isYounger(cached.loadedAt, now, CACHE_MILLISECONDS) };
  }

  /** Loads the door from D1 and caches it. @param now milliseconds */
  async findDoor(db: Database, id: ApplicationId, digest: string, now: number): Promise<Door | undefined> {
    return this.#keepDoor(id, digest, now, await findDoorByDigest(db, id, digest));
  }

  /** The door has no secret any more. */
  forgetDoor(id: ApplicationId, { digest }: Door): void {
    this.#doors.delete(`${id} ${digest}`);
  }

  #keepDoor(id: ApplicationId, digest: string, now: number, row: Omit<Door, "digest"> | undefined): Door | undefined {
    const door = row && { ...row, digest };
    if (door) this.#doors.set(`${id} ${digest}`, { door, loadedAt: now });
    else this.#doors.delete(`${id} ${digest}`);
    return door;
  }

  /** The application at most a second ago: a denial needs a recent state, and a second bounds how often D1 is asked. */
  async findForDenial(db: Database, id: ApplicationId, now: number): Promise<Application | undefined> {
    const remembered = this.recall(id, now, DENIAL_CACHE_MILLISECONDS);
    return remembered === "unknown" ? undefined : (remembered ?? this.findFresh(db, id, now));
  }

  /** Loads the application from D1 and caches it: an administrator may just have changed what the cache denies. */
  async findFresh(db: Database, id: ApplicationId, now: number): Promise<Application | undefined> {
    return this.#keep(id, now, await findApplication(db, id));
  }

  /** The same, and the door whose secret has this digest. */
  async findFreshAndDoor(db: Database, id: ApplicationId, digest: string, now: number) {
    const found = await findApplicationAndDoor(db, id, digest);
    return {
      application: this.#keep(id, now, found.application),
      door: this.#keepDoor(id, digest, now, found.door),
    };
  }

  #keep(id: ApplicationId, now: number, row: ApplicationRow | undefined): Application | undefined {
    const loaded = row && applicationOf(row);
    if (loaded) {
      this.#cache.set(id, { application: loaded, loadedAt: now });
      this.#unknown.delete(id);
    } else {
      this.#cache.delete(id);
      this.#unknown.set(id, now);
    }
    return loaded;
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
    deviceKey: { sealed: row.sealedDeviceKey, sealingVersion: row.sealingVersion },
    secrets: [
      ...row.secrets.map(({ digest }) => ({ digest, person: null })),
      ...row.consoleSecrets.map(({ digest, name, role }) => ({ digest, person: { name, role } })),
    ],
    signingKeys: [firstKey, ...laterKeys],
  };
}

function toUserSettings(row: ApplicationRow): UserSettings | null {
  const { userIssuer: issuer, userAudience: audience, userClaim: claim, userObserve: observe } = row;
  return issuer === null || audience === null ? null : { issuer, audience, claim, observe };
}
