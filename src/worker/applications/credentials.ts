import type { ErrorCode } from "../../shared/error-table.ts";
import { homeOf } from "../../shared/homes.ts";
import { type ApplicationId, digestOf, parseApplicationId } from "../../shared/identifiers.ts";
import { APPLICATION_CACHE_SECONDS, KEY_SET_CACHE_SECONDS } from "../../shared/limits/cache-limits.ts";
import { type Permission, roleAllows } from "../../shared/roles.ts";
import { ApiError } from "../api-error.ts";
import type { Context } from "../context.ts";
import type { Application, ConsoleUser, Door, LiveSecret } from "./application-cache.ts";

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

type Deps = Pick<
  Context,
  "applicationCache" | "authFailureLimiter" | "refusedCallLimit" | "knownApplications" | "home" | "db" | "now"
>;

/**
 * The application of a client-side call, which presents only its ID.
 *
 * @param missing the code for a missing ID: routes differ (contract sections 2, 3 and 5)
 */
export async function requireApplication(
  deps: Deps,
  credentials: Credentials,
  missing: "UNDEFINED_APPLICATIONID" | "INVALID_APPLICATIONID",
): Promise<Application> {
  const { applicationId, clientAddress } = credentials;
  if (applicationId !== null) return requireEnabled(deps, clientAddress, applicationId, "INVALID_APPLICATIONID");
  if (missing === "UNDEFINED_APPLICATIONID") throw new ApiError(missing);
  return countAndReject(deps, clientAddress, missing);
}

/** Who makes a server-side call. */
export interface ServerCaller {
  application: Application;
  /** The person of the console secret; null if the application's server calls. */
  consoleUser: ConsoleUser | null;
}

/** The caller who waits for changes of status: a door, or a caller of server-side routes. */
export interface StatusListener extends ServerCaller {
  /** Null if the secret is not a door's. */
  door: Door | null;
}

/**
 * The caller of a server-side call, by ID and secret. A refusal does not reveal which was wrong.
 *
 * @throws ApiError READ_ONLY if the person's role lacks the permission, DOOR_ONLY if the secret is a door's
 */
export async function requireServer(
  deps: Deps,
  credentials: Credentials,
  permission: Permission,
): Promise<ServerCaller> {
  const { applicationId, secret, clientAddress } = credentials;
  if (applicationId === null || secret === null) return countAndReject(deps, clientAddress, "INVALID_CREDENTIALS");
  const application = await requireEnabled(deps, clientAddress, applicationId, "INVALID_CREDENTIALS");
  return requireSecret(deps, clientAddress, application, secret, permission);
}

/**
 * Like `requireServer`, for the only call that a door may also make (contract section 26). A door that this isolate has
 * seen is not looked up again, because the object that it connects to rejects retired secrets (src/worker/live/live.ts).
 */
export async function requireListener(deps: Deps, credentials: Credentials): Promise<StatusListener> {
  const { applicationId, secret, clientAddress } = credentials;
  if (applicationId === null || secret === null) return countAndReject(deps, clientAddress, "INVALID_CREDENTIALS");
  const application = await requireEnabled(deps, clientAddress, applicationId, "INVALID_CREDENTIALS");
  return findCaller(deps, clientAddress, application, secret, { trustsKnownDoors: true });
}

/** The caller of a route that servers and devices may call. */
export type Caller = ({ kind: "server" } & ServerCaller) | { kind: "device"; application: Application };

/** A call with the right secret is a server's, a call without a secret is a device's (contract section 5). */
export async function identifyInviter(deps: Deps, credentials: Credentials): Promise<Caller> {
  const application = await requireApplication(deps, credentials, "INVALID_APPLICATIONID");
  const { secret, clientAddress } = credentials;
  if (secret !== null) {
    return { kind: "server", ...(await requireSecret(deps, clientAddress, application, secret, "invite")) };
  }
  if (!application.requireSecret) return { kind: "device", application };
  const { id } = application;
  const newer = await findRecent(deps, clientAddress, id);
  if (!newer || newer.isDisabled || newer.requireSecret)
    return countAndReject(deps, clientAddress, "INVALID_CREDENTIALS", id);
  return { kind: "device", application: newer };
}

/** The caller who revokes an invitation: without a secret, the udid that created it is needed (contract section 5). */
export async function identifyRevoker(
  deps: Deps,
  credentials: Credentials,
  udid: string | null,
): Promise<({ kind: "server" } & ServerCaller) | { kind: "device"; application: Application; udid: string }> {
  const caller = await identifyInviter(deps, credentials);
  if (caller.kind === "server") return caller;
  if (udid === null)
    return countAndReject(deps, credentials.clientAddress, "INVALID_CREDENTIALS", caller.application.id);
  return { ...caller, udid };
}

/** The application whose public keys are requested. This needs no credentials, but guessed IDs count as refused calls. */
export async function applicationForKeySet(deps: Deps, clientAddress: string, idText: string): Promise<Application> {
  const id = parseApplicationId(idText);
  const application = id && (await find(deps, clientAddress, id, KEY_SET_CACHE_SECONDS * 1000));
  return application ?? countAndReject(deps, clientAddress, "UNKNOWN_APPLICATION");
}

/**
 * The application whose status lists are requested. A disabled application keeps its lists, as it keeps its keys: doors
 * still check its badges. Doors of an application without lists ask repeatedly, so only unknown IDs count as guesses.
 */
export async function applicationForStatusLists(
  deps: Deps,
  clientAddress: string,
  idText: string,
): Promise<Application> {
  const id = parseApplicationId(idText);
  if (id === undefined) return countAndReject(deps, clientAddress, "UNKNOWN_STATUSLIST");
  const application = await find(deps, clientAddress, id);
  // An administrator may just have turned the lists on.
  const newer =
    application?.statusList === false ? await deps.applicationCache.findRecent(deps.db, id, deps.now()) : application;
  if (newer?.statusList) return newer;
  if (newer) throw new ApiError("UNKNOWN_STATUSLIST", { applicationId: id });
  return countAndReject(deps, clientAddress, "UNKNOWN_STATUSLIST");
}

async function requireEnabled(
  deps: Deps,
  clientAddress: string,
  idText: string,
  code: "INVALID_APPLICATIONID" | "INVALID_CREDENTIALS",
): Promise<Application> {
  const id = parseApplicationId(idText);
  if (id === undefined) return countAndReject(deps, clientAddress, code);
  const application = await find(deps, clientAddress, id);
  const newer = application?.isDisabled ? await findRecent(deps, clientAddress, id) : application;
  return newer && !newer.isDisabled ? newer : countAndReject(deps, clientAddress, code);
}

/** Before a refusal: the application as of at most a second ago. @throws ApiError RATE_LIMITED, without a look-up */
function findRecent(deps: Deps, clientAddress: string, id: ApplicationId): Promise<Application | undefined> {
  const { applicationCache, authFailureLimiter, db, now } = deps;
  return authFailureLimiter.lookUp(clientAddress, now(), id, () => applicationCache.findRecent(db, id, now()));
}

/** @returns the application in the state that accepted the secret: freshly loaded if the cached one did not */
async function requireSecret(
  deps: Deps,
  clientAddress: string,
  application: Application,
  secret: string,
  permission: Permission,
): Promise<ServerCaller> {
  const caller = await findCaller(deps, clientAddress, application, secret, { trustsKnownDoors: false });
  const { id: applicationId } = caller.application;
  if (caller.door !== null) throw new ApiError("DOOR_ONLY", { applicationId });
  if (caller.consoleUser !== null && !roleAllows(caller.consoleUser.role, permission))
    throw new ApiError("READ_ONLY", { applicationId });
  return caller;
}

async function findCaller(
  deps: Deps,
  clientAddress: string,
  application: Application,
  secret: string,
  { trustsKnownDoors }: { trustsKnownDoors: boolean },
): Promise<StatusListener> {
  const digest = await digestOf(secret);
  const known = findSecret(application, digest);
  if (known) return { application, consoleUser: known.consoleUser, door: null };
  const { applicationCache, db, now } = deps;
  const { id } = application;
  // A door that this isolate has served does not count as a guess.
  const recalled = applicationCache.peekDoor(id, digest, now());
  const isLookedUp = recalled?.isFresh === false && !trustsKnownDoors;
  const served = isLookedUp ? await applicationCache.findDoor(db, id, digest, now()) : recalled?.door;
  if (served) return { application, consoleUser: null, door: served };
  if (applicationCache.isWrongSecret(id, digest, now()))
    return countAndReject(deps, clientAddress, "INVALID_CREDENTIALS", id);
  // The secret may be newer than the cached application.
  let door: Door | undefined;
  const fresh = await lookUp(deps, clientAddress, id, digest, async () => {
    const found = await applicationCache.reloadWithDoor(db, id, digest, now());
    door = found.door;
    return found.application;
  });
  if (fresh && !fresh.isDisabled) {
    const added = findSecret(fresh, digest);
    if (added) return { application: fresh, consoleUser: added.consoleUser, door: null };
    if (door) return { application: fresh, consoleUser: null, door };
  }
  applicationCache.rememberWrongSecret(id, digest, now());
  return countAndReject(deps, clientAddress, "INVALID_CREDENTIALS", id);
}

/** Also finds disabled applications. */
async function find(
  deps: Deps,
  clientAddress: string,
  id: ApplicationId,
  maxAgeMilliseconds = APPLICATION_CACHE_SECONDS * 1000,
): Promise<Application | undefined> {
  const remembered = deps.applicationCache.peek(id, deps.now(), maxAgeMilliseconds);
  if (remembered === "unknown") return undefined;
  return remembered ?? lookUp(deps, clientAddress, id);
}

/**
 * Queries D1. If too many calls from the address were refused, it does so only for an existing application, so that
 * doors and phones that share the address with a guesser are still served. An application of an unbound home is unknown.
 *
 * @param digest of the secret to find; empty for the application itself
 * @param load reads the application, and other rows of the same query
 * @throws ApiError RATE_LIMITED
 */
async function lookUp(
  deps: Deps,
  clientAddress: string,
  id: ApplicationId,
  digest = "",
  load = () => deps.applicationCache.reload(deps.db, id, deps.now()),
): Promise<Application | undefined> {
  const { authFailureLimiter, knownApplications, home, now } = deps;
  const ask = async () => (homeOf(id) === home ? load() : undefined);
  try {
    return await authFailureLimiter.lookUp(clientAddress, now(), `${id} ${digest}`, ask);
  } catch (error) {
    if (!(error instanceof ApiError) || digest !== "" || homeOf(id) !== home) throw error;
    if (await knownApplications.has(deps, id)) return ask();
    throw error;
  }
}

/** Counts a refused call. @throws ApiError always: with the code, or RATE_LIMITED if too many calls from the address were refused */
export async function countAndReject(
  { authFailureLimiter, refusedCallLimit, now }: Pick<Deps, "authFailureLimiter" | "refusedCallLimit" | "now">,
  clientAddress: string,
  code: ErrorCode,
  applicationId?: ApplicationId,
): Promise<never> {
  const isLimited = await authFailureLimiter.count(clientAddress, now(), refusedCallLimit);
  throw new ApiError(isLimited ? "RATE_LIMITED" : code, { applicationId });
}

/** Whether this is a live secret of the application's server. */
export async function isServerSecret(application: Application, secret: string): Promise<boolean> {
  return findSecret(application, await digestOf(secret))?.consoleUser === null;
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
    // Both are base64url of 32 bytes, so timingSafeEqual gets equal lengths.
    if (crypto.subtle.timingSafeEqual(presented, encoder.encode(secret.digest))) found = secret;
  }
  return found;
}
