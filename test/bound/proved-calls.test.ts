import * as dpop from "dpop";
import { afterEach, beforeEach, describe, expect, it, vi } from "vitest";
import { createProof } from "../../src/client/index.ts";
import { digestOf } from "../../src/shared/identifiers.ts";
import { createApplication } from "../support/application.ts";
import { callWith, UNLIMITED } from "../support/bindings.ts";
import { call } from "../support/http.ts";
import { A_SIGNATURE, BADGE, boundPhone, expectInvalidProof, newPhone, outcome, type Phone, SIGN } from "./support.ts";

const LOGIN = JSON.stringify({ userId: "alice" });

beforeEach(() => {
  vi.spyOn(console, "log").mockImplementation(() => {});
});

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

describe("a proof is fresh (contract section 15)", () => {
  it("within 60 s of the service's clock, and else the response gives a nonce with which it is, whatever the clock", async () => {
    vi.useFakeTimers({ toFake: ["Date"], now: 1_800_000_000_000 });
    const application = await createApplication();
    const { phone, badgeId } = await boundPhone(application);
    for (const seconds of [-60, 60]) {
      const answer = await phone.send(BADGE, LOGIN, { DPoP: await proveAt(phone, seconds) });
      expect(outcome(answer), String(seconds)).toBe(`200 ${badgeId}`);
      expect(answer.headers.has("dpop-nonce")).toBe(false);
    }
    for (const seconds of [-86_400, -61, 61, 86_400]) {
      const asked = await phone.send(BADGE, LOGIN, { DPoP: await proveAt(phone, seconds) });
      expect([asked.status, asked.body]).toEqual([401, { error: "USE_DPOP_NONCE" }]);
      expect(asked.headers.get("www-authenticate")).toBe('DPoP error="use_dpop_nonce", algs="ES256"');
      const nonce = asked.headers.get("dpop-nonce") ?? "";
      const proof = await proveAt(phone, seconds, LOGIN, nonce);
      expect(outcome(await phone.send(BADGE, LOGIN, { DPoP: proof }))).toBe(`200 ${badgeId}`);
    }
  });

  it("with a nonce for 300 s, as often as it is used, on both calls, and after that there is a new one", async () => {
    vi.useFakeTimers({ toFake: ["Date"], now: 1_800_000_000_000 });
    const application = await createApplication();
    const { phone, badgeId } = await boundPhone(application);
    const asked = await phone.send(BADGE, LOGIN, { DPoP: await proveAt(phone, -3600) });
    const nonce = asked.headers.get("dpop-nonce") ?? "";
    vi.setSystemTime(1_800_000_300_000);
    for (const _ of [1, 2]) {
      expect(outcome(await phone.post(BADGE, { userId: "alice" }, nonce))).toBe(`200 ${badgeId}`);
      expect(outcome(await phone.post(SIGN, A_SIGNATURE, nonce))).toBe(`200 ${badgeId}`);
    }
    vi.setSystemTime(1_800_000_301_000);
    const late = await phone.post(BADGE, { userId: "alice" }, nonce);
    expect(outcome(late)).toBe("401 USE_DPOP_NONCE");
    expect(late.headers.get("dpop-nonce")).not.toBe(nonce);
    const other = await createApplication();
    const elsewhere = await newPhone(other);
    const foreign = late.headers.get("dpop-nonce") ?? "";
    expect(outcome(await elsewhere.post(BADGE, { userId: "alice" }, foreign))).toBe("401 USE_DPOP_NONCE");
  });

  it("and an unchanged request may be repeated within its window", async () => {
    const application = await createApplication();
    const { phone, badgeId } = await boundPhone(application);
    const DPoP = await phone.prove(BADGE, LOGIN);
    for (const _ of [1, 2, 3]) expect(outcome(await phone.send(BADGE, LOGIN, { DPoP }))).toBe(`200 ${badgeId}`);
  });
});

describe("a proof is for exactly one request (contract section 15)", () => {
  it("not another body, call, udid or method, nor a changed signature: 401, also where no badge is bound", async () => {
    const application = await createApplication();
    const phone = await newPhone(application);
    await phone.logInUnproved();
    const proof = await phone.prove(BADGE, LOGIN);
    expectInvalidProof(await phone.send(BADGE, '{"userId": "alice"}', { DPoP: proof }));
    expectInvalidProof(await phone.send(SIGN, JSON.stringify(A_SIGNATURE), { DPoP: proof }));
    expectInvalidProof(await phone.send(BADGE, LOGIN, { DPoP: proof, udid: "other" }));
    expectInvalidProof(await phone.send(BADGE, LOGIN, { DPoP: `${proof.slice(0, -8)}AAAAAAAA` }));
    for (const text of ["x", "Bearer x", "a.b.c", `${proof}.`, proof.replace(".", ".."), "x".repeat(5000)]) {
      expectInvalidProof(await phone.send(BADGE, LOGIN, { DPoP: text }));
    }
    expect((await phone.send(BADGE, LOGIN, { DPoP: proof })).status).toBe(200);
  });

  it("and two headers are none, even if both are right; a blank one counts as absent", async () => {
    const application = await createApplication();
    const phone = await newPhone(application);
    const headers = new Headers({ applicationid: application.id, udid: phone.udid });
    for (const _ of [1, 2]) headers.append("DPoP", await phone.prove(BADGE, LOGIN));
    const request = new Request(`https://badges.example${BADGE}`, { method: "POST", headers, body: LOGIN });
    expectInvalidProof(await callWith({}, request));
    for (const blank of ["", " ", "\t "]) {
      expect((await phone.send(BADGE, LOGIN, { DPoP: blank })).status).toBeLessThan(300);
    }
  });

  it("and names the URL that was called, with or without its query, or PUBLIC_URL and the path alone in a deployment", async () => {
    const application = await createApplication();
    const phone = await newPhone(application);
    const send = async (called: string, named: string, variables: Partial<Env> = { PUBLIC_URL: "" }) => {
      const call = { applicationId: application.id, method: "POST", url: named, udid: phone.udid, body: LOGIN };
      const DPoP = await createProof({ key: phone.key, ...call });
      const headers = { applicationid: application.id, udid: phone.udid, DPoP };
      const request = new Request(called, { method: "POST", headers, body: LOGIN });
      const answer = await callWith(variables, request);
      return answer.status < 300 ? "granted" : outcome(answer);
    };
    const url = "https://badges.example/v1/badge";
    expect(await send(url, url)).toBe("granted");
    expect(await send(`${url}?a=b`, url)).toBe("granted");
    expect(await send(url, "HTTPS://BADGES.example:443/v1/x/../badge")).toBe("granted");
    const [proxied, outside] = ["http://10.0.0.7/v1/badge", "http://localhost:8787/v1/badge"];
    expect(await send(proxied, outside)).toBe("401 INVALID_PROOF");
    const local = { PUBLIC_URL: "http://localhost:8787" } as const;
    const deployed = { ...local, ENVIRONMENT: "production" } as const;
    expect(await send(proxied, outside, local)).toBe("granted");
    expect(await send(proxied, proxied, local)).toBe("granted");
    expect(await send(proxied, "https://localhost:8787/v1/badge", local)).toBe("401 INVALID_PROOF");
    expect(await send(proxied, outside, deployed)).toBe("granted");
    expect(await send(proxied, proxied, deployed)).toBe("401 INVALID_PROOF");
  });

  it("and names the application: recorded in one, it is of no use in another one", async () => {
    const [application, another] = [await createApplication(), await createApplication()];
    const phone = await newPhone(application);
    const DPoP = await phone.prove(BADGE, LOGIN);
    const elsewhere = await phone.send(BADGE, LOGIN, { DPoP, applicationid: another.id });
    expectInvalidProof(elsewhere);
    expect((await phone.send(BADGE, LOGIN, { DPoP })).status).toBe(201);
  });

  it("with a body of unknown length, which is read before", async () => {
    const application = await createApplication();
    const phone = await newPhone(application);
    const headers = { applicationid: application.id, udid: phone.udid, DPoP: await phone.prove(BADGE, LOGIN) };
    const body = new Blob([LOGIN]).stream();
    const request = new Request(`https://badges.example${BADGE}`, { method: "POST", headers, body });
    expect((await callWith({}, request)).status).toBe(201);
  });

  it("also by an independent maker of proofs (dpop of npm), which binds and signs", async () => {
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

describe("what is wrong with a proof is reported (contract section 15)", () => {
  const bad = { DPoP: "bad" };

  it("after what is wrong with the caller and the body", async () => {
    const application = await createApplication();
    const phone = await newPhone(application);
    const unknown = { ...bad, applicationid: "app_00000000000000000000" };
    expect(outcome(await phone.send(BADGE, LOGIN, { ...bad, applicationid: "" }))).toBe("422 UNDEFINED_APPLICATIONID");
    expect(outcome(await phone.send(BADGE, LOGIN, unknown))).toBe("401 INVALID_APPLICATIONID");
    expect(outcome(await phone.send(BADGE, LOGIN, { ...bad, udid: "" }))).toBe("422 UNDEFINED_UDID");
    expect(outcome(await phone.send(BADGE, "x", bad))).toBe("400 INVALID_JSON");
    expect(outcome(await phone.send(BADGE, "{}", bad))).toBe("422 UNDEFINED_USERID");
    expect(outcome(await phone.send(BADGE, LOGIN, { ...bad, udid: "x".repeat(256) }))).toBe("422 INVALID_UDID");
    expect(outcome(await phone.send(BADGE, '{"userId":".."}', bad))).toBe("422 INVALID_USERID");
    const token = JSON.stringify({ userId: "alice", invitationToken: 7 });
    expect(outcome(await phone.send(BADGE, token, bad))).toBe("422 INVALID_INVITATIONTOKEN");
    expect(outcome(await phone.send(SIGN, "{}", bad))).toBe("422 UNDEFINED_BASE64");
    expect(outcome(await phone.send(SIGN, '{"base64":"?"}', bad))).toBe("422 INVALID_BASE64");
  });

  it("before the invitation, the badge and its state, and staleness after everything else that is wrong with it", async () => {
    const application = await createApplication();
    const phone = await newPhone(application);
    const invited = JSON.stringify({ userId: "alice", invitationToken: "inv_unknown" });
    expectInvalidProof(await phone.send(BADGE, invited, bad));
    expectInvalidProof(await phone.send(SIGN, JSON.stringify(A_SIGNATURE), bad));
    const stale = { DPoP: await proveAt(phone, -3600, invited) };
    expect(outcome(await phone.send(BADGE, invited, stale))).toBe("401 USE_DPOP_NONCE");
    expectInvalidProof(await phone.send(BADGE, `${invited} `, stale));
    expect(outcome(await phone.post(BADGE, JSON.parse(invited)))).toBe("404 UNKNOWN_INVITATION");
  });

  it("in the log by its reason, never with the proof, the udid or the nonce (contract section 9)", async () => {
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

describe("CORS (contract section 15)", () => {
  it.each([BADGE, SIGN])("lets web pages send DPoP to %s and read DPoP-Nonce and WWW-Authenticate", async (path) => {
    const origin = { origin: "https://app.example" };
    const preflight = await call("OPTIONS", path, {
      headers: {
        ...origin,
        "access-control-request-method": "POST",
        "access-control-request-headers": "applicationid,dpop,udid",
      },
    });
    expect(preflight.headers.get("access-control-allow-headers")?.split(",")).toContain("dpop");
    const phone = await newPhone(await createApplication());
    const refused = await phone.send(path, JSON.stringify({ userId: "alice", ...A_SIGNATURE }), {
      ...origin,
      DPoP: "x",
    });
    expect(refused.headers.get("access-control-allow-origin")).toBe("*");
    const exposed = refused.headers.get("access-control-expose-headers")?.split(",");
    expect(exposed).toEqual(expect.arrayContaining(["dpop-nonce", "www-authenticate"]));
  });
});

describe("rate limits (contract section 15)", () => {
  /** The keys that the device limit was asked about, hashed by the device's ID. */
  async function countedKeys(act: (bindings: Partial<Env>) => Promise<unknown>): Promise<string[]> {
    const keys: string[] = [];
    const DEVICE_LIMIT: RateLimit = {
      limit: async ({ key }) => {
        keys.push(key);
        return { success: true };
      },
    };
    await act({ DEVICE_LIMIT, CLIENT_IP_LIMIT: UNLIMITED });
    return keys;
  }

  const request = (phone: Phone, headers: Record<string, string>) =>
    new Request(`https://badges.example${BADGE}`, {
      method: "POST",
      headers: { applicationid: phone.application.id, udid: phone.udid, ...headers },
      body: LOGIN,
    });

  it("count calls with a valid proof by application, udid and key, and others by application and udid", async () => {
    const phone = await newPhone(await createApplication());
    const other = await phone.withOtherKey();
    const [plain, broken, proved, again, otherKey, stale] = await countedKeys(async (bindings) => {
      await callWith(bindings, request(phone, {}));
      await callWith(bindings, request(phone, { DPoP: "broken" }));
      await callWith(bindings, request(phone, { DPoP: await phone.prove(BADGE, LOGIN) }));
      await callWith(bindings, request(phone, { DPoP: await phone.prove(BADGE, LOGIN) }));
      await callWith(bindings, request(phone, { DPoP: await other.prove(BADGE, LOGIN) }));
      await callWith(bindings, request(phone, { DPoP: await proveAt(phone, -3600) }));
    });
    expect(broken).toBe(plain);
    expect(again).toBe(proved);
    expect(proved).toContain(await phone.thumbprint());
    expect(new Set([plain, proved, otherKey, stale]).size).toBe(4);
    expect(plain).not.toContain(phone.udid);
  });

  it("so a stranger with the udid, who is refused after 60 calls a minute, does not lock its owner out", async () => {
    const application = await createApplication();
    const { phone, badgeId } = await boundPhone(application);
    const thief = await phone.withOtherKey();
    const statuses = new Set<number>();
    // 121 are more than 60 in one of two minutes.
    for (let count = 0; count < 121 && statuses.size < 2; count++) {
      statuses.add((await phone.send(BADGE, LOGIN, { DPoP: "x" })).status);
      statuses.add((await thief.logIn()).status);
    }
    expect([...statuses].sort()).toEqual([401, 429]);
    expect(outcome(await phone.logIn())).toBe(`200 ${badgeId}`);
    expect(outcome(await phone.sign())).toBe(`200 ${badgeId}`);
  }, 60_000);

  it("count no refused proof as refused credentials (contract section 7)", async () => {
    const phone = await newPhone(await createApplication({ requireProof: true }));
    const headers = { "cf-connecting-ip": "203.0.113.77" };
    const bindings = { DEVICE_LIMIT: UNLIMITED, CLIENT_IP_LIMIT: UNLIMITED };
    const stale = await proveAt(phone, -3600);
    for (let count = 0; count < 130; count++) {
      const proof = [{}, { DPoP: "x" }, { DPoP: stale }][count % 3];
      expect((await callWith(bindings, request(phone, { ...headers, ...proof }))).status).toBe(401);
    }
    const unknown = { ...headers, applicationid: "app_00000000000000000000" };
    expect(outcome(await callWith(bindings, request(phone, unknown)))).toBe("401 INVALID_APPLICATIONID");
  }, 60_000);

  it("count a server's calls by nothing, with a proof as without one", async () => {
    const application = await createApplication();
    const phone = await newPhone(application);
    const keys = await countedKeys(async (bindings) => {
      const DPoP = await phone.prove(BADGE, LOGIN);
      const secret = { applicationsecret: application.secret };
      expect((await callWith(bindings, request(phone, { ...secret, DPoP }))).status).toBe(201);
    });
    expect(keys).toEqual([]);
  });

  /** The address limit of a building where somebody has used it up, for calls of every kind. */
  const USED_UP: RateLimit = { limit: async () => ({ success: false }) };

  it("by address hold for no call with a valid proof, so nobody at a shared address shuts such phones out", async () => {
    const phone = await newPhone(await createApplication());
    const bindings = { DEVICE_LIMIT: UNLIMITED, CLIENT_IP_LIMIT: USED_UP };
    const badge = await callWith(bindings, request(phone, { DPoP: await phone.prove(BADGE, LOGIN) }));
    expect(badge.status).toBe(201);
    // With a clock that is wrong it gets its nonce.
    const stale = await callWith(bindings, request(phone, { DPoP: await proveAt(phone, -3600) }));
    expect(outcome(stale)).toBe("401 USE_DPOP_NONCE");
    expect(outcome(await callWith(bindings, request(phone, {})))).toBe("429 RATE_LIMITED");
    expect(outcome(await callWith(bindings, request(phone, { DPoP: "x" })))).toBe("429 RATE_LIMITED");
  });

  it("by address count calls without a proof, and apart from them what is refused by INVALID_PROOF", async () => {
    const application = await createApplication();
    const { phone } = await boundPhone(application);
    const another = await newPhone(application, "another");
    const keys: string[] = [];
    const CLIENT_IP_LIMIT: RateLimit = {
      limit: async ({ key }) => {
        keys.push(key);
        return { success: true };
      },
    };
    const counted = async (from: Phone, headers: Record<string, string>) => {
      keys.length = 0;
      await callWith({ DEVICE_LIMIT: UNLIMITED, CLIENT_IP_LIMIT }, request(from, headers));
      return keys.map((key) => (key.endsWith(":refused") ? "refused" : "unproved"));
    };
    expect(await counted(another, {})).toEqual(["unproved"]);
    expect(await counted(another, { DPoP: "x" })).toEqual(["refused"]);
    const thief = await phone.withOtherKey();
    expect(await counted(thief, { DPoP: await thief.prove(BADGE, LOGIN) })).toEqual(["refused"]);
    expect(await counted(phone, { DPoP: await phone.prove(BADGE, LOGIN) })).toEqual([]);
    // It reads D1 before it is refused, so it counts as what it is, too.
    expect(await counted(phone, {})).toEqual(["unproved", "refused"]);
  });
});
