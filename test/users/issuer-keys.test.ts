import { beforeEach, describe, expect, it, vi } from "vitest";
import { createApplication, type TestApplication } from "../support/application.ts";
import { HOUR, MINUTE, moveClock, useStandingClock } from "../support/clock.ts";
import { outcome, requestBadge } from "../support/http.ts";
import { log } from "../support/log.ts";
import { isSettled } from "../support/timers.ts";
import { hangs, newProviderKey, type Provider, type Responding, useProviders } from "./provider.ts";
import { logIn } from "./support.ts";

useStandingClock();
const newProvider = useProviders();

let provider: Provider;
let application: TestApplication;

beforeEach(async () => {
  provider = await newProvider();
  application = await createApplication(provider.columns);
});

/** The service gives up on what it fetches after a second instead of its five. */
function shortenDeadlines(): void {
  const { timeout } = AbortSignal;
  vi.spyOn(AbortSignal, "timeout").mockImplementation((milliseconds) => {
    expect(milliseconds).toBe(5000);
    return timeout.call(AbortSignal, 1000);
  });
}

/** The outcome of a login with a token that this provider has just made. */
const tryLogin = async () => outcome(await logIn(application, await provider.token("alice")));

/** A token by a key that nobody published. */
const madeUp = async () => provider.token("alice", {}, { key: await newProviderKey("ES256") });

const away: Responding = () => {
  throw new TypeError("connection refused");
};

/** What the log says of the provider. */
const faults = () => log.lines().filter(({ issuer }) => issuer === provider.issuer);

describe("an issuer's keys (contract section 22)", () => {
  it("an issuer's URL may end with a slash, which the discovery document's URL has only once", async () => {
    const userIssuer = `${provider.issuer}/`;
    provider.discovery = () => Response.json({ issuer: userIssuer, jwks_uri: `${provider.issuer}/keys` });
    const slashed = await createApplication({ ...provider.columns, userIssuer });
    expect(outcome(await logIn(slashed, await provider.token("alice", { iss: userIssuer })))).toBe("201");
  });

  it("an issuer's keys are fetched once for many callers, and for all applications of the issuer", async () => {
    const logins = await Promise.all(Array.from({ length: 20 }, () => tryLogin()));
    expect(new Set(logins)).toEqual(new Set(["201"]));
    const neighbour = await createApplication(provider.columns);
    expect(outcome(await logIn(neighbour, await provider.token("alice")))).toBe("201");
    expect(provider.keySetFetches).toBe(1);
  });

  it("the first 100 usable keys of a key set are used, and the log says how many were left out (docs/operations.md)", async () => {
    const last = await newProviderKey("ES256");
    const spares = Array.from({ length: 99 }, (_, place) => ({ ...last.jwk, kid: `spare-${place}` }));
    const useless = { kty: "oct", kid: "useless", k: "AAAA" };
    const document = JSON.stringify({ keys: [useless, ...spares, provider.key.jwk, last.jwk] });
    // As long as a document may be.
    provider.keySet = () => new Response(document.padEnd(512 * 1024));
    expect(await tryLogin()).toBe("201");
    expect(faults()).toMatchObject([{ level: "warn", event: "issuer-keys-left-out", used: 100, leftOut: 1 }]);
    const byLast = await provider.token("alice", {}, { key: last });
    expect(outcome(await logIn(application, byLast))).toBe("401 INVALID_USERTOKEN");
  });

  it("an issuer's keys are fetched again after ten minutes, or two seconds after a failure, and withdrawn keys are refused from then on", async () => {
    await tryLogin();
    provider.published = [await newProviderKey("ES256")];
    moveClock(9 * MINUTE);
    expect(await tryLogin()).toBe("201");
    expect(provider.keySetFetches).toBe(1);
    moveClock(MINUTE);
    expect(await tryLogin()).toBe("401 INVALID_USERTOKEN");
    expect(provider.keySetFetches).toBeGreaterThan(1);
    provider.published = [];
    moveClock(10 * MINUTE);
    expect(await tryLogin()).toBe("503 UNAVAILABLE");
    expect(faults()).toMatchObject([{ event: "issuer-keys-failed", fault: "no-usable-key" }]);
    provider.published = [provider.key];
    expect(await tryLogin()).toBe("503 UNAVAILABLE");
    moveClock(2000);
    expect(await tryLogin()).toBe("201");
  });

  it("an unknown key makes an issuer's keys be fetched at most once a minute", async () => {
    await tryLogin();
    for (let count = 0; count < 3; count++) {
      expect(outcome(await logIn(application, await madeUp()))).toBe("401 INVALID_USERTOKEN");
    }
    expect(provider.keySetFetches).toBe(2);
    moveClock(MINUTE - 1);
    await logIn(application, await madeUp());
    expect(provider.keySetFetches).toBe(2);
    moveClock(1);
    const key = await newProviderKey("EdDSA");
    provider.published = [key];
    const byNewKey = async () => outcome(await logIn(application, await provider.token("alice", {}, { key })));
    expect(new Set(await Promise.all(Array.from({ length: 10 }, byNewKey)))).toEqual(new Set(["201"]));
    expect(provider.keySetFetches).toBe(3);
  });

  it("known keys are used for 24 hours while the issuer cannot be reached, and are requested once a minute", async () => {
    await tryLogin();
    provider.discovery = away;
    moveClock(10 * MINUTE);
    expect([await tryLogin(), await tryLogin(), await tryLogin()]).toEqual(["201", "201", "201"]);
    expect(faults()).toHaveLength(1);
    moveClock(MINUTE);
    expect(await tryLogin()).toBe("201");
    expect(faults()).toHaveLength(2);
    moveClock(24 * HOUR - 11 * MINUTE - 1);
    expect(await tryLogin()).toBe("201");
    moveClock(1);
    expect(await tryLogin()).toBe("503 UNAVAILABLE");
    provider.discovery = () => Response.json({ issuer: provider.issuer, jwks_uri: `${provider.issuer}/keys` });
    moveClock(2000);
    expect(await tryLogin()).toBe("201");
  });

  it("without known keys calls get 503 after five seconds, and only calls that need the keys wait", async () => {
    shortenDeadlines();
    provider.discovery = hangs;
    const other = await newProvider();
    const unconcerned = [await createApplication(), await createApplication(other.columns)] as const;
    const waiting = Array.from({ length: 5 }, () => tryLogin());
    await vi.waitUntil(() => provider.fetched.length === 1);
    expect((await requestBadge(unconcerned[0], "phone", { userId: "alice" })).status).toBe(201);
    expect(outcome(await logIn(unconcerned[1], await other.token("alice")))).toBe("201");
    expect(outcome(await logIn(application, null))).toBe("401 INVALID_USERTOKEN");
    expect(await isSettled(Promise.race(waiting))).toBe(false);
    expect(new Set(await Promise.all(waiting))).toEqual(new Set(["503 UNAVAILABLE"]));
    expect(provider.fetched).toHaveLength(1);
    expect(faults()).toMatchObject([{ event: "issuer-keys-failed", fault: "timeout" }]);
  });

  it("fetching known keys again delays only the call that fetches them", async () => {
    await tryLogin();
    moveClock(10 * MINUTE);
    shortenDeadlines();
    provider.keySet = hangs;
    const fetching = tryLogin();
    await vi.waitUntil(() => provider.keySetFetches === 2);
    expect(await tryLogin()).toBe("201");
    expect(await isSettled(fetching)).toBe(false);
    expect(await fetching).toBe("201");
  });
});

const streams = (pull: (controller: ReadableStreamDefaultController<Uint8Array>) => void): Responding => {
  return () => new Response(new ReadableStream({ pull }));
};

const breaksOff = streams((controller) => {
  controller.enqueue(new TextEncoder().encode('{"keys":['));
  controller.error(new TypeError("connection lost"));
});

describe("a provider that is not as it should be (contract section 22): 503, and the log says why", () => {
  const sends = (document: unknown) => () => Response.json(document);
  const finds = (document: unknown) => ({ discovery: sends(document) });
  const keys = (...list: unknown[]) => ({ keySet: sends({ keys: list }) });

  it.each<[string, string, (one: Provider) => Partial<Pick<Provider, "discovery" | "keySet">>]>([
    ["cannot be reached", "unreachable", () => ({ discovery: away })],
    ["fails", "wrong-status", () => ({ discovery: () => new Response("{}", { status: 500 }) })],
    ["redirects", "wrong-status", () => ({ discovery: () => Response.redirect("http://10.0.0.1/") })],
    ["sends no JSON", "malformed", () => ({ discovery: () => new Response("<html>") })],
    ["names no keys", "malformed", ({ issuer }) => finds({ issuer })],
    ["differs by a slash", "other-issuer", ({ issuer }) => finds({ issuer: `${issuer}/`, jwks_uri: "" })],
    ["has keys at no URL", "refused-url", ({ issuer }) => finds({ issuer, jwks_uri: "keys" })],
    ["has internal keys", "refused-url", ({ issuer }) => finds({ issuer, jwks_uri: "https://10.0.0.1/" })],
    ["breaks off", "unreachable", () => ({ keySet: breaksOff })],
    ["has a key set that is none", "malformed", () => ({ keySet: sends([]) })],
    [
      "has only keys of the wrong type",
      "no-usable-key",
      ({ key: { jwk } }) =>
        keys(
          { kty: "oct", k: "AAAA", alg: "HS256" },
          { kty: "EC", crv: "secp256k1", x: "AA", y: "AA" },
          { ...jwk, use: "enc" },
          { ...jwk, alg: "ES512" },
          ...[null, "key"],
        ),
    ],
  ])("that %s", async (_, fault, spoil) => {
    Object.assign(provider, spoil(provider));
    const refused = await logIn(application, await provider.token("alice"));
    expect(outcome(refused)).toBe("503 UNAVAILABLE");
    expect(refused.headers.get("retry-after")).toBe("2");
    expect(faults()).toMatchObject([{ event: "issuer-keys-failed", fault }]);
  });

  it("a provider that sends 10 MB gets 503, and little of it is read", async () => {
    let sent = 0;
    provider.keySet = streams((controller) => {
      const piece = new Uint8Array(65_536).fill(32);
      sent += piece.byteLength;
      if (sent > 10 * 1024 * 1024) controller.close();
      else controller.enqueue(piece);
    });
    expect(await tryLogin()).toBe("503 UNAVAILABLE");
    expect(faults()).toMatchObject([{ fault: "too-large" }]);
    expect(sent).toBeLessThan(1024 * 1024);
  });
});
