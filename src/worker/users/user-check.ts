import { WRONG_TOKEN_CHALLENGE } from "../../shared/error-table.ts";
import { ApiError } from "../api-error.ts";
import type { Application, UserSettings } from "../applications/application-cache.ts";
import type { Context } from "../context.ts";
import type { KnownKeys } from "./issuer-keys.ts";
import { type RefusedToken, type TokenFailure, type VerifiedToken, verifyToken } from "./token.ts";

/** What a call presents to say who has logged in. */
export interface PresentedUser {
  /** Of the `Authorization` header; null: none. */
  token: string | null;
  /** Of the key whose proof the call has; null: no key can be told from it. */
  keyThumbprint: string | null;
  /** The call has a proof that no key can be told from: what is wrong with it is reported as such, later. */
  hasFaultyProof: boolean;
}

/** Whether a login may go on as far as its user is concerned, or why not. */
export type UserCheck = { isAccepted: true } | RefusedUser;

interface RefusedUser {
  isAccepted: false;
  refusal: ApiError;
}

/** Of a login that needs no user token. */
export const ACCEPTED: UserCheck = { isAccepted: true };

/**
 * Checks that the user whom a login names is the one who has logged in to the application (contract section 22). With
 * `--observe` the login goes on at once, and its token is checked and counted afterwards.
 *
 * @returns the refusal, which does not hold for an invitation that vouches for its user: see `refusalOfUser`
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

/** Why a claim was refused, if it was because no invitation vouches for its user; null: another reason. */
export function refusalOfUser(check: UserCheck, error: unknown): ApiError | null {
  const isRefusal = error instanceof ApiError && error.code === "INVALID_USERTOKEN";
  return isRefusal && !check.isAccepted ? check.refusal : null;
}

/** A person who looks after badges of their own. */
export interface KnownUser {
  userId: string;
  /** The token is bound to a key, whose proof the call must have. */
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

/** @param userId whom the token must name; null: anybody */
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

/** An issuer may sign with a key that is newer than those that are known. */
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
  // Nobody knows what such a token is worth.
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
