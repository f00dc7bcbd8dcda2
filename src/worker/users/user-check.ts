import { WRONG_TOKEN_CHALLENGE } from "../../shared/error-table.ts";
import { ApiError } from "../api-error.ts";
import type { Application, UserSettings } from "../applications/application-cache.ts";
import type { Context } from "../context.ts";
import type { KnownKeys } from "./issuer-keys.ts";
import { type RefusedToken, type TokenFailure, type VerifiedToken, verifyToken } from "./verify-token.ts";

/** The user credentials of a call. */
export interface PresentedUser {
  /** The token of the `Authorization` header; null without one. */
  token: string | null;
  /** Thumbprint of the key in the call's proof; null without a readable key. */
  keyThumbprint: string | null;
  /** Whether the call has an invalid proof, which is reported later. */
  hasFaultyProof: boolean;
}

/** Whether the user check lets a login continue, or its refusal. */
export type UserCheck = { isAccepted: true } | RefusedUser;

interface RefusedUser {
  isAccepted: false;
  refusal: ApiError;
}

/** The result of a login that needs no user token. */
export const ACCEPTED: UserCheck = { isAccepted: true };

/**
 * Checks that the user whom a login names has logged in to the application. With `--observe` the login continues at
 * once, and its token is checked and counted afterwards.
 *
 * @returns whether the login is accepted. An invitation that vouches for its user overrides a refusal: see `refusalOfUser`
 */
export async function checkLogin(
  context: Context,
  application: Application,
  presented: PresentedUser,
  userId: string,
): Promise<UserCheck> {
  const settings = application.users;
  if (settings === null) return ACCEPTED;
  if (settings.observe) {
    context.defer(observe(context, application, settings, presented, userId));
    return ACCEPTED;
  }
  const outcome = await checkToken(context, settings, presented, userId);
  return outcome === "no-issuer-keys" || !outcome.ok ? refusedUser(outcome, presented) : ACCEPTED;
}

/** The user check's refusal, if a claim failed because its invitation does not vouch for its user; null for other errors. */
export function refusalOfUser(check: UserCheck, error: unknown): ApiError | null {
  const isRefusal = error instanceof ApiError && error.code === "INVALID_USERTOKEN";
  return isRefusal && !check.isAccepted ? check.refusal : null;
}

/** A user who calls about their own badges. */
export interface KnownUser {
  userId: string;
  /** Whether the token is bound to a key, so that the call needs its proof. */
  isKeyBound: boolean;
}

/**
 * The user whom a call's token names.
 *
 * @throws ApiError INVALID_USERTOKEN, also for an application without an issuer; UNAVAILABLE
 */
export async function identifyUser(
  context: Context,
  application: Application,
  presented: PresentedUser,
): Promise<KnownUser> {
  const { users } = application;
  const outcome = users === null ? refused("no-issuer") : await checkToken(context, users, presented, null);
  if (outcome === "no-issuer-keys" || !outcome.ok) throw refusedUser(outcome, presented).refusal;
  return { userId: outcome.userId, isKeyBound: outcome.keyThumbprint !== null };
}

type Outcome = VerifiedToken | RefusedToken | "no-issuer-keys";

/** @param userId the user that the token must name; null for any user */
async function checkToken(
  context: Context,
  settings: UserSettings,
  { token, keyThumbprint, hasFaultyProof }: PresentedUser,
  userId: string | null,
): Promise<Outcome> {
  if (token === null) return refused("no-token");
  const keys = await context.issuerKeys.find(context, settings.issuer);
  if (keys === null) return "no-issuer-keys";
  const outcome = await verifyWithLatest(context, settings, token, keys);
  if (!outcome.ok) return outcome;
  if (userId !== null && outcome.userId !== userId) return refused("other-user");
  const isProved = outcome.keyThumbprint === null || outcome.keyThumbprint === keyThumbprint || hasFaultyProof;
  return isProved ? outcome : refused("other-key");
}

/** An issuer may sign with a key that is newer than the known keys. */
async function verifyWithLatest(
  context: Context,
  settings: UserSettings,
  token: string,
  known: KnownKeys,
): Promise<VerifiedToken | RefusedToken> {
  const outcome = await verifyToken(token, known.find, settings, context.now());
  if (outcome.ok || outcome.reason !== "unknown-key") return outcome;
  const others = await context.issuerKeys.findOthers(context, settings.issuer, known);
  return others === null ? outcome : verifyToken(token, others.find, settings, context.now());
}

async function observe(
  context: Context,
  { id }: Application,
  settings: UserSettings,
  presented: PresentedUser,
  userId: string,
): Promise<void> {
  const outcome = await checkToken(context, settings, presented, userId);
  // The token cannot be verified without keys, so it is not counted.
  if (outcome === "no-issuer-keys") return;
  const kind = outcome.ok ? "withToken" : presented.token === null ? "withoutToken" : "withWrongToken";
  context.loginCounter.count(context, id, kind);
}

const refused = (reason: TokenFailure): RefusedToken => ({ ok: false, reason });

function refusedUser(outcome: RefusedToken | "no-issuer-keys", { token }: PresentedUser): RefusedUser {
  if (outcome === "no-issuer-keys") {
    return { isAccepted: false, refusal: new ApiError("UNAVAILABLE", { detail: outcome }) };
  }
  const challenge = token === null ? undefined : WRONG_TOKEN_CHALLENGE;
  return { isAccepted: false, refusal: new ApiError("INVALID_USERTOKEN", { detail: outcome.reason, challenge }) };
}
