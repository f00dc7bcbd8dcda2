import * as dpop from "dpop";
import { afterEach, describe, expect, it, vi } from "vitest";
import { createDpopProof } from "../../src/client/index.ts";
import { digestOf } from "../../src/shared/identifiers.ts";
import { invite } from "../http/support/invitations.ts";
import { aroundAllocators } from "../support/allocator.ts";
import { createApplication } from "../support/application.ts";
import { callWith, countedLimit, UNLIMITED } from "../support/bindings.ts";
import { call } from "../support/http.ts";
import { A_SIGNATURE, BADGE, boundPhone, expectInvalidProof, newPhone, outcome, type Phone, SIGN } from "./support.ts";

const LOGIN = JSON.stringify({ userId: "alice" });

afterEach(() => {
  vi.useRealTimers();
  vi.restoreAllMocks();
});

/** A proof that the phone made by a clock that is so many seconds off. */
async function proveAt(phone: Phone, seconds: number, body = LOGIN, nonce?: string): Promise<string> {
  const now = Date.now();
  vi.useFakeTimers({ toFake: ["Date"], now: now + seconds * 1000 });
  const proof = await phone.prove(BADGE, body, nonce);
  vi.setSystemTime(now);
  return proof;
}

// How fresh a proof is to the second, and everything that can be wrong with one: test/proofs.
describe("a proof is fresh (contract section 15)", () => {
  it("a proof is fresh within 60 s of the service's clock, else with the nonce of the response, on both calls, for 300 s", async () => {
    vi.useFakeTimers({ toFake: ["Date"], now: 1_800_000_000_000 });
    const application = await createApplication();
    const { phone, badgeId } = await boundPhone(application);
    for (const seconds of [-60, 60]) {
      const answer = await phone.send(BADGE, LOGIN, { DPoP: await proveAt(phone, seconds) });
      expect(outcome(answer), String(seconds)).toBe(`200 ${badgeId}`);
      expect(answer.headers.has("dpop-nonce")).toBe(false);
    }
    let nonce = "";
    for (const seconds of [-86_400, -61, 61, 86_400]) {
      const asked = await phone.send(BADGE, LOGIN, { DPoP: await proveAt(phone, seconds) });
      expect([asked.status, asked.body]).toEqual([401, { error: "USE_DPOP_NONCE" }]);
      expect(asked.headers.get("www-authenticate")).toBe('DPoP error="use_dpop_nonce", algs="ES256"');
      nonce = asked.headers.get("dpop-nonce") ?? "";
      const proof = await proveAt(phone, seconds, LOGIN, nonce);
      expect(outcome(await phone.send(BADGE, LOGIN, { DPoP: proof }))).toBe(`200 ${badgeId}`);
    }
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
    const headers = new Headers({ applicationid: application.id, udid: phone.udid });
    const send = (body: BodyInit) =>
      callWith({}, new Request(`https://badges.example${BADGE}`, { method: "POST", headers, body }));
    headers.append("DPoP", await phone.prove(BADGE, LOGIN));
    expect((await send(new Blob([LOGIN]).stream())).status).toBe(201);
    headers.append("DPoP", await phone.prove(BADGE, LOGIN));
    expectInvalidProof(await send(LOGIN));
    const unbound = await newPhone(application, "unbound");
    for (const blank of ["", " ", "\t "]) {
      expect((await unbound.send(BADGE, LOGIN, { DPoP: blank })).status).toBeLessThan(300);
    }
  });

  it("a proof names the URL that was called, with or without its query, or PUBLIC_URL and the path alone in a deployment", async () => {
    const application = await createApplication();
    const phone = await newPhone(application);
    const send = async (called: string, named: string, variables: Partial<Env> = { PUBLIC_URL: "" }) => {
      const call = { applicationId: application.id, method: "POST", url: named, udid: phone.udid, body: LOGIN };
      const DPoP = await createDpopProof({ key: phone.key, ...call });
      const headers = { applicationid: application.id, udid: phone.udid, DPoP };
      const request = new Request(called, { method: "POST", headers, body: LOGIN });
      const answer = await callWith(variables, request);
      return answer.status < 300 ? "granted" : outcome(answer);
    };
    const url = "https://badges.example/v1/badge";
    const [proxied, outside] = ["http://10.0.0.7/v1/badge", "http://localhost:8787/v1/badge"];
    const local = { PUBLIC_URL: "http://localhost:8787" } as const;
    const deployed = { ...local, ENVIRONMENT: "production" } as const;
    for (const [called, named, variables, expected] of [
      [url, url, undefined, "granted"],
      [`${url}?a=b`, url, undefined, "granted"],
      [url, "HTTPS://BADGES.example:443/v1/x/../badge", undefined, "granted"],
      [proxied, outside, undefined, "401 INVALID_PROOF"],
      [proxied, outside, local, "granted"],
      [proxied, proxied, local, "granted"],
      [proxied, "https://localhost:8787/v1/badge", local, "401 INVALID_PROOF"],
      [proxied, outside, deployed, "granted"],
      [proxied, proxied, deployed, "401 INVALID_PROOF"],
    ] as const) {
      expect(await send(called, named, variables), `${called} ${named}`).toBe(expected);
    }
  });

  it("a proof by an independent maker (dpop of npm) binds and signs", async () => {
    const application = await createApplication();
    const pair = await dpop.generateKeyPair("ES256");
    const post = async (path: string, body: object) => {
      const text = JSON.stringify(body);
      const url = `https://badges.example${path}`;
      const more = { aud: application.id, body_hash: await digestOf(text) };
      const DPoP = await dpop.generateProof(pair, url, "POST", undefined, "phone", more);
      return call("POST", path, { headers: { applicationid: application.id, udid: "phone", DPoP }, body: text });
    };
    const { body } = await post(BADGE, { userId: "alice" });
    expect(outcome(await post(SIGN, A_SIGNATURE))).toBe(`200 ${body.badgeId}`);
    expectInvalidProof(await (await newPhone(application)).sign());
  });
});

// In the order of everything that is refused: test/http/errors/order.test.ts.
describe("what is wrong with a proof is reported (contract section 15)", () => {
  it("staleness is reported alone if nothing else is wrong with a proof, and before the invitation", async () => {
    const application = await createApplication();
    const phone = await newPhone(application);
    const invited = JSON.stringify({ userId: "alice", invitationToken: "inv_unknown" });
    const stale = { DPoP: await proveAt(phone, -3600, invited) };
    expect(outcome(await phone.send(BADGE, invited, stale))).toBe("401 USE_DPOP_NONCE");
    expectInvalidProof(await phone.send(BADGE, `${invited} `, stale));
    expect(outcome(await phone.post(BADGE, JSON.parse(invited)))).toBe("404 UNKNOWN_INVITATION");
  });

  it("the log has the reason why a proof was refused, never the proof, the udid or the nonce (contract section 9)", async () => {
    const lines: string[] = [];
    vi.spyOn(console, "log").mockImplementation((line) => void lines.push(String(line)));
    const application = await createApplication();
    const phone = await newPhone(application, "a udid that nobody may read");
    const proof = await phone.prove(BADGE, LOGIN);
    await phone.send(BADGE, `${LOGIN} `, { DPoP: proof });
    const stale = await phone.send(BADGE, LOGIN, { DPoP: await proveAt(phone, -3600) });
    expect(lines.some((line) => line.includes('"code":"INVALID_PROOF","detail":"wrong-body"'))).toBe(true);
    expect(lines.some((line) => line.includes('"code":"USE_DPOP_NONCE","detail":"stale-iat"'))).toBe(true);
    const secrets = [proof, phone.udid, stale.headers.get("dpop-nonce") ?? proof, await phone.thumbprint()];
    for (const line of lines) for (const secret of secrets) expect(line).not.toContain(secret);
  });
});

/** The real objects, whose calls are counted. */
function countedAllocators() {
  let calls = 0;
  const namespace = aroundAllocators((_, call) => {
    calls++;
    return call();
  });
  return { namespace, calls: () => calls };
}

describe("rate limits (contract sections 7 and 15)", () => {
  const sendTo = (bindings: Partial<Env>, phone: Phone, headers: Record<string, string>) =>
    callWith(
      bindings,
      new Request(`https://badges.example${BADGE}`, {
        method: "POST",
        headers: { applicationid: phone.application.id, udid: phone.udid, ...headers },
        body: LOGIN,
      }),
    );

  const proved = async (phone: Phone) => ({ DPoP: await phone.prove(BADGE, LOGIN) });

  it("rate limits count calls by application and udid, with a valid proof by its key too, and a server's by nothing", async () => {
    const application = await createApplication();
    const phone = await newPhone(application);
    const limit = countedLimit();
    const bindings = { DEVICE_LIMIT: limit, CLIENT_IP_LIMIT: UNLIMITED };
    const stale = { DPoP: await proveAt(phone, -3600) };
    const other = await phone.withOtherKey();
    for (const headers of [
      {},
      { DPoP: "broken" },
      await proved(phone),
      await proved(phone),
      await proved(other),
      stale,
    ]) {
      await sendTo(bindings, phone, headers);
    }
    const [plain, broken, byKey, again, otherKey, ofStale] = limit.keys;
    expect(broken).toBe(plain);
    expect(again).toBe(byKey);
    expect(byKey).toContain(await phone.thumbprint());
    expect(new Set([plain, byKey, otherKey, ofStale]).size).toBe(4);
    expect(ofStale).toContain(await phone.thumbprint());
    expect(plain).not.toContain(phone.udid);
    const byServer = { applicationsecret: application.secret, ...(await proved(phone)) };
    expect((await sendTo(bindings, phone, byServer)).status).toBe(200);
    expect(limit.keys).toHaveLength(6);
  });

  it("a stranger with the udid, who is over the rate limit, does not lock its owner out", async () => {
    const { phone, badgeId } = await boundPhone(await createApplication());
    const thief = await phone.withOtherKey();
    const bindings = { DEVICE_LIMIT: countedLimit(2), CLIENT_IP_LIMIT: UNLIMITED };
    for (const expected of ["401 INVALID_PROOF", "401 INVALID_PROOF", "429 RATE_LIMITED"]) {
      expect(outcome(await sendTo(bindings, phone, { DPoP: "x" }))).toBe(expected);
      expect(outcome(await sendTo(bindings, phone, await proved(thief)))).toBe(expected);
    }
    expect(outcome(await sendTo(bindings, phone, await proved(phone)))).toBe(`200 ${badgeId}`);
  });

  it("no refused proof counts as refused credentials (contract section 7)", async () => {
    const phone = await newPhone(await createApplication({ requireProof: true }));
    const refused = countedLimit();
    const bindings = { DEVICE_LIMIT: UNLIMITED, CLIENT_IP_LIMIT: UNLIMITED, REFUSED_CALL_LIMIT: refused };
    for (const headers of [{}, { DPoP: "x" }, { DPoP: await proveAt(phone, -3600) }]) {
      expect((await sendTo(bindings, phone, headers)).status).toBe(401);
    }
    expect(refused.keys).toEqual([]);
    const unknown = { applicationid: "app_00000000000000000000" };
    expect(outcome(await sendTo(bindings, phone, unknown))).toBe("401 INVALID_APPLICATIONID");
    expect(refused.keys).toHaveLength(1);
  });

  it("limits of an address hold for no call with a valid proof, so nobody at a shared address shuts such phones out", async () => {
    const { phone, badgeId } = await boundPhone(await createApplication());
    const bindings = { DEVICE_LIMIT: UNLIMITED, CLIENT_IP_LIMIT: countedLimit(0) };
    expect(outcome(await sendTo(bindings, phone, await proved(phone)))).toBe(`200 ${badgeId}`);
    // With a clock that is wrong it gets its nonce.
    const stale = await sendTo(bindings, phone, { DPoP: await proveAt(phone, -3600) });
    expect(outcome(stale)).toBe("401 USE_DPOP_NONCE");
    for (const headers of [{}, { DPoP: "x" }]) {
      expect(outcome(await sendTo(bindings, phone, headers))).toBe("429 RATE_LIMITED");
    }
  });

  it("limits of an address count a call that would take a fresh number, with a proof too, and no other login with it", async () => {
    const application = await createApplication();
    const limit = countedLimit(2);
    const allocator = countedAllocators();
    const bindings = { DEVICE_LIMIT: UNLIMITED, CLIENT_IP_LIMIT: limit, ALLOCATOR: allocator.namespace };
    const phones = await Promise.all(["one", "two", "three"].map((udid) => newPhone(application, udid)));
    const logIn = async (phone: Phone) => (await phone.logInTo(bindings, { address: "192.0.2.1" })).status;
    const statuses: number[] = [];
    for (const phone of phones) statuses.push(await logIn(phone));
    expect(statuses).toEqual([201, 201, 429]);
    expect(allocator.calls()).toBe(2);
    for (const phone of phones.slice(0, 2)) expect(await logIn(phone)).toBe(200);
    expect(limit.keys).toHaveLength(3);
  });

  it("limits of an address bound claims with made-up tokens and proofs before the allocator is called, and no real claim", async () => {
    const application = await createApplication();
    const { id: token } = await invite(application);
    const limit = countedLimit(2);
    const allocator = countedAllocators();
    const bindings = { DEVICE_LIMIT: UNLIMITED, CLIENT_IP_LIMIT: limit, ALLOCATOR: allocator.namespace };
    const claim = async (udid: string, invitationToken: string) => {
      const phone = await newPhone(application, udid);
      return outcome(await phone.logInTo(bindings, { more: { invitationToken }, address: "192.0.2.1" }));
    };
    const guesses = [await claim("one", "inv_one"), await claim("two", "inv_two"), await claim("three", "inv_three")];
    expect(guesses).toEqual(["404 UNKNOWN_INVITATION", "404 UNKNOWN_INVITATION", "429 RATE_LIMITED"]);
    expect(allocator.calls()).toBe(2);
    expect(await claim("visitor", token)).toMatch(/^201 /);
    // It is spent now.
    expect(await claim("stranger", token)).toBe("429 RATE_LIMITED");
    expect(new Set(limit.keys).size).toBe(1);
  });

  it("limits of an address count calls without a proof, and apart from them what is refused by INVALID_PROOF", async () => {
    const application = await createApplication();
    const { phone } = await boundPhone(application);
    const [thief, another] = [await phone.withOtherKey(), await newPhone(application, "another")];
    const countsOf = async (from: Phone, headers: Record<string, string>) => {
      const limit = countedLimit();
      await sendTo({ DEVICE_LIMIT: UNLIMITED, CLIENT_IP_LIMIT: limit }, from, headers);
      return limit.keys.map((key) => (key.endsWith(":refused") ? "refused" : "unproved"));
    };
    expect(await countsOf(another, {})).toEqual(["unproved"]);
    expect(await countsOf(another, { DPoP: "x" })).toEqual(["refused"]);
    expect(await countsOf(thief, await proved(thief))).toEqual(["refused"]);
    expect(await countsOf(phone, await proved(phone))).toEqual([]);
    // It reads D1 before it is refused, so it counts as what it is, too.
    expect(await countsOf(phone, {})).toEqual(["unproved", "refused"]);
  });
});
