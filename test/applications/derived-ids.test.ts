import { env } from "cloudflare:workers";
import { describe, expect, it } from "vitest";
import { applicationId, deviceId } from "../../src/shared/identifiers.ts";
import {
  deriveInvitationToken,
  hashUdid,
  hashUserId,
  type Inviter,
} from "../../src/worker/applications/derived-ids.ts";
import { SealingKeys } from "../../src/worker/keys/sealing-keys.ts";
import { UnsealedKeys } from "../../src/worker/keys/unsealed-keys.ts";
import { createApplication, testSealer } from "../support/application.ts";
import { requestBadge } from "../support/http.ts";
import { badgeRows } from "../support/rows.ts";

it("a device's name in storage is 128 bits without the udid, the same for a udid, and another in another application (contract section 9)", async () => {
  const [first, second] = [await createApplication(), await createApplication()];
  for (const userId of ["alice", "bob"]) await requestBadge(first, "phone", { userId });
  await requestBadge(first, "tablet", { userId: "alice" });
  await requestBadge(second, "phone", { userId: "alice" });
  const rows = [...(await badgeRows(first)), ...(await badgeRows(second))];
  const names = rows.map(({ device }) => device ?? "");
  // Base64url of 16 bytes: with fewer, two devices of a large application would share badges some day.
  for (const name of names) expect(name).toMatch(/^[\w-]{22}$/);
  expect(names).toHaveLength(4);
  expect(new Set(names).size).toBe(3);
  expect(JSON.stringify(rows)).not.toContain("phone");
});

/** Rows keep what an earlier release derived, and two releases serve the same callers during a deployment. */
describe("what is derived from a root key is the same in every release (contract sections 9, 12 and 24)", () => {
  const unsealedKeys = new UnsealedKeys(new SealingKeys(env));

  async function applicationWithKnownKey() {
    const id = applicationId.parse("app_0123456789abcdefghjk");
    const sealer = await testSealer();
    const sealed = await sealer.seal({ purpose: "device-key", applicationId: id, id }, new Uint8Array(32).fill(7));
    return { id, rootKey: { sealed, sealingVersion: sealer.version } };
  }

  it("a device and an erased user keep the names under which they are stored", async () => {
    const application = await applicationWithKnownKey();
    expect(await hashUdid(unsealedKeys, application, "phone")).toBe("Fp-ZN_wRpx7SwTvaiBdrEA");
    const user = await hashUserId(unsealedKeys, application, "alice");
    expect(user).toBe("eySnR5BXxH9OrFdHRs_7LrTaTUog3ReBpVHjs9nfmeU");
  });

  it.each<[Inviter, key: string, token: string]>([
    [{ kind: "server" }, "visit 1", "inv_PUYREYoAIEVNNqN1yFFy6jmFFiCOiHDu"],
    // The first text for this key has only one digit.
    [{ kind: "server" }, "visit 51", "inv_ckPgjVQb4-O98Owj_9Y1lTTnf1GeXWW9"],
    [{ kind: "person", name: "Ann", role: "operator" }, "visit 1", "inv_A9G-bB9cTROQOYnPI1zVZU34EGkVh9ch"],
    [{ kind: "device", device: deviceId.parse("A".repeat(22)) }, "visit 1", "inv_-tR2u7FdEsqJ2Nlkh3sSuP11zWmHqbcj"],
  ])("%j keeps the token of an Idempotency-Key: %s", async (inviter, key, token) => {
    expect(await deriveInvitationToken(unsealedKeys, await applicationWithKnownKey(), inviter, key)).toBe(token);
  });
});
