import { base64Url } from "../../shared/identifiers.ts";
import type { Custody } from "../keys/custody.ts";
import type { Application } from "./registry.ts";

/** 128 bits: two devices of one application collide with a chance of 2^-64 at four billion devices. */
const DEVICE_BYTES = 16;

const encoder = new TextEncoder();

/**
 * The name of a device in every storage: HMAC-SHA-256 of its udid under a key that only the Worker can open. With the
 * udid anybody can ask for a signature, so a copy of the storage must not contain or reveal it (contract section 9).
 */
export async function deviceOf(custody: Custody, application: Application, udid: string): Promise<string> {
  const key = await custody.deviceKey(application.id, application.deviceKey);
  const mac = await crypto.subtle.sign("HMAC", key, encoder.encode(udid));
  return base64Url(new Uint8Array(mac, 0, DEVICE_BYTES));
}
