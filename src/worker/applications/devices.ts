import type { Role } from "../../shared/actor.ts";
import { base64Url, type DeviceId, deviceId, invitationTokenOf } from "../../shared/identifiers.ts";
import type { Custody } from "../keys/custody.ts";
import { deriveBytes } from "../keys/derivation.ts";
import type { Application } from "./registry.ts";

/** 128 bits: with four billion devices in an application the chance that any two collide is about 2^-65. */
const DEVICE_BYTES = 16;

const encoder = new TextEncoder();

/**
 * The ID of a device in storage: HMAC-SHA-256 of its udid under a key that only the Worker can open. Anybody with the
 * udid can get signatures, so a copy of the storage must not reveal it (contract section 9).
 */
export async function deviceOf(custody: Custody, application: Application, udid: string): Promise<DeviceId> {
  const key = await custody.deviceKey(application.id, application.deviceKey);
  const mac = await crypto.subtle.sign("HMAC", key, encoder.encode(udid));
  return deviceId.parse(base64Url(new Uint8Array(mac, 0, DEVICE_BYTES)));
}

/** Who creates an invitation: each has Idempotency-Keys of its own (contract section 12). */
export type Inviter =
  /** By either of the server's two secrets. */
  | { kind: "server" }
  /** By a secret for people; `name` is unique within the application. */
  | { kind: "person"; name: string; role: Role }
  | { kind: "device"; device: DeviceId };

/**
 * The invitation token for an Idempotency-Key (contract section 12): derived under the application's device key, so that
 * it need not be stored.
 */
export async function deriveInvitationToken(
  custody: Custody,
  application: Application,
  inviter: Inviter,
  idempotencyKey: string,
): Promise<string> {
  const key = await custody.deviceKey(application.id, application.deviceKey);
  const caller = inviter.kind === "device" ? inviter.device : inviter.kind === "person" ? inviter.name : "";
  const parts = ["invitation-token", inviter.kind, caller, idempotencyKey];
  // The first text that has the form of a token, so a repeated request finds the same one.
  for (let counter = 0; ; counter++) {
    const token = invitationTokenOf(await deriveBytes(key, ...parts, String(counter)));
    if (token !== null) return token;
  }
}
