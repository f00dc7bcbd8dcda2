import type { Context as HonoContext } from "hono";
import { type ErrorCode, PUBLIC_ERRORS } from "../../shared/error-table.ts";
import { digestOf } from "../../shared/identifiers.ts";
import { ApiError } from "../api-error.ts";
import { addressPrefix } from "../applications/address-prefix.ts";
import { Unavailable } from "../platform.ts";
import type { HttpEnv } from "./environment.ts";
import type { CheckedProof } from "./proof.ts";

/**
 * Limits of device calls (contract section 7), counted by the platform's rate-limit binding: per location, and permissive. It
 * stores no keys. A call with a valid secret is a server's, and not limited.
 *
 * Each call counts for its device. For its address count calls without a proof and those that would take a fresh number; and apart
 * from them those that are refused as malformed, by INVALID_PROOF or by INVALID_USERTOKEN, and those with a proof and an invitation token
 * that cannot be claimed. Any other call with a valid proof counts for no address: otherwise whoever shares one with a building could use up the limit
 * of its phones. So a proof is checked even when its address has sent too many bad ones: only the check tells which it is. What
 * bounds an attacker is that a bad proof costs one signature check and no round trip.
 */

/** Who calls, as far as limits are concerned. */
interface LimitedDevice {
  application: { id: string };
  /** The device's ID in storage. */
  device: string;
}

/** The address of a call. It counts at most once in each way. */
export interface LimitedAddress {
  key: string;
  isCounted: boolean;
  isCountedApart: boolean;
}

/** Counts a call for its device, and remembers the address for what is counted later. @throws ApiError RATE_LIMITED */
export async function limitDevice(
  c: HonoContext<HttpEnv>,
  { application, device }: LimitedDevice,
  clientAddress: string,
  proof: CheckedProof | null = null,
): Promise<void> {
  rememberAddress(c, application, clientAddress);
  await consumeLimit(c.get("context").deviceLimit, deviceCounter(`${application.id}:${device}`, proof));
}

/** Remembers the address of a call for what may be counted later. */
export function rememberAddress(c: HonoContext<HttpEnv>, { id }: { id: string }, clientAddress: string): void {
  const key = `${id}:${addressPrefix(clientAddress)}`;
  c.set("limitedAddress", { key, isCounted: false, isCountedApart: false });
}

/** Counts a well-formed call without a proof, or one that would take a fresh number, for its address. @throws ApiError RATE_LIMITED */
export async function limitAddress(c: HonoContext<HttpEnv>): Promise<void> {
  const address = c.get("limitedAddress");
  if (address === undefined || address.isCounted) return;
  address.isCounted = true;
  await consumeLimit(c.get("context").clientIpLimit, address.key);
}

/** Counts a call that is refused, or is a guess, for its address, apart from its other calls. @throws ApiError RATE_LIMITED */
export async function limitAddressApart(c: HonoContext<HttpEnv>): Promise<void> {
  const address = c.get("limitedAddress");
  if (address === undefined || address.isCountedApart) return;
  address.isCountedApart = true;
  await consumeLimit(c.get("context").clientIpLimit, `${address.key}:refused`);
}

/**
 * Counts a call for the person who makes it: as many as for a device (contract section 22). No device ID has a space.
 *
 * @throws ApiError RATE_LIMITED
 */
export async function limitUser(c: HonoContext<HttpEnv>, { id }: { id: string }, userId: string): Promise<void> {
  await consumeLimit(c.get("context").deviceLimit, `${id}:user ${await digestOf(userId)}`);
}

/** Counts a visitor's call for its invitation: as many as for a device (contract section 27). @throws ApiError RATE_LIMITED */
export async function limitInvitation(c: HonoContext<HttpEnv>, { id }: { id: string }, token: string): Promise<void> {
  await consumeLimit(c.get("context").deviceLimit, `${id}:invitation ${await digestOf(token)}`);
}

/**
 * Counts the calls that a handler refuses as malformed, by INVALID_PROOF or by INVALID_USERTOKEN. Over the limit they are refused
 * with RATE_LIMITED instead.
 */
export function withRefusalLimit<C extends HonoContext<HttpEnv>>(
  handler: (c: C) => Promise<Response>,
): (c: C) => Promise<Response> {
  return async (c) => {
    try {
      return await handler(c);
    } catch (error) {
      if (error instanceof ApiError && isCountedApart(error.code)) await limitAddressApart(c);
      throw error;
    }
  };
}

/** Bodies, fields and headers that are not what the contract says have the statuses 400 and 422. */
function isCountedApart(code: ErrorCode): boolean {
  const { status } = PUBLIC_ERRORS[code];
  return code === "INVALID_PROOF" || code === "INVALID_USERTOKEN" || status === 400 || status === 422;
}

/**
 * Calls with a valid proof are counted by its key, so a stranger with the udid cannot lock its owner out (contract section
 * 15). Proofs that are only not fresh are counted apart from them: a stranger may have recorded one.
 */
function deviceCounter(key: string, proof: CheckedProof | null): string {
  if (proof === null || proof.thumbprint === null) return key;
  return proof.ok ? `${key}:${proof.thumbprint}` : `${key}:${proof.thumbprint}:stale`;
}

/** Without a deadline: the platform counts on the machine that serves the call, so this is no round trip. */
async function consumeLimit(limit: RateLimit, key: string): Promise<void> {
  const { success } = await limit.limit({ key }).catch((error) => {
    throw new Unavailable("rate limit", error);
  });
  if (!success) throw new ApiError("RATE_LIMITED");
}
