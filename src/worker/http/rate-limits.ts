import type { Context as HonoContext } from "hono";
import { type ErrorCode, PUBLIC_ERRORS } from "../../shared/error-table.ts";
import { digestOf } from "../../shared/identifiers.ts";
import { ApiError } from "../api-error.ts";
import { addressPrefix } from "../applications/address-prefix.ts";
import { Unavailable } from "../platform.ts";
import type { HttpEnv } from "./environment.ts";
import type { CheckedProof } from "./proof.ts";

/**
 * Limits of device calls (contract section 7). The platform's rate-limit binding counts per location, and may admit too
 * many calls. A call with a valid secret is a server's, and not limited.
 *
 * Each call counts for its device. Calls without a proof, and calls that would take a fresh number, also count for
 * their address. An address has a second count for calls that are refused as malformed, with INVALID_PROOF or with
 * INVALID_USERTOKEN, and for calls with a proof and an invitation token that cannot be claimed. User tokens that have
 * expired have a third. Other calls with a valid proof count for no address; otherwise a neighbour could lock a
 * building's phones out. So a proof is checked even after its address has sent too many bad proofs. An attacker gains
 * little, because a bad proof costs one signature check and no round trip.
 */

/** The device that a limit counts, and its application. */
interface LimitedDevice {
  application: { id: string };
  /** The device's ID in storage. */
  device: string;
}

/** The address of a call, with the limits that have let the call pass. A second attempt of the call does not count again. */
export interface LimitedAddress {
  key: string;
  isCounted: boolean;
  isCountedApart: boolean;
}

/** Counts a call for its device. @throws ApiError RATE_LIMITED */
export async function limitDevice(
  c: HonoContext<HttpEnv>,
  { application, device }: LimitedDevice,
  proof: CheckedProof | null = null,
): Promise<void> {
  const counter = deviceCounter(`${application.id}:${device}`, proof, c.get("limitedAddress")?.key ?? "");
  await consumeLimit(c.get("context").deviceLimit, counter);
}

/** Stores the address of a call for later counts. */
export function rememberAddress(c: HonoContext<HttpEnv>, { id }: { id: string }, clientAddress: string): void {
  const key = `${id}:${addressPrefix(clientAddress)}`;
  c.set("limitedAddress", { key, isCounted: false, isCountedApart: false });
}

/**
 * Counts a call for its address: one without a proof, one that would take a fresh number, or one about an invitation.
 *
 * @throws ApiError RATE_LIMITED
 */
export async function limitAddress(c: HonoContext<HttpEnv>): Promise<void> {
  const address = c.get("limitedAddress");
  if (address === undefined || address.isCounted) return;
  await consumeLimit(c.get("context").clientIpLimit, address.key);
  address.isCounted = true;
}

/** Counts a genuine user token that has expired for its address. @throws ApiError RATE_LIMITED */
async function limitExpiredToken(c: HonoContext<HttpEnv>): Promise<void> {
  const address = c.get("limitedAddress");
  if (address !== undefined) await consumeLimit(c.get("context").clientIpLimit, `${address.key}:expired`);
}

/** Counts a refused call or a guess for its address, apart from other calls. @throws ApiError RATE_LIMITED */
export async function limitAddressApart(c: HonoContext<HttpEnv>): Promise<void> {
  const address = c.get("limitedAddress");
  if (address === undefined || address.isCountedApart) return;
  await consumeLimit(c.get("context").clientIpLimit, `${address.key}:refused`);
  address.isCountedApart = true;
}

/**
 * Counts a user's call, with the limit of a device (contract section 22). Device IDs contain no space, so the counters
 * are distinct.
 *
 * @throws ApiError RATE_LIMITED
 */
export async function limitUser(c: HonoContext<HttpEnv>, { id }: { id: string }, userId: string): Promise<void> {
  await consumeLimit(c.get("context").deviceLimit, `${id}:user ${await digestOf(userId)}`);
}

/**
 * Counts a visitor's call for its invitation, with the limit of a device (contract section 27).
 *
 * @throws ApiError RATE_LIMITED
 */
export async function limitInvitation(c: HonoContext<HttpEnv>, { id }: { id: string }, token: string): Promise<void> {
  await consumeLimit(c.get("context").deviceLimit, `${id}:invitation ${await digestOf(token)}`);
}

/**
 * Counts the calls that a handler refuses as malformed, with INVALID_PROOF or with INVALID_USERTOKEN. Over the limit it
 * refuses them with RATE_LIMITED. Genuine user tokens that have expired are counted by themselves: a phone must learn that it
 * needs a new one, although a neighbour floods its address with made-up ones.
 */
export function withRefusalLimit<C extends HonoContext<HttpEnv>>(
  handler: (c: C) => Promise<Response>,
): (c: C) => Promise<Response> {
  return async (c) => {
    try {
      return await handler(c);
    } catch (error) {
      if (error instanceof ApiError && isCountedApart(error.code)) {
        await (error.detail === "expired-token" ? limitExpiredToken(c) : limitAddressApart(c));
      }
      throw error;
    }
  };
}

/** Bodies, fields and headers that violate the contract get the statuses 400 and 422. */
function isCountedApart(code: ErrorCode): boolean {
  const { status } = PUBLIC_ERRORS[code];
  return code === "INVALID_PROOF" || code === "INVALID_USERTOKEN" || status === 400 || status === 422;
}

/**
 * Calls with a valid proof are counted by its key, so a stranger with the udid cannot lock its owner out (contract
 * section 15). Valid but stale proofs have a separate count for each address, because a stranger may have recorded one, and the
 * phone's clock may be wrong.
 */
function deviceCounter(key: string, proof: CheckedProof | null, address: string): string {
  if (proof === null || proof.thumbprint === null) return key;
  return proof.ok ? `${key}:${proof.thumbprint}` : `${key}:${proof.thumbprint}:stale:${address}`;
}

/** No deadline is needed: the platform counts on the machine that serves the call, without a round trip. */
async function consumeLimit(limit: RateLimit, key: string): Promise<void> {
  const { success } = await limit.limit({ key }).catch((error) => {
    throw new Unavailable("rate limit", error);
  });
  if (!success) throw new ApiError("RATE_LIMITED");
}
