import { base64Url, invitationTokenOf } from "../../shared/identifiers.ts";
import type { Custody } from "../keys/custody.ts";
import type { Application } from "./registry.ts";

/** 128 bits: with four billion devices in an application the chance that any two collide is about 2^-65. */
const DEVICE_BYTES = 16;

const encoder = new TextEncoder();

/**
 * The ID of a device in storage: HMAC-SHA-256 of its udid under a key that only the Worker can open. Anybody with the
 * udid can get signatures, so a copy of the storage must not reveal it (contract section 9).
 */
export async function deviceOf(custody: Custody, application: Application, udid: string): Promise<string> {
  const key = await custody.deviceKey(application.id, application.deviceKey);
  const mac = await crypto.subtle.sign("HMAC", key, encoder.encode(udid));
  return base64Url(new Uint8Array(mac, 0, DEVICE_BYTES));
}

/**
 * 32 bytes for one purpose, derived under the application's device key, so that they need not be stored. No udid begins with
 * a zero byte, so no device ID reveals a part of them.
 *
 * @param parts the purpose first
 */
export async function deriveBytes(
  custody: Custody,
  application: Application,
  parts: readonly [purpose: string, ...string[]],
): Promise<Uint8Array> {
  const key = await custody.deviceKey(application.id, application.deviceKey);
  const text = parts.map((part) => `${part.length}:${part}`).join("");
  return new Uint8Array(await crypto.subtle.sign("HMAC", key, encoder.encode(`\0${text}`)));
}

/**
 * The invitation token of an Idempotency-Key (contract section 12).
 *
 * @param device of whoever calls without the application's secret; null: the application's server
 */
export async function deriveInvitationToken(
  custody: Custody,
  application: Application,
  device: string | null,
  idempotencyKey: string,
): Promise<string> {
  const caller = device === null ? "server" : "device";
  return invitationTokenOf(
    await deriveBytes(custody, application, ["invitation-token", caller, device ?? "", idempotencyKey]),
  );
}
