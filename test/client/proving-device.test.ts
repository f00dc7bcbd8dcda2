import { base64url, calculateJwkThumbprint } from "jose";
import { beforeAll, beforeEach, describe, expect, it } from "vitest";
import type { DeviceClient, Fetch, ProofKey } from "../../src/client/index.ts";
import { webCryptoProofKey } from "../../src/client/index.ts";
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
  utf8,
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

async function sha256(text: string): Promise<string> {
  return base64url.encode(new Uint8Array(await crypto.subtle.digest("SHA-256", utf8(text))));
}

const offered = async () => ({ "dpop-nonce": await makeNonce(NONCE_KEY, now) });

/** Grants a request whose proof passes the service's own check, by the service's clock. */
const demanding: Fetch = async (url, { method, headers, body = "" }) => {
  const { applicationid: applicationId = "", udid = "", dpop = "" } = headers;
  const device = { applicationId, udid: udid.trim() };
  const call = { method, urls: [url], ...device, bodyHash: await sha256(body), now, nonceKey: NONCE_KEY };
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

const CALLS: [string, (phone: DeviceClient) => Promise<unknown>][] = [
  ["requestBadge", (phone) => phone.requestBadge({ userId: "älice" })],
  ["sign", (phone) => phone.sign("aGVsbG8=")],
];

/** The claims of each request's proof. */
const proofsOf = ({ requests }: ReturnType<typeof phoneOf>) =>
  requests.map(({ init }) => JSON.parse(atob(init.headers.dpop?.split(".")[1] ?? "")));

describe.each(CALLS)("%s of a device client with a key (contract section 15)", (_name, call) => {
  it("every call carries a proof that passes the service's check, also under a base URL with a path", async () => {
    const made = phoneOf();
    await call(made.phone);
    expect(made.requests).toHaveLength(1);
    const behindProxy = fakeService(demanding);
    const baseUrl = `${BASE_URL}/badges/`;
    await call(device(APPLICATION, UDID, { ...behindProxy.options, now: () => now, proofKey: key, baseUrl }));
    expect(behindProxy.requests).toHaveLength(1);
  });

  it("a call carries another proof on every try, with the time of that try", async () => {
    const made = phoneOf([NO_NETWORK, RATE_LIMITED, UNAVAILABLE, demanding]);
    await call(made.phone);
    const proofs = proofsOf(made);
    expect(new Set(proofs.map(({ jti }) => jti)).size).toBe(4);
    expect(proofs.map(({ iat }) => iat - SERVICE_START / 1000)).toEqual([0, 0, 60, 63]);
    expect(made.waits).toEqual([249, 60_499, 2_999]);
  });

  it.each([
    ["ahead", 86_400_000],
    ["behind", -86_400_000],
  ])(
    "a call with a proof works on a phone whose clock is a day %s, at once and without counting as a retry",
    async (_name, offset) => {
      phoneIsAhead = offset;
      const made = phoneOf([demanding], { maxTries: 1 });
      await call(made.phone);
      expect(made.requests).toHaveLength(2);
      expect(made.waits).toEqual([]);
      const [first, second] = proofsOf(made);
      expect(first.nonce).toBeUndefined();
      expect(second.nonce).toMatch(/./);
      expect(second.jti).not.toBe(first.jti);
    },
  );

  it("a device client keeps the nonce for later calls while it lasts, and no longer", async () => {
    phoneIsAhead = 86_400_000;
    const made = phoneOf();
    await call(made.phone);
    now += 239_000;
    await call(made.phone);
    expect(made.requests).toHaveLength(3);
    phoneIsAhead = 0;
    now += 61_000;
    await call(made.phone);
    expect(proofsOf(made).map(({ nonce }) => nonce !== undefined)).toEqual([false, true, true, false]);
  });

  it("a device client takes the new nonce when the phone's clock stood still and the old one has become stale", async () => {
    phoneIsAhead = 86_400_000;
    const made = phoneOf();
    await call(made.phone);
    now += 600_000;
    phoneIsAhead -= 600_000;
    await call(made.phone);
    const nonces = proofsOf(made).map(({ nonce }) => nonce);
    expect(nonces).toEqual([undefined, nonces[1], nonces[1], expect.any(String)]);
    expect(nonces[3]).not.toBe(nonces[1]);
  });

  it("a device client with a key follows a new nonce on a later try, too", async () => {
    const useNonce = async () => refusal(401, "USE_DPOP_NONCE", await offered());
    const made = phoneOf([useNonce, NO_NETWORK, useNonce, demanding]);
    await call(made.phone);
    expect(made.requests).toHaveLength(4);
    expect(made.waits).toEqual([249]);
  });

  it("a device client with a key follows USE_DPOP_NONCE once, and then fails", async () => {
    const made = phoneOf([async () => refusal(401, "USE_DPOP_NONCE", await offered())]);
    await expect(call(made.phone)).rejects.toThrow("401 USE_DPOP_NONCE");
    expect(made.requests).toHaveLength(2);
    expect(made.waits).toEqual([]);
  });

  it.each([
    ["INVALID_PROOF", refusal(401, "INVALID_PROOF")],
    ["INVALID_PROOF with a nonce", refusal(401, "INVALID_PROOF", { "dpop-nonce": "n" })],
    ["USE_DPOP_NONCE without a nonce", refusal(401, "USE_DPOP_NONCE")],
    ["another status than 401", refusal(400, "USE_DPOP_NONCE", { "dpop-nonce": "n" })],
  ])("a device client with a key never repeats %s", async (_name, response) => {
    const made = phoneOf([response, demanding]);
    await expect(call(made.phone)).rejects.toMatchObject({ name: "BadgeServiceError", status: response.status });
    expect(made.requests).toHaveLength(1);
    // Nor has it learnt a nonce.
    await call(made.phone);
    expect(proofsOf(made)[1].nonce).toBeUndefined();
  });

  it("a proof has the udid as it arrives, without white space around it", async () => {
    const made = phoneOf([demanding], { udid: ` ${UDID}\t` });
    await call(made.phone);
    expect(made.requests).toHaveLength(1);
  });

  it("a device client sends nothing when the key does not sign, and does not ask it again", async () => {
    let asked = 0;
    const sign = async () => {
      asked++;
      throw new Error("the user declined");
    };
    const made = phoneOf([demanding], { proofKey: { publicJwk: key.publicJwk, sign } });
    await expect(call(made.phone)).rejects.toThrow("the user declined");
    expect(asked).toBe(1);
    expect(made.requests).toEqual([]);
  });

  it("a device client has no proof without a key", async () => {
    const grant: Fetch = async (url) => (url.endsWith("/sign") ? SIGNATURE : EXISTING_BADGE).clone();
    const fake = fakeService(grant);
    await call(device(APPLICATION, UDID, fake.options));
    expect(fake.requests[0]?.init.headers).not.toHaveProperty("dpop");
  });
});

it("a call that is aborted while the key signs is not sent", async () => {
  const controller = new AbortController();
  const sign: ProofKey["sign"] = (bytes) => {
    controller.abort(new Error("enough"));
    return key.sign(bytes);
  };
  const made = phoneOf([demanding], { proofKey: { publicJwk: key.publicJwk, sign } });
  await expect(made.phone.sign("aGVsbG8=", { signal: controller.signal })).rejects.toThrow("enough");
  expect(made.requests).toEqual([]);
});

it("one client's nonce is no other's: nothing is stored", async () => {
  phoneIsAhead = 86_400_000;
  for (const made of [phoneOf(), phoneOf()]) {
    await made.phone.sign("aGVsbG8=");
    expect(made.requests).toHaveLength(2);
  }
});

describe("the badge that signs (contract section 15)", () => {
  const badge = (badgeId: string) => Response.json({ badgeId });
  const bodies = ({ requests }: ReturnType<typeof phoneOf>) =>
    requests.filter(({ url }) => url.endsWith("/sign")).map(({ init }) => JSON.parse(init.body ?? ""));
  const base64 = "aGVsbG8=";

  it("the badge of the last login signs, with a key and without", async () => {
    for (const changes of [{}, { proofKey: undefined }]) {
      const made = phoneOf([badge("7"), SIGNATURE, badge("8"), SIGNATURE], changes);
      await made.phone.requestBadge({ userId: "alice" });
      await made.phone.sign(base64);
      await made.phone.requestBadge({ userId: "bob" });
      await made.phone.sign(base64);
      expect(bodies(made)).toEqual([
        { base64, badgeId: "7" },
        { base64, badgeId: "8" },
      ]);
    }
  });

  it("the badge that the app names signs, for that call", async () => {
    const made = phoneOf([badge("7"), SIGNATURE]);
    await made.phone.requestBadge({ userId: "alice" });
    await made.phone.sign(base64, { badgeId: "9" });
    await made.phone.sign(base64);
    expect(bodies(made)).toEqual([
      { base64, badgeId: "9" },
      { base64, badgeId: "7" },
    ]);
  });

  it("after a login that failed, the badge of the last login still signs", async () => {
    const made = phoneOf([badge("7"), refusal(403, "REVOKED_BADGE"), SIGNATURE]);
    await made.phone.requestBadge({ userId: "alice" });
    expect(await failureOf(made.phone.requestBadge({ userId: "bob" }))).toMatchObject({ code: "REVOKED_BADGE" });
    await made.phone.sign(base64);
    expect(bodies(made)).toEqual([{ base64, badgeId: "7" }]);
  });

  it("before the first login the service chooses the badge that signs", async () => {
    const made = phoneOf([SIGNATURE]);
    await made.phone.sign(base64);
    expect(bodies(made)).toEqual([{ base64 }]);
  });
});
