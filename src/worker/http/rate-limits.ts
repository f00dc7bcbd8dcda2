import type { Context as HonoContext } from "hono";
import { type ErrorCode, PUBLIC_ERRORS } from "../../shared/error-table.ts";
import { digestOf } from "../../shared/identifiers.ts";
import { clientBlock } from "../applications/client-address.ts";
import { Unavailable } from "../platform.ts";
import { Refusal } from "../refusal.ts";
import type { HttpEnv } from "./environment.ts";
import type { CheckedProof } from "./proof.ts";

/**
 * Limits of device calls (contract section 7), counted by the platform's rate-limit binding: per location, and permissive. It
 * stores no keys. A call with a valid secret is a server's, and not limited.
 *
 * Each call counts for its device. For its address count calls without a proof, and apart from them those that are refused as
 * malformed or by INVALID_PROOF. A call with a valid proof counts for no address: otherwise whoever shares one with a building could
 * use up the limit of its phones. So a proof is checked even when its address has sent too many bad ones: only the check tells
 * which it is. What bounds an attacker is that a bad proof costs one signature check and no round trip.
 */

/** Who calls, as far as limits are concerned. */
interface LimitedDevice {
  application: { id: string };
  /** The device's ID in storage. */
  device: string;
}

/** Counts a call for its device, and remembers the address for what is counted later. @throws Refusal RATE_LIMITED */
export async function limitDevice(
  c: HonoContext<HttpEnv>,
  { application, device }: LimitedDevice,
  clientAddress: string,
  proof: CheckedProof | null = null,
): Promise<void> {
  c.set("limitedAddress", addressKey(application, clientAddress));
  await requireWithin(c.get("context").deviceLimit, deviceKey(`${application.id}:${device}`, proof));
}

/** Counts a well-formed call without a proof for its address. @throws Refusal RATE_LIMITED */
export async function limitAddress(c: HonoContext<HttpEnv>): Promise<void> {
  const address = c.get("limitedAddress");
  if (address !== undefined) await requireWithin(c.get("context").clientIpLimit, address);
}

/** Counts a person's call, which names no device, for its address. @throws Refusal RATE_LIMITED */
export async function limitAddressOfPerson(
  c: HonoContext<HttpEnv>,
  application: { id: string },
  clientAddress: string,
): Promise<void> {
  c.set("limitedAddress", addressKey(application, clientAddress));
  await limitAddress(c);
}

/**
 * Counts a call for the person who makes it: as many as for a device (contract section 22). No device ID has a space.
 *
 * @throws Refusal RATE_LIMITED
 */
export async function limitPerson(c: HonoContext<HttpEnv>, { id }: { id: string }, userId: string): Promise<void> {
  await requireWithin(c.get("context").deviceLimit, `${id}:user ${await digestOf(userId)}`);
}

const addressKey = ({ id }: { id: string }, clientAddress: string): string => `${id}:${clientBlock(clientAddress)}`;

/**
 * Counts the calls that a handler refuses as malformed or by INVALID_PROOF, for the address, apart from its other calls. Over the
 * limit they are refused with RATE_LIMITED instead.
 */
export function countingRefused<C extends HonoContext<HttpEnv>>(
  handler: (c: C) => Promise<Response>,
): (c: C) => Promise<Response> {
  return async (c) => {
    try {
      return await handler(c);
    } catch (error) {
      const address = c.get("limitedAddress");
      if (error instanceof Refusal && address !== undefined && isCountedApart(error.code)) {
        await requireWithin(c.get("context").clientIpLimit, `${address}:refused`);
      }
      throw error;
    }
  };
}

/** Bodies, fields and headers that are not what the contract says have the statuses 400 and 422. */
function isCountedApart(code: ErrorCode): boolean {
  const { status } = PUBLIC_ERRORS[code];
  return code === "INVALID_PROOF" || status === 400 || status === 422;
}

/**
 * Calls with a valid proof are counted by its key, so a stranger with the udid cannot lock its owner out (contract section
 * 15). Proofs that are only not fresh are counted apart from them: a stranger may have recorded one.
 */
function deviceKey(key: string, proof: CheckedProof | null): string {
  if (proof === null || proof.thumbprint === null) return key;
  return proof.ok ? `${key}:${proof.thumbprint}` : `${key}:${proof.thumbprint}:stale`;
}

/** Without a deadline: the platform counts on the machine that serves the call, so this is no round trip. */
async function requireWithin(limit: RateLimit, key: string): Promise<void> {
  const { success } = await limit.limit({ key }).catch((error) => {
    throw new Unavailable("rate limit", error);
  });
  if (!success) throw new Refusal("RATE_LIMITED");
}
