import { calculateJwkThumbprint } from "jose";
import { beforeAll, beforeEach, describe, expect, it } from "vitest";
import type { DeviceClient, Fetch, ProofKey } from "../../src/client/index.ts";
import { webCryptoProofKey } from "../../src/client/index.ts";
import { digestOf } from "../../src/shared/identifiers.ts";
import { makeNonce } from "../../src/worker/dpop/nonce.ts";
import { verifyDpopProof } from "../../src/worker/dpop/verify-proof.ts";
import { KEY, NONCE_KEY, UDID } from "../dpop/support.ts";
import {
  BASE_URL,
  device,
  EXISTING_BADGE,
  failureOf,
  fakeService,
  NO_NETWORK,
  RATE_LIMITED,
  refusal,
  SIGNATURE,
  type Step,
  UNAVAILABLE,
} from "./support.ts";

const APPLICATION = { id: "app_0123456789abcdefghjk" };
const SERVICE_START = 1_800_000_000_000;

/** Milliseconds since 1970-01-01 UTC, by the service's clock; the phone's is off by `phoneIsAhead`. */
let now = SERVICE_START;
let phoneIsAhead = 0;
let key: ProofKey;

beforeAll(async () => {
  key = await webCryptoProofKey(KEY.pair);
});
beforeEach(() => {
  now = SERVICE_START;
  phoneIsAhead = 0;
});

const offered = async () => ({ "dpop-nonce": await makeNonce(NONCE_KEY, now) });

/** Grants a request whose proof passes the service's own check, by the service's clock. */
const demanding: Fetch = async (url, { method, headers, body = "" }) => {
  const { applicationid: applicationId = "", udid = "", dpop = "" } = headers;
  const device = { applicationId, udid: udid.trim() };
  const call = { method, urls: [url], ...device, bodyHash: await digestOf(body), now, nonceKey: NONCE_KEY };
  const result = await verifyDpopProof(dpop, call);
  if (!result.ok) return refusal(401, result.code, result.code === "USE_DPOP_NONCE" ? await offered() : {});
  expect(result.thumbprint).toBe(await calculateJwkThumbprint(KEY.jwk));
  return (url.endsWith("/sign") ? SIGNATURE : EXISTING_BADGE).clone();
};

function phoneOf(
  steps: [Step, ...Step[]] = [demanding],
  { udid = UDID, ...changes }: { udid?: string; proofKey?: ProofKey | undefined; maxTries?: number } = {},
) {
  const fake = fakeService(...steps);
  const options = {
    ...fake.options,
    now: () => now + phoneIsAhead,
    sleep: async (milliseconds: number) => {
      fake.waits.push(milliseconds);
      now += milliseconds;
    },
  };
  return { phone: device(APPLICATION, udid, { ...options, proofKey: key, ...changes }), ...fake };
}

const sign = ({ phone }: { phone: DeviceClient }) => phone.sign("aGVsbG8=");

const proofsOf = ({ requests }: ReturnType<typeof phoneOf>) =>
  requests.map(({ init }) => JSON.parse(atob(init.headers.dpop?.split(".")[1] ?? "")));

describe("a device client with a key (contract section 15)", () => {
  it("every call carries a proof that passes the service's check, also under a base URL with a path", async () => {
    const made = phoneOf();
    await made.phone.requestBadge({ userId: "älice" });
    await sign(made);
    expect(made.requests).toHaveLength(2);
    const behindProxy = fakeService(demanding);
    const baseUrl = `${BASE_URL}/badges/`;
    await sign({
      phone: device(APPLICATION, UDID, { ...behindProxy.options, now: () => now, proofKey: key, baseUrl }),
    });
    expect(behindProxy.requests).toHaveLength(1);
  });

  it("a call carries another proof on every try, with the time of that try", async () => {
    const made = phoneOf([NO_NETWORK, RATE_LIMITED, UNAVAILABLE, demanding]);
    await sign(made);
    const proofs = proofsOf(made);
    expect(new Set(proofs.map(({ jti }) => jti)).size).toBe(4);
    expect(proofs.map(({ iat }) => iat - SERVICE_START / 1000)).toEqual([0, 0, 60, 63]);
    expect(made.waits).toEqual([249, 60_499, 2_999]);
  });

  it("a call with a proof works on a phone whose clock is a day behind, at once and without counting as a retry", async () => {
    phoneIsAhead = -86_400_000;
    const made = phoneOf([demanding], { maxTries: 1 });
    await sign(made);
    expect(made.requests).toHaveLength(2);
    expect(made.waits).toEqual([]);
    const [first, second] = proofsOf(made);
    expect(first.nonce).toBeUndefined();
    expect(second.nonce).toMatch(/./);
    expect(second.jti).not.toBe(first.jti);
  });

  it("a device client keeps the nonce for later calls while it lasts, and no longer", async () => {
    phoneIsAhead = 86_400_000;
    const made = phoneOf();
    await sign(made);
    now += 299_999;
    await sign(made);
    expect(made.requests).toHaveLength(3);
    now += 1;
    await sign(made);
    phoneIsAhead = 0;
    await sign(made);
    const haveNonce = proofsOf(made).map(({ nonce }) => nonce !== undefined);
    expect(haveNonce).toEqual([false, true, true, false, true, false]);
  });

  it("a device client with a key follows a new nonce on a later try, too", async () => {
    const useNonce = async () => refusal(401, "USE_DPOP_NONCE", await offered());
    const made = phoneOf([useNonce, NO_NETWORK, useNonce, demanding]);
    await sign(made);
    expect(made.requests).toHaveLength(4);
    expect(made.waits).toEqual([249]);
  });

  it("a device client with a key follows USE_DPOP_NONCE once, and then fails", async () => {
    const made = phoneOf([async () => refusal(401, "USE_DPOP_NONCE", await offered())]);
    await expect(sign(made)).rejects.toThrow("401 USE_DPOP_NONCE");
    expect(made.requests).toHaveLength(2);
    expect(made.waits).toEqual([]);
  });

  it("a device client with a key never repeats another refusal than USE_DPOP_NONCE with a nonce, and learns no nonce from it", async () => {
    for (const response of [
      refusal(401, "INVALID_PROOF", { "dpop-nonce": "n" }),
      refusal(401, "USE_DPOP_NONCE"),
      refusal(400, "USE_DPOP_NONCE", { "dpop-nonce": "n" }),
    ]) {
      const made = phoneOf([response, demanding]);
      await expect(sign(made)).rejects.toMatchObject({ name: "BadgeServiceError", status: response.status });
      expect(made.requests).toHaveLength(1);
      await sign(made);
      expect(proofsOf(made)[1].nonce).toBeUndefined();
    }
  });

  it("a proof has the udid as it arrives, without white space around it", async () => {
    const made = phoneOf([demanding], { udid: ` ${UDID}\t` });
    await sign(made);
    expect(made.requests).toHaveLength(1);
  });

  it("a device client sends nothing when the key does not sign, and does not ask it again", async () => {
    let asked = 0;
    const decline = async () => {
      asked++;
      throw new Error("the user declined");
    };
    const made = phoneOf([demanding], { proofKey: { publicJwk: key.publicJwk, sign: decline } });
    await expect(sign(made)).rejects.toThrow("the user declined");
    expect(asked).toBe(1);
    expect(made.requests).toEqual([]);
  });
});

const badge = (badgeId: string) => Response.json({ badgeId });
const bodies = ({ requests }: ReturnType<typeof phoneOf>) =>
  requests.filter(({ url }) => url.endsWith("/sign")).map(({ init }) => JSON.parse(init.body ?? ""));
const base64 = "aGVsbG8=";

it("the badge of the login that began last signs, whichever response comes last", async () => {
  const late = Promise.withResolvers<Response>();
  const made = phoneOf([() => late.promise, badge("8"), SIGNATURE]);
  const first = made.phone.requestBadge({ userId: "alice" });
  await made.phone.requestBadge({ userId: "bob" });
  late.resolve(badge("7"));
  expect(await first).toMatchObject({ badgeId: "7" });
  await made.phone.sign(base64);
  expect(bodies(made)).toEqual([{ base64, badgeId: "8" }]);
});

it("the badge of the last login signs, or the one that the app names for a call; before the first login the service chooses (contract section 15)", async () => {
  for (const changes of [{}, { proofKey: undefined }]) {
    const refused = refusal(403, "REVOKED_BADGE");
    const made = phoneOf([SIGNATURE, badge("7"), SIGNATURE, refused, SIGNATURE, badge("8"), SIGNATURE], changes);
    await made.phone.sign(base64);
    await made.phone.requestBadge({ userId: "alice" });
    await made.phone.sign(base64, { badgeId: "9" });
    expect(await failureOf(made.phone.requestBadge({ userId: "bob" }))).toMatchObject({ code: "REVOKED_BADGE" });
    await made.phone.sign(base64);
    await made.phone.requestBadge({ userId: "bob" });
    await made.phone.sign(base64);
    expect(bodies(made)).toEqual([undefined, "9", "7", "8"].map((badgeId) => ({ base64, badgeId })));
  }
});
