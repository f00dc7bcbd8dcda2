import { exportJWK, generateKeyPair } from "jose";
import { makeDeviceKey, makeSecret, makeSigningKey, type Sealer } from "../../../src/shared/credentials.ts";
import { newApplicationId } from "../../../src/shared/identifiers.ts";
import type { SideDatabase } from "./side.ts";

/** An application as its clients know it. */
export interface BenchApplication {
  id: string;
  secret: string;
  /** SPKI DER, base64. */
  publicKey: string;
}

/** The applications of one side. */
export interface Applications {
  withWebhook: BenchApplication[];
  withoutWebhook: BenchApplication[];
}

const APPLICATIONS = 10;
/** Badges that every application has before anything is measured: an empty table would hide what grows with it. */
const BADGES = 2000;
const RANGE = 10_000_000;
const FIRST_NUMBER = 1_000_000_000;
/** Numbers of those badges: in no application's range, so that none is handed out again. */
const FIRST_OLD_NUMBER = 500_000_000;

/** Makes an application with its row, its keys and its first badges. @param place counts the applications of a side */
export type ApplicationMaker = (place: number, webhookUrl: string | null) => Promise<BenchApplication>;

export async function createApplications(make: ApplicationMaker, webhookUrl: string): Promise<Applications> {
  const applications: Applications = { withWebhook: [], withoutWebhook: [] };
  for (let place = 0; place < APPLICATIONS; place++) {
    applications.withWebhook.push(await make(2 * place, webhookUrl));
    applications.withoutWebhook.push(await make(2 * place + 1, null));
  }
  return applications;
}

const METADATA = JSON.stringify({ deviceModel: "Pixel 9", os: "Android", osVersion: "16", sdkVersion: "3.2.1" });

/** Numbers 1 to `BADGES` as a table. */
const PLACES = `WITH RECURSIVE places (place) AS (SELECT 1 UNION ALL SELECT place + 1 FROM places WHERE place < ${BADGES})`;

/** On the service's own tables, for the service and the floor. */
export function serviceApplications({ prepare, batch }: SideDatabase, sealer: Sealer): ApplicationMaker {
  return async (place, webhookUrl) => {
    const id = newApplicationId();
    const { row, secret } = await makeSecret(sealer, id);
    const key = await makeSigningKey(sealer, id);
    const deviceKey = await makeDeviceKey(sealer, id);
    const now = Date.now();
    const first = FIRST_NUMBER + place * RANGE;
    await batch([
      prepare(
        `INSERT INTO application (id, name, first_number, last_number, sealed_device_key, sealing_version, webhook_url,
           created_at) VALUES (?, 'Benchmark', ?, ?, ?, ?, ?, ?)`,
      ).bind(id, first, first + RANGE - 1, deviceKey, sealer.version, webhookUrl, now),
      prepare(
        `INSERT INTO application_secret (id, application_id, role, digest, sealed, sealing_version, created_at)
         VALUES (?, ?, 'current', ?, ?, ?, ?)`,
      ).bind(row.id, id, row.digest, row.sealed, row.sealingVersion, now),
      prepare(
        `INSERT INTO signing_key (application_id, kid, public_key, sealed, sealing_version, created_at)
         VALUES (?, ?, ?, ?, ?, ?)`,
      ).bind(id, key.kid, key.publicKey, key.sealed, key.sealingVersion, now),
      prepare(
        `${PLACES} INSERT INTO badge (number, application_id, device, user_id, metadata, signing_key_id, event_id,
           position, turn, issued_at)
         SELECT ?1 + place, ?2, 'old-device-' || place, 'old-user-' || place, ?3, 1, 'evt_' || place, place, 1, ?4 FROM places`,
      ).bind(FIRST_OLD_NUMBER + place * BADGES, id, METADATA, now),
    ]);
    return { id, secret, publicKey: key.publicKey };
  };
}

/** On the peer's tables (test/long-runs/bench/peer/schema.sql). */
export function peerApplications({ prepare, batch }: SideDatabase): ApplicationMaker {
  return async (place, webhookUrl) => {
    const id = newApplicationId();
    const secret = crypto.randomUUID();
    const pair = await generateKeyPair("ES256", { extractable: true });
    const privateKey = JSON.stringify(await exportJWK(pair.privateKey));
    const publicKey = Buffer.from(await crypto.subtle.exportKey("spki", pair.publicKey)).toString("base64");
    await batch([
      prepare("INSERT INTO application VALUES (?, ?, ?, ?, ?)").bind(id, secret, webhookUrl, privateKey, publicKey),
      prepare("INSERT INTO counter VALUES (?, ?)").bind(id, FIRST_NUMBER + place * RANGE),
      prepare(
        `${PLACES} INSERT INTO badge (number, application_id, udid, user_id, metadata, created_at)
         SELECT ?1 + place, ?2, 'old-device-' || place, 'old-user-' || place, ?3, ?4 FROM places`,
      ).bind(FIRST_OLD_NUMBER + place * BADGES, id, METADATA, Date.now()),
    ]);
    return { id, secret, publicKey };
  };
}
