import { describe, expect, it, vi } from "vitest";
import { createDpopProof } from "../../src/client/index.ts";
import { createApplication } from "../support/application.ts";
import { countedLimit, sendWith, UNLIMITED } from "../support/bindings.ts";
import { useStandingClock } from "../support/clock.ts";
import { A_SIGNATURE, BADGE, SIGN } from "../support/http.ts";
import { log } from "../support/log.ts";
import { boundPhone, expectInvalidProof, newPhone, outcome, type Phone } from "./support.ts";

const LOGIN = JSON.stringify({ userId: "alice" });

useStandingClock();

/** A proof that the phone made by a clock that is so many seconds off. */
async function proveAt(phone: Phone, seconds: number, body = LOGIN, nonce?: string): Promise<string> {
  const now = Date.now();
  vi.setSystemTime(now + seconds * 1000);
  const proof = await phone.prove(BADGE, body, nonce);
  vi.setSystemTime(now);
  return proof;
}

// Everything else that can be wrong with a proof: test/dpop.
it("a proof is fresh within 60 s of the service's clock, else with the nonce of the response, on both calls, for 300 s (contract section 15)", async () => {
  vi.setSystemTime(1_800_000_000_999);
  const application = await createApplication();
  const { phone, badgeId } = await boundPhone(application);
  for (const seconds of [-60, 60]) {
    const answer = await phone.send(BADGE, LOGIN, { DPoP: await proveAt(phone, seconds) });
    expect(outcome(answer), String(seconds)).toBe(`200 ${badgeId}`);
    expect(answer.headers.has("dpop-nonce")).toBe(false);
  }
  let nonce = "";
  for (const seconds of [-61, 61, 86_400]) {
    const asked = await phone.send(BADGE, LOGIN, { DPoP: await proveAt(phone, seconds) });
    expect([asked.status, asked.body]).toEqual([401, { error: "USE_DPOP_NONCE" }]);
    expect(asked.headers.get("www-authenticate")).toBe('DPoP error="use_dpop_nonce", algs="ES256"');
    nonce = asked.headers.get("dpop-nonce") ?? "";
    const proof = await proveAt(phone, seconds, LOGIN, nonce);
    expect(outcome(await phone.send(BADGE, LOGIN, { DPoP: proof }))).toBe(`200 ${badgeId}`);
  }
  // Staleness is reported before the invitation (section 15).
  const claim = JSON.stringify({ userId: "alice", invitationToken: "inv_unknown" });
  const stale = await phone.send(BADGE, claim, { DPoP: await proveAt(phone, -3600, claim) });
  expect(outcome(stale)).toBe("401 USE_DPOP_NONCE");
  vi.setSystemTime(1_800_000_300_000);
  expect(outcome(await phone.post(BADGE, { userId: "alice" }, nonce))).toBe(`200 ${badgeId}`);
  expect(outcome(await phone.post(SIGN, A_SIGNATURE, nonce))).toBe(`200 ${badgeId}`);
  vi.setSystemTime(1_800_000_301_000);
  const late = await phone.post(BADGE, { userId: "alice" }, nonce);
  expect(outcome(late)).toBe("401 USE_DPOP_NONCE");
  const next = late.headers.get("dpop-nonce") ?? "";
  expect(next).not.toBe(nonce);
  const elsewhere = await newPhone(await createApplication());
  expect(outcome(await elsewhere.post(BADGE, { userId: "alice" }, next))).toBe("401 USE_DPOP_NONCE");
});

describe("a proof is for exactly one request (contract section 15)", () => {
  it("a proof is not for another body, call, udid, application or method, nor with a changed signature, but may be repeated", async () => {
    const [application, another] = [await createApplication(), await createApplication()];
    const phone = await newPhone(application);
    await phone.logInUnproved();
    const DPoP = await phone.prove(BADGE, LOGIN);
    for (const refused of [
      await phone.send(BADGE, '{"userId": "alice"}', { DPoP }),
      await phone.send(SIGN, JSON.stringify(A_SIGNATURE), { DPoP }),
      await phone.send(BADGE, LOGIN, { DPoP, udid: "other" }),
      await phone.send(BADGE, LOGIN, { DPoP, applicationid: another.id }),
      await phone.send(BADGE, LOGIN, { DPoP: `${DPoP.slice(0, -8)}AAAAAAAA` }),
      await phone.send(BADGE, LOGIN, { DPoP: "x".repeat(5000) }),
    ]) {
      expectInvalidProof(refused);
    }
    for (const _ of [1, 2]) expect((await phone.send(BADGE, LOGIN, { DPoP })).status).toBe(200);
  });

  it("two proof headers are none; a blank one counts as absent; a body may be of unknown length", async () => {
    const application = await createApplication();
    const phone = await newPhone(application);
    const headers = new Headers({ applicationid: application.id, udid: phone.udid, DPoP: " \t" });
    const send = (body: BodyInit) =>
      sendWith({}, new Request(`https://badges.example${BADGE}`, { method: "POST", headers, body }));
    expect((await send(LOGIN)).status).toBe(201);
    headers.set("DPoP", await phone.prove(BADGE, LOGIN));
    expect((await send(new Blob([LOGIN]).stream())).status).toBe(200);
    headers.set("content-length", String(LOGIN.length));
    expect((await send(LOGIN)).status).toBe(200);
    headers.append("DPoP", await phone.prove(BADGE, LOGIN));
    expectInvalidProof(await send(LOGIN));
  });

  // Which URLs are the same: test/dpop/url.test.ts.
  it("a proof names the URL that was called, or PUBLIC_URL and the path alone in a deployment", async () => {
    const application = await createApplication();
    const phone = await newPhone(application);
    const [proxied, outside] = ["http://10.0.0.7/v1/badge?a=b", "http://localhost:8787/v1/badge"];
    const local = { PUBLIC_URL: "http://localhost:8787" } as const;
    const deployed = { ...local, ENVIRONMENT: "production" } as const;
    for (const [named, variables, isGranted] of [
      [proxied, { PUBLIC_URL: "" }, true],
      [outside, { PUBLIC_URL: "" }, false],
      [proxied, local, true],
      [outside, local, true],
      [proxied, deployed, false],
      [outside, deployed, true],
      ["https://example.com/door/v1/badge", { ...deployed, PUBLIC_URL: "https://example.com/door/" }, true],
    ] as const) {
      const call = { applicationId: application.id, method: "POST", url: named, udid: phone.udid, body: LOGIN };
      const DPoP = await createDpopProof({ key: phone.key, ...call });
      const headers = { applicationid: application.id, udid: phone.udid, DPoP };
      const answer = await sendWith(variables, new Request(proxied, { method: "POST", headers, body: LOGIN }));
      expect([named, variables, answer.status < 300]).toEqual([named, variables, isGranted]);
    }
  });
});

// In the order of everything that is refused: test/http/errors/order.test.ts.
it("the log has the reason why a proof was refused, never the proof, the udid or the nonce (contract sections 9 and 15)", async () => {
  const application = await createApplication();
  const phone = await newPhone(application, "a udid that nobody may read");
  const proof = await phone.prove(BADGE, LOGIN);
  await phone.send(BADGE, `${LOGIN} `, { DPoP: proof });
  const stale = await phone.send(BADGE, LOGIN, { DPoP: await proveAt(phone, -3600) });
  const reasons = log.lines().flatMap(({ code, detail }) => (detail === undefined ? [] : [`${code} ${detail}`]));
  expect(reasons).toEqual(["INVALID_PROOF wrong-body", "USE_DPOP_NONCE stale-iat"]);
  const secrets = [proof, phone.udid, stale.headers.get("dpop-nonce") ?? proof, await phone.thumbprint()];
  for (const secret of secrets) expect(JSON.stringify(log.lines())).not.toContain(secret);
});

describe("rate limits (contract sections 7 and 15)", () => {
  it("a stranger with the udid, who is over the rate limit, does not lock its owner out, also not one whose proof is stale", async () => {
    const { phone, badgeId } = await boundPhone(await createApplication());
    const thief = await phone.withOtherKey();
    const bindings = { DEVICE_LIMIT: countedLimit(2), CLIENT_IP_LIMIT: UNLIMITED };
    for (const expected of ["401 INVALID_PROOF", "401 INVALID_PROOF", "429 RATE_LIMITED"]) {
      expect(outcome(await phone.logInTo(bindings, { proof: "x" }))).toBe(expected);
      expect(outcome(await thief.logInTo(bindings))).toBe(expected);
    }
    // Without a proof a call counts as with a broken one.
    expect(outcome(await phone.logInTo(bindings, { proof: "" }))).toBe("429 RATE_LIMITED");
    const stale = await phone.logInTo(bindings, { proof: await proveAt(phone, -3600) });
    expect(outcome(stale)).toBe("401 USE_DPOP_NONCE");
    expect(outcome(await phone.logInTo(bindings))).toBe(`200 ${badgeId}`);
  });

  it("a recorded proof that is repeated elsewhere does not keep a phone with a wrong clock from its nonce", async () => {
    const { phone } = await boundPhone(await createApplication());
    const bindings = { DEVICE_LIMIT: countedLimit(1), CLIENT_IP_LIMIT: UNLIMITED };
    const old = async (address: string) =>
      outcome(await phone.logInTo(bindings, { proof: await proveAt(phone, -3600), address }));
    expect([await old("192.0.2.1"), await old("192.0.2.1")]).toEqual(["401 USE_DPOP_NONCE", "429 RATE_LIMITED"]);
    expect(await old("192.0.2.2")).toBe("401 USE_DPOP_NONCE");
  });

  it("limits of an address count a call that would take a fresh number, with a proof too, and no other login with it", async () => {
    const application = await createApplication();
    const limit = countedLimit(2);
    const bindings = { DEVICE_LIMIT: UNLIMITED, CLIENT_IP_LIMIT: limit };
    const logIn = async (phone: Phone) => (await phone.logInTo(bindings, { address: "192.0.2.1" })).status;
    const [one, two, three] = await Promise.all([1, 2, 3].map((place) => newPhone(application, `phone-${place}`)));
    if (!one || !two || !three) expect.fail();
    const statuses = [await logIn(one), await logIn(two), await logIn(three), await logIn(one), await logIn(two)];
    expect(statuses).toEqual([201, 201, 429, 200, 200]);
    expect(limit.keys).toHaveLength(3);
  });

  it("limits of an address count calls without a proof, and apart from them what is refused by INVALID_PROOF, which is no refused secret", async () => {
    const application = await createApplication();
    const { phone } = await boundPhone(application);
    const [thief, another] = [await phone.withOtherKey(), await newPhone(application, "another")];
    const countsOf = async (from: Phone, proof?: string) => {
      const limit = countedLimit();
      const guesses = countedLimit();
      const bindings = { DEVICE_LIMIT: UNLIMITED, CLIENT_IP_LIMIT: limit, REFUSED_CALL_LIMIT: guesses };
      await from.logInTo(bindings, { proof });
      expect(guesses.keys).toEqual([]);
      return limit.keys.map((key) => (key.endsWith(":refused") ? "refused" : "unproved"));
    };
    expect(await countsOf(another, "")).toEqual(["unproved"]);
    expect(await countsOf(another, "x")).toEqual(["refused"]);
    expect(await countsOf(thief)).toEqual(["refused"]);
    // So nobody at a shared address shuts out phones that prove their keys, not even with a clock that is wrong.
    expect(await countsOf(phone)).toEqual([]);
    expect(await countsOf(phone, await proveAt(phone, -3600))).toEqual([]);
    // It reads D1 before it is refused, so it counts as what it is, too.
    expect(await countsOf(phone, "")).toEqual(["unproved", "refused"]);
  });
});
