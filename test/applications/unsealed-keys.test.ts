import { env } from "cloudflare:workers";
import { afterEach, describe, expect, it, vi } from "vitest";
import type { ApplicationId } from "../../src/shared/identifiers.ts";
import { applicationId } from "../../src/shared/identifiers.ts";
import type { SealLabel } from "../../src/shared/sealing.ts";
import { SealingKeys } from "../../src/worker/keys/sealing-keys.ts";
import { type Sealed, UnsealedKeys } from "../../src/worker/keys/unsealed-keys.ts";
import { Unavailable } from "../../src/worker/platform.ts";
import { useQuietLog } from "../invitations/support/log.ts";
import { createApplication, type TestApplication, testSealer } from "../support/application.ts";
import { runSql } from "../support/home.ts";
import { call, requestBadge, sign } from "../support/http.ts";

useQuietLog();

afterEach(() => {
  vi.useRealTimers();
});

/** A place for a sealed value, and how a unsealedKeys opens what stands there. */
interface Place {
  label: SealLabel;
  open(unsealedKeys: UnsealedKeys, sealed: Sealed): Promise<CryptoKey>;
}

const signing = (applicationId: ApplicationId, id: string): Place => ({
  label: { purpose: "signing-key", applicationId, id },
  open: (unsealedKeys, sealed) => unsealedKeys.signingKey(applicationId, id, sealed),
});

const device = (applicationId: ApplicationId): Place => ({
  label: { purpose: "device-key", applicationId, id: applicationId },
  open: (unsealedKeys, sealed) => unsealedKeys.rootKey(applicationId, sealed),
});

const webhook = (applicationId: ApplicationId, id: string, hash: "SHA-1" | "SHA-256"): Place => ({
  label: { purpose: "application-secret", applicationId, id },
  open: (unsealedKeys, sealed) => unsealedKeys.webhookKey(applicationId, id, sealed, hash),
});

const A = applicationId.parse("app_a");
const B = applicationId.parse("app_b");

const PLACES: Record<string, Place> = {
  "a signing key": signing(A, "key_a"),
  "a signing key of another ID": signing(A, "key_b"),
  "another application's signing key of the same ID": signing(B, "key_a"),
  "a root key": device(A),
  "another application's root key": device(B),
  "a secret for HMAC-SHA1": webhook(A, "sec_a", "SHA-1"),
  "a secret for HMAC-SHA256": webhook(A, "sec_a", "SHA-256"),
  "another application's secret for HMAC-SHA1": webhook(B, "sec_a", "SHA-1"),
  "a secret of another ID": webhook(A, "sec_b", "SHA-256"),
  "another application's secret of the same ID": webhook(B, "sec_a", "SHA-256"),
  "a secret with the ID of the application": webhook(A, "app_a", "SHA-256"),
};

async function plaintextFor({ label }: Place): Promise<BufferSource> {
  if (label.purpose !== "signing-key") return new TextEncoder().encode("bdss_a-secret-of-an-application");
  const pair = await crypto.subtle.generateKey({ name: "ECDSA", namedCurve: "P-256" }, true, ["sign", "verify"]);
  if (!("privateKey" in pair)) throw new Error("no key pair");
  const der = await crypto.subtle.exportKey("pkcs8", pair.privateKey);
  if (!(der instanceof ArrayBuffer)) throw new Error("no DER");
  return der;
}

describe("an isolate that has opened a sealed value (contract section 9)", () => {
  it.each(Object.entries(PLACES))("opens %s nowhere but in its own place", async (_, home) => {
    const sealer = await testSealer();
    const sealed = { sealed: await sealer.seal(home.label, await plaintextFor(home)), sealingVersion: sealer.version };
    const unsealedKeys = new UnsealedKeys(new SealingKeys(env));
    const opened = await home.open(unsealedKeys, sealed);
    for (const [name, place] of Object.entries(PLACES)) {
      const isHome = JSON.stringify(place.label) === JSON.stringify(home.label);
      if (isHome) continue;
      await expect(place.open(unsealedKeys, sealed), name).rejects.toThrow(Unavailable);
    }
    expect(await home.open(unsealedKeys, sealed)).toBe(opened);
  });
});

describe("a sealed value that was copied into another application's row (contract section 9)", () => {
  /** Two applications, whose keys this isolate has opened: each has a badge and has signed with it. */
  async function warmApplications(): Promise<[TestApplication, TestApplication]> {
    const applications = [await createApplication(), await createApplication()] as const;
    for (const application of applications) {
      expect((await requestBadge(application, "phone", { userId: "user" })).status).toBe(201);
      expect((await sign(application, "phone", { base64: "AAAA" })).status).toBe(200);
    }
    return [...applications];
  }

  const run = (sql: string, ...parameters: string[]) => runSql(sql, ...parameters);

  const UNAVAILABLE = { status: 503, body: { error: "UNAVAILABLE" } };

  it("a signing key of another application's row signs nothing: 503 UNAVAILABLE", async () => {
    const [victim, other] = await warmApplications();
    await run(
      `UPDATE signing_key SET sealed = (SELECT sealed FROM signing_key WHERE application_id = ?2) WHERE application_id = ?1`,
      victim.id,
      other.id,
    );
    vi.setSystemTime(Date.now() + 30_000);
    expect(await sign(victim, "phone", { base64: "AAAA" })).toMatchObject(UNAVAILABLE);
    expect((await sign(other, "phone", { base64: "AAAA" })).status).toBe(200);
  });

  it("a root key of another application's row names no device: 503 UNAVAILABLE, and no badge is issued", async () => {
    const [victim, other] = await warmApplications();
    await run(
      `UPDATE application SET sealed_root_key = (SELECT sealed_root_key FROM application WHERE id = ?2) WHERE id = ?1`,
      victim.id,
      other.id,
    );
    vi.setSystemTime(Date.now() + 30_000);
    expect(await requestBadge(victim, "phone", { userId: "user" })).toMatchObject(UNAVAILABLE);
    expect(await sign(victim, "phone", { base64: "AAAA" })).toMatchObject(UNAVAILABLE);
    const headers = { applicationid: victim.id, applicationsecret: victim.secret };
    expect((await call("GET", "/v1/badges", { headers })).body.badges).toHaveLength(1);
  });
});
