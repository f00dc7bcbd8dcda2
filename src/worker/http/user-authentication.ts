import type { Context as HonoContext } from "hono";
import type { Application } from "../applications/application-cache.ts";
import { withRecentSettings } from "../applications/recent-settings.ts";
import { checkLogin, identifyUser, type KnownUser, type PresentedUser, type UserCheck } from "../users/user-check.ts";
import { header, type ProvingDevice, requireUserCall } from "./authentication.ts";
import type { HttpEnv } from "./environment.ts";
import { type CheckedProof, requireKey, verifyProofOfCall } from "./proof.ts";
import { limitUser } from "./rate-limits.ts";

/** RFC 6750 section 2.1; schemes are case-insensitive (RFC 9110 section 11.1). */
const BEARER = /^bearer(?: +|$)/i;

/** The token of the `Authorization` header; null without one, and for other schemes. */
function readToken(c: HonoContext<HttpEnv>): string | null {
  const text = header(c, "authorization")?.trim() ?? "";
  const token = text.replace(BEARER, "");
  return token === "" || token === text ? null : token;
}

function presentedUser(c: HonoContext<HttpEnv>, proof: CheckedProof | null): PresentedUser {
  const keyThumbprint = proof?.thumbprint ?? null;
  return { token: readToken(c), keyThumbprint, hasFaultyProof: proof !== null && keyThumbprint === null };
}

/** Checks the user that a login names. See `checkLogin`. */
export function checkUserOfLogin(
  c: HonoContext<HttpEnv>,
  { application, proof }: ProvingDevice,
  userId: string,
): Promise<UserCheck> {
  return checkLogin(c.get("context"), application, presentedUser(c, proof), userId);
}

/**
 * Identifies a user by a user token, without a udid. `ath` of its proof covers the token instead (RFC 9449 section 4.2).
 *
 * @throws ApiError
 */
export async function requireUser(c: HonoContext<HttpEnv>): Promise<KnownUser & { application: Application }> {
  return withRecentSettings(c.get("context"), await requireUserCall(c), (application) => identify(c, application));
}

async function identify(
  c: HonoContext<HttpEnv>,
  application: Application,
): Promise<KnownUser & { application: Application }> {
  const [token, dpop] = [readToken(c), header(c, "dpop")];
  const proof = token === null || dpop === null ? null : await verifyProofOfCall(c, dpop, { application, udid: token });
  const user = await identifyUser(c.get("context"), application, presentedUser(c, proof));
  // Before the call is counted, so that a stolen token without its key uses up none of the user's calls.
  if (user.isKeyBound) await requireKey(c, { application, proof });
  await limitUser(c, application, user.userId);
  return { application, ...user };
}
