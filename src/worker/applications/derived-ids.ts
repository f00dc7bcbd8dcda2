import {
  base64Url,
  type DeviceId,
  deviceId,
  invitationTokenOf,
  type UserDigest,
  userDigest,
} from "../../shared/identifiers.ts";
import type { Role } from "../../shared/roles.ts";
import { deriveBytes } from "../keys/derivation.ts";
import type { UnsealedKeys } from "../keys/unsealed-keys.ts";
import type { Application } from "./application-cache.ts";

/** 128 bits: with four billion devices in an application the chance that any two collide is about 2^-65. */
const DEVICE_BYTES = 16;

const encoder = new TextEncoder();

/** An application, as far as values are derived under its root key. */
type RootKeyOwner = Pick<Application, "id" | "rootKey">;

/**
 * The ID of a device in storage: HMAC-SHA-256 of its udid under a key that only the Worker can open. Anyone with the
 * udid can get signatures, so leaked storage must not reveal it (contract section 9).
 */
export async function hashUdid(
  unsealedKeys: UnsealedKeys,
  { id, rootKey }: RootKeyOwner,
  udid: string,
): Promise<DeviceId> {
  const key = await unsealedKeys.rootKey(id, rootKey);
  const mac = await crypto.subtle.sign("HMAC", key, encoder.encode(udid));
  return deviceId.parse(base64Url(new Uint8Array(mac, 0, DEVICE_BYTES)));
}

/**
 * The digest that replaces the ID of an erased user (contract section 24). A block stays valid under it, and the ID
 * cannot be recovered.
 */
export async function hashUserId(
  unsealedKeys: UnsealedKeys,
  { id, rootKey }: RootKeyOwner,
  userId: string,
): Promise<UserDigest> {
  return userDigest.parse(base64Url(await deriveBytes(await unsealedKeys.rootKey(id, rootKey), "user", userId)));
}

/** The creator of an invitation. Each creator has its own Idempotency-Keys. */
export type Inviter =
  /** The server, with either of its two secrets. */
  | { kind: "server" }
  /** A person with a console secret; `name` is unique within the application. */
  | { kind: "person"; name: string; role: Role }
  | { kind: "device"; device: DeviceId };

/**
 * The invitation token for an Idempotency-Key (contract section 12): derived under the application's root key, so that
 * it need not be stored.
 */
export async function deriveInvitationToken(
  unsealedKeys: UnsealedKeys,
  { id, rootKey }: RootKeyOwner,
  inviter: Inviter,
  idempotencyKey: string,
): Promise<string> {
  const key = await unsealedKeys.rootKey(id, rootKey);
  const caller = inviter.kind === "device" ? inviter.device : inviter.kind === "person" ? inviter.name : "";
  const parts = ["invitation-token", inviter.kind, caller, idempotencyKey];
  // The first text that has the form of a token, so a repeated request finds the same one.
  for (let counter = 0; ; counter++) {
    const token = invitationTokenOf(await deriveBytes(key, ...parts, String(counter)));
    if (token !== null) return token;
  }
}
