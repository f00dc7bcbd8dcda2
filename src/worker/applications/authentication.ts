import { type Deed, mayDo } from "../../shared/actor.ts";
import type { ErrorCode } from "../../shared/error-table.ts";
import { homeOf } from "../../shared/homes.ts";
import { type ApplicationId, digestOf, parseApplicationId } from "../../shared/identifiers.ts";
import { APPLICATION_CACHE_SECONDS, DENIAL_CACHE_MILLISECONDS, KEY_SET_CACHE_SECONDS } from "../../shared/limits.ts";
import type { Context } from "../context.ts";
import { Refusal } from "../refusal.ts";
import type { Application, Door, LiveSecret, Person } from "./registry.ts";

const encoder = new TextEncoder();

/** The credentials that a call presents. */
export interface Credentials {
  /** Null if missing. */
  applicationId: string | null;
  /** Null if missing. */
  secret: string | null;
  /** The caller's IP address: refused calls are counted by it. */
  clientAddress: string;
}

type Parts = Pick<
  Context,
  "registry" | "refusedCalls" | "refusedCallLimit" | "knownApplications" | "home" | "db" | "now"
>;

/**
 * The application of a client-side call, which presents only its ID.
 *
 * @param missing the code for a missing ID: routes differ (contract sections 2, 3 and 5)
 */
export async function requireApplication(
  parts: Parts,
  credentials: Credentials,
  missing: "UNDEFINED_APPLICATIONID" | "INVALID_APPLICATIONID",
): Promise<Application> {
  const { applicationId, clientAddress } = credentials;
  if (applicationId !== null) return requireEnabled(parts, clientAddress, applicationId, "INVALID_APPLICATIONID");
  if (missing === "UNDEFINED_APPLICATIONID") throw new Refusal(missing);
  return refuse(parts, clientAddress, missing);
}

/** Who makes a server-side call. */
export interface ServerCaller {
  application: Application;
  /** Whose console secret it presents; null: the application's server calls. */
  person: Person | null;
}

/** Who waits for changes of status: a door, or whoever may make server-side calls. */
export interface Listener extends ServerCaller {
  /** Null: the secret is no door's. */
  door: Door | null;
}

/**
 * The caller of a server-side call, by ID and secret. A refusal does not reveal which was wrong.
 *
 * @throws Refusal READ_ONLY if the person's role does not allow the deed, DOOR_ONLY if the secret is a door's
 */
export async function requireServer(parts: Parts, credentials: Credentials, deed: Deed): Promise<ServerCaller> {
  const { applicationId, secret, clientAddress } = credentials;
  if (applicationId === null || secret === null) return refuse(parts, clientAddress, "INVALID_CREDENTIALS");
  const application = await requireEnabled(parts, clientAddress, applicationId, "INVALID_CREDENTIALS");
  return requireSecret(parts, clientAddress, application, secret, deed);
}

/**
 * The same of the one call that a door may make, too (contract section 26). A door whose secret this isolate has seen is not looked
 * up again: the object that it connects to knows which secrets were retired (src/worker/live/live.ts).
 */
export async function requireListener(parts: Parts, credentials: Credentials): Promise<Listener> {
  const { applicationId, secret, clientAddress } = credentials;
  if (applicationId === null || secret === null) return refuse(parts, clientAddress, "INVALID_CREDENTIALS");
  const application = await requireEnabled(parts, clientAddress, applicationId, "INVALID_CREDENTIALS");
  return findCaller(parts, clientAddress, application, secret, { trustsKnownDoors: true });
}

/** The caller of a route that servers and devices may call. */
export type Caller = ({ kind: "server" } & ServerCaller) | { kind: "device"; application: Application };

/** A call with the right secret is a server's, a call without a secret is a device's (contract section 5). */
export async function identifyInviter(parts: Parts, credentials: Credentials): Promise<Caller> {
  const application = await requireApplication(parts, credentials, "INVALID_APPLICATIONID");
  const { secret, clientAddress } = credentials;
  if (secret !== null) {
    return { kind: "server", ...(await requireSecret(parts, clientAddress, application, secret, "invite")) };
  }
  if (!application.requireSecret) return { kind: "device", application };
  const { id } = application;
  const newer = await findForDenial(parts, clientAddress, id);
  if (!newer || newer.isDisabled || newer.requireSecret) return refuse(parts, clientAddress, "INVALID_CREDENTIALS", id);
  return { kind: "device", application: newer };
}

/** The caller who revokes an invitation: without a secret, the udid that created it is needed (contract section 5). */
export async function identifyRevoker(
  parts: Parts,
  credentials: Credentials,
  udid: string | null,
): Promise<({ kind: "server" } & ServerCaller) | { kind: "device"; application: Application; udid: string }> {
  const caller = await identifyInviter(parts, credentials);
  if (caller.kind === "server") return caller;
  if (udid === null) return refuse(parts, credentials.clientAddress, "INVALID_CREDENTIALS", caller.application.id);
  return { ...caller, udid };
}

/** The application whose public keys are requested. This needs no credentials, but guessed IDs count as refused calls. */
export async function requirePublisher(parts: Parts, clientAddress: string, idText: string): Promise<Application> {
  const id = parseApplicationId(idText);
  const application = id && (await find(parts, clientAddress, id, KEY_SET_CACHE_SECONDS * 1000));
  return application ?? refuse(parts, clientAddress, "UNKNOWN_APPLICATION");
}

/**
 * The application whose status lists are requested. A disabled application keeps its lists, as it keeps its keys: doors
 * still check its badges. Doors of an application without lists ask repeatedly, so only unknown IDs count as guesses.
 */
export async function requireStatusLists(parts: Parts, clientAddress: string, idText: string): Promise<Application> {
  const id = parseApplicationId(idText);
  if (id === undefined) return refuse(parts, clientAddress, "UNKNOWN_STATUSLIST");
  const application = await find(parts, clientAddress, id);
  // An administrator may just have turned them on.
  const newer = application?.statusList === false ? await findForDenial(parts, clientAddress, id) : application;
  if (newer?.statusList) return newer;
  if (newer) throw new Refusal("UNKNOWN_STATUSLIST", { applicationId: id });
  return refuse(parts, clientAddress, "UNKNOWN_STATUSLIST");
}

async function requireEnabled(
  parts: Parts,
  clientAddress: string,
  idText: string,
  code: "INVALID_APPLICATIONID" | "INVALID_CREDENTIALS",
): Promise<Application> {
  const id = parseApplicationId(idText);
  if (id === undefined) return refuse(parts, clientAddress, code);
  const remembered = parts.registry.recall(id, parts.now());
  if (remembered !== undefined && remembered !== "unknown" && !remembered.isDisabled) return remembered;
  const application = await find(parts, clientAddress, id);
  const newer = application?.isDisabled ? await findForDenial(parts, clientAddress, id) : application;
  return newer && !newer.isDisabled ? newer : refuse(parts, clientAddress, code);
}

/** @returns the application in the state that accepted the secret: freshly loaded if the cached one did not */
async function requireSecret(
  parts: Parts,
  clientAddress: string,
  application: Application,
  secret: string,
  deed: Deed,
): Promise<ServerCaller> {
  const caller = await findCaller(parts, clientAddress, application, secret, { trustsKnownDoors: false });
  const { id: applicationId } = caller.application;
  if (caller.door !== null) throw new Refusal("DOOR_ONLY", { applicationId });
  if (caller.person !== null && !mayDo(caller.person.role, deed)) throw new Refusal("READ_ONLY", { applicationId });
  return caller;
}

async function findCaller(
  parts: Parts,
  clientAddress: string,
  application: Application,
  secret: string,
  { trustsKnownDoors }: { trustsKnownDoors: boolean },
): Promise<Listener> {
  const digest = await digestOf(secret);
  const known = findSecret(application, digest);
  if (known) return { application, person: known.person, door: null };
  const { registry, db, now } = parts;
  const { id } = application;
  // A door that this isolate has served is no guess.
  const recalled = registry.recallDoor(id, digest, now());
  const isLookedUp = recalled?.isFresh === false && !trustsKnownDoors;
  const served = isLookedUp ? await registry.findDoor(db, id, digest, now()) : recalled?.door;
  if (served) return { application, person: null, door: served };
  if (registry.isWrongSecret(id, digest, now())) return refuse(parts, clientAddress, "INVALID_CREDENTIALS", id);
  // The secret may be newer than the cached application.
  let door: Door | undefined;
  const fresh = await lookUp(parts, clientAddress, id, digest, async () => {
    const found = await registry.findFreshAndDoor(db, id, digest, now());
    door = found.door;
    return found.application;
  });
  const added = fresh && !fresh.isDisabled ? findSecret(fresh, digest) : undefined;
  if (fresh && added) return { application: fresh, person: added.person, door: null };
  if (fresh && !fresh.isDisabled && door) return { application: fresh, person: null, door };
  registry.rememberWrongSecret(id, digest, now());
  return refuse(parts, clientAddress, "INVALID_CREDENTIALS", id);
}

/** Also finds disabled applications. */
async function find(
  parts: Parts,
  clientAddress: string,
  id: ApplicationId,
  maxAgeMilliseconds = APPLICATION_CACHE_SECONDS * 1000,
): Promise<Application | undefined> {
  const { registry, db, now } = parts;
  const remembered = registry.recall(id, now(), maxAgeMilliseconds);
  if (remembered === "unknown") return undefined;
  if (remembered !== undefined) return remembered;
  // An application that this isolate has served is no guess, so it is reloaded even for an address over the limit.
  return registry.isServing(id) ? registry.findFresh(db, id, now()) : lookUp(parts, clientAddress, id);
}

/**
 * The application as it was at most a second ago. An administrator may just have enabled it or stopped requiring its
 * secret, so a denial needs a recent state; the second limits how often D1 is queried.
 */
async function findForDenial(parts: Parts, clientAddress: string, id: ApplicationId): Promise<Application | undefined> {
  const remembered = parts.registry.recall(id, parts.now(), DENIAL_CACHE_MILLISECONDS);
  if (remembered === "unknown") return undefined;
  return remembered ?? lookUp(parts, clientAddress, id);
}

/**
 * Queries D1, unless too many calls from the address were refused: then only for an application that exists, so that doors and phones
 * behind an address that guesses are served. An application of another home is unknown in this one: its own is not bound.
 *
 * @param digest of the secret that is looked for; empty: the application itself is
 * @param load reads the application, and what else the same query can find
 * @throws Refusal RATE_LIMITED
 */
async function lookUp(
  parts: Parts,
  clientAddress: string,
  id: ApplicationId,
  digest = "",
  load = () => parts.registry.findFresh(parts.db, id, parts.now()),
): Promise<Application | undefined> {
  const { refusedCalls, knownApplications, home, now } = parts;
  const ask = async () => (homeOf(id) === home ? load() : undefined);
  try {
    return await refusedCalls.lookUp(clientAddress, now(), `${id} ${digest}`, ask);
  } catch (error) {
    const isLimited = error instanceof Refusal && error.code === "RATE_LIMITED";
    if (!isLimited || digest !== "" || homeOf(id) !== home) throw error;
    if (await knownApplications.has(parts, id)) return ask();
    throw error;
  }
}

/** Counts a refused call. @throws Refusal always: with the code, or RATE_LIMITED if too many calls from the address were refused */
export async function refuse(
  { refusedCalls, refusedCallLimit, now }: Pick<Parts, "refusedCalls" | "refusedCallLimit" | "now">,
  clientAddress: string,
  code: ErrorCode,
  applicationId?: ApplicationId,
): Promise<never> {
  const isOver = await refusedCalls.count(clientAddress, now(), refusedCallLimit);
  throw new Refusal(isOver ? "RATE_LIMITED" : code, { applicationId });
}

/** Whether this is a live secret of the application's server. */
export async function isServerSecret(application: Application, secret: string): Promise<boolean> {
  return findSecret(application, await digestOf(secret))?.person === null;
}

/**
 * The application's live secret with this digest. All digests are compared, each in constant time.
 *
 * @param digest base64url of SHA-256
 */
function findSecret({ secrets }: Application, digest: string): LiveSecret | undefined {
  const presented = encoder.encode(digest);
  let found: LiveSecret | undefined;
  for (const secret of secrets) {
    // Both are base64url of 32 bytes, so the lengths that timingSafeEqual insists on are equal.
    if (crypto.subtle.timingSafeEqual(presented, encoder.encode(secret.digest))) found = secret;
  }
  return found;
}
