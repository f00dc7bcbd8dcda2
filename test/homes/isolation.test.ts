import { env } from "cloudflare:workers";
import { beforeEach, describe, expect, it, vi } from "vitest";
import { databaseBindingOf } from "../../src/shared/homes.ts";
import { newApplicationId } from "../../src/shared/identifiers.ts";
import { callHomeClock } from "../../src/worker/clock/client.ts";
import { AllocatorClient } from "../../src/worker/core/client.ts";
import { bindObject } from "../support/allocator.ts";
import { createApplication, type TestApplication } from "../support/application.ts";
import { callWith, UNLIMITED } from "../support/bindings.ts";
import { aroundD1 } from "../support/d1.ts";
import { boundHome } from "../support/home.ts";
import { type Answer, serverHeaders } from "../support/http.ts";

beforeEach(() => {
  for (const method of ["log", "warn", "error"] as const) vi.spyOn(console, method).mockImplementation(() => {});
});

const HOMES = [
  { home: 1, other: 2 },
  { home: 2, other: 1 },
];

const ahead = (seconds: number): string => new Date(Date.now() + seconds * 1000).toISOString();

type Send = (
  method: string,
  path: string,
  options?: { headers?: Record<string, string>; body?: unknown },
) => Promise<Answer>;

function sender(bindings: Partial<Env>): Send {
  return (method, path, { headers = {}, body } = {}) =>
    callWith(
      { DEVICE_LIMIT: UNLIMITED, CLIENT_IP_LIMIT: UNLIMITED, ...bindings },
      new Request(`https://badges.example${path}`, {
        method,
        headers,
        ...(body !== undefined && { body: JSON.stringify(body) }),
      }),
    );
}

/** One call of every route that an application has. @returns each call's status */
async function callEverything(send: Send, { id, secret }: Pick<TestApplication, "id" | "secret">) {
  const device = (udid: string) => ({ applicationid: id, udid });
  const server = { applicationid: id, applicationsecret: secret };
  const badge = await send("POST", "/v1/badge", { headers: device("phone"), body: { userId: "alice" } });
  const invitation = await send("POST", "/v1/invitation", {
    headers: { ...server, udid: "server" },
    body: { expiresAt: ahead(600) },
  });
  const another = await send("POST", "/v1/invitation", {
    headers: { ...server, udid: "server" },
    body: { expiresAt: ahead(600) },
  });
  const claim = { userId: "bob", invitationToken: invitation.body.id ?? "inv_00000000000000000000000000000000" };
  const number = badge.body.badgeId ?? "1";
  const answers = {
    badge,
    again: await send("POST", "/v1/badge", { headers: device("phone"), body: { userId: "alice" } }),
    sign: await send("POST", "/v1/badge/sign", { headers: device("phone"), body: { base64: "aGVsbG8=" } }),
    invitation,
    claim: await send("POST", "/v1/badge", { headers: device("tablet"), body: claim }),
    revokeInvitation: await send("PATCH", `/v1/invitation/${another.body.id}/revoke`, { headers: server }),
    badges: await send("GET", "/v1/badges", { headers: server }),
    changes: await send("GET", "/v1/changes", { headers: server }),
    show: await send("GET", `/v1/badges/${number}`, { headers: server }),
    suspend: await send("PATCH", `/v1/badges/${number}/suspend`, { headers: server }),
    block: await send("PATCH", "/v1/users/alice/block", { headers: server }),
    application: await send("GET", "/v1/application", { headers: server }),
    invitations: await send("GET", "/v1/invitations", { headers: server }),
    events: await send("GET", "/v1/events", { headers: server }),
    stats: await send("GET", "/v1/stats", { headers: server }),
    keys: await send("GET", `/v1/applications/${id}/jwks.json`),
    keysOfAnEscapedId: await send("GET", `/v1/applications/${id.replace("_", "%5F")}/jwks.json`),
  };
  return Object.fromEntries(
    Object.entries(answers).map(([name, { status, body }]) => [name, `${status} ${body.error ?? ""}`.trim()]),
  );
}

const ALL_GRANTED = {
  badge: "201",
  again: "200",
  sign: "200",
  invitation: "201",
  claim: "201",
  revokeInvitation: "200",
  badges: "200",
  changes: "200",
  show: "200",
  suspend: "200",
  block: "200",
  application: "200",
  invitations: "200",
  events: "200",
  stats: "200",
  keys: "200",
  keysOfAnEscapedId: "200",
};

describe("an application lives in the home that its ID names (contract section 17)", () => {
  it.each(HOMES)("of home $home: no call of any route reaches the other home's D1", async ({ home, other }) => {
    const application = await createApplication({ home, statusList: false });
    let reached = 0;
    const out = {
      [databaseBindingOf(other)]: aroundD1(boundHome(other).d1, () => {
        reached++;
        throw new Error("this home is down");
      }),
    };
    await bindObject(application, () => out);
    expect(await callEverything(sender(out), application)).toEqual(ALL_GRANTED);
    expect(reached).toBe(0);
    const count = async (number: number) =>
      await boundHome(number)
        .d1.prepare("SELECT count(*) AS badges FROM badge WHERE application_id = ?1")
        .bind(application.id)
        .first<{ badges: number }>();
    expect(await count(home)).toEqual({ badges: 2 });
    expect(await count(other)).toEqual({ badges: 0 });
  });

  it("of a home that is not bound: every route refuses it as an unknown application, and no D1 is asked", async () => {
    let asked = 0;
    const count = <Result>(send: () => Promise<Result>) => {
      asked++;
      return send();
    };
    const counting = sender({
      DB: aroundD1(env.DB, (_, send) => count(send)),
      DB_2: aroundD1(boundHome(2).d1, (_, send) => count(send)),
      REFUSED_CALL_LIMIT: UNLIMITED,
    });
    const secret = "bdss_unknown";
    const unbound = await callEverything(counting, { id: newApplicationId(7), secret });
    expect(asked).toBe(0);
    expect(unbound).toEqual(await callEverything(counting, { id: newApplicationId(1), secret }));
    expect(asked).toBeGreaterThan(0);
    expect(unbound).toMatchObject({ badge: "401 INVALID_APPLICATIONID", keys: "404 UNKNOWN_APPLICATION" });
  });

  it("health asks home 1, whichever application the caller names", async () => {
    const application = await createApplication({ home: 2 });
    const down = <Result>(): Promise<Result> => Promise.reject(new Error("this home is down"));
    const health = async (bindings: Partial<Env>) => {
      // An isolate asks once a second.
      await scheduler.wait(1100);
      return (await sender(bindings)("GET", "/health", { headers: serverHeaders(application) })).status;
    };
    expect(await health({ DB_2: aroundD1(boundHome(2).d1, down) })).toBe(200);
    expect(await health({ DB: aroundD1(env.DB, down) })).toBe(503);
  });
});

describe("objects are made where their home's D1 is (contract section 17)", () => {
  const applicationId = newApplicationId(2);

  /** What the platform is asked for when an object is called, by the value of the variable HOME_2. */
  async function askedFor(place: unknown): Promise<unknown[]> {
    const asked: unknown[] = [];
    const note = <T extends object>(target: T, jurisdiction?: string): T =>
      new Proxy(target, {
        get: (_, name) => {
          if (name === "jurisdiction") return (of: string) => note(target, of);
          return (id: string, options?: object) => {
            asked.push({ id, ...options, ...(jurisdiction !== undefined && { jurisdiction }) });
            return { wake: async () => {}, tick: async () => {} };
          };
        },
      });
    const home = { ...boundHome(2), place };
    await new AllocatorClient(note(env.ALLOCATOR), home).wake(applicationId, false);
    await callHomeClock({ ...env, HOME_CLOCK: note(env.HOME_CLOCK) }, home);
    return asked;
  }

  it("at the location or in the jurisdiction that the home's variable has, the object of its clock too", async () => {
    expect(await askedFor("location=weur")).toEqual([
      { id: applicationId, locationHint: "weur" },
      { id: "2", locationHint: "weur" },
    ]);
    expect(await askedFor("jurisdiction=eu")).toEqual([
      { id: applicationId, jurisdiction: "eu" },
      { id: "2", jurisdiction: "eu" },
    ]);
    for (const nothing of [undefined, ""]) {
      expect(await askedFor(nothing)).toEqual([{ id: applicationId }, { id: "2" }]);
    }
  });

  it.each(["weur", "location=moon", "jurisdiction=weur", "location=weur,jurisdiction=eu"])(
    "and nowhere while the variable says %s: a wrong place would be for ever",
    async (place) => {
      await expect(askedFor(place)).rejects.toThrow("allocator is unavailable");
    },
  );
});
