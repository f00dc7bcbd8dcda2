import { env } from "cloudflare:workers";
import { describe, expect, it, onTestFinished, vi } from "vitest";
import { eventPage } from "../../src/shared/event-responses.ts";
import { databaseBindingOf } from "../../src/shared/homes.ts";
import { newApplicationId } from "../../src/shared/identifiers.ts";
import { AllocatorClient } from "../../src/worker/allocator/allocator-client.ts";
import { homesOf, queueOf } from "../../src/worker/homes.ts";
import { tickHome } from "../../src/worker/scheduling/scheduler-client.ts";
import { NOTHING, ROUTES, requestOf } from "../http/support/routes.ts";
import { bindObject } from "../support/allocator.ts";
import { createApplication, type TestApplication } from "../support/application.ts";
import { callWith, UNLIMITED } from "../support/bindings.ts";
import { ahead, HOUR } from "../support/clock.ts";
import { aroundD1, countedD1 } from "../support/d1.ts";
import { boundHome } from "../support/home.ts";
import { type call, outcome, serverHeaders } from "../support/http.ts";
import { RECORDED_EVENTS } from "../support/rows.ts";

type Send = typeof call;

const sender = (bindings: Partial<Env>): Send =>
  callWith.bind(null, { DEVICE_LIMIT: UNLIMITED, CLIENT_IP_LIMIT: UNLIMITED, ...bindings });

/** One call of every route that names an application, about what is made for it. @returns each call's status and code */
async function callEverything(
  send: Send,
  { id, secret }: Pick<TestApplication, "id" | "secret">,
): Promise<Record<string, string>> {
  const server = { applicationid: id, applicationsecret: secret };
  const outcomes: Record<string, string> = {};
  const invite = { headers: { ...server, udid: "server" }, body: { expiresAt: ahead(HOUR) } };
  for (const route of ROUTES.filter(({ by, path }) => by !== null || path.includes("{applicationId}"))) {
    const device = { applicationid: id, udid: `phone for ${route.name}` };
    const isOf = (part: string) => route.path.includes(part);
    const login = { headers: device, body: { userId: "alice" } };
    const badge = isOf("/badges/") || isOf("/sign") ? await send("POST", "/v1/badge", login) : undefined;
    const invitation = isOf("/invitation") ? await send("POST", "/v1/invitation", invite) : undefined;
    const events = isOf("/events/") ? (await send("GET", "/v1/events", { headers: server })).body : {};
    const { path, body } = requestOf(route, {
      application: id,
      badge: String(badge?.body.badgeId ?? NOTHING.badge),
      user: "alice",
      invitation: String(invitation?.body.id ?? NOTHING.invitation),
      event: eventPage.safeParse(events).data?.events[0]?.id ?? NOTHING.event,
    });
    const invited = route.name === "GET /v1/invitation" && { invitationtoken: String(invitation?.body.id) };
    const headers = { ...device, ...(route.by !== "device" && server), ...invited };
    outcomes[route.name] = outcome(await send(route.method, path, { headers, body }));
  }
  const escaped = `/v1/applications/${id.replace("_", "%5F")}/jwks.json`;
  return { ...outcomes, "an escaped ID": outcome(await send("GET", escaped)) };
}

describe("an application lives in the home that its ID names (contract section 17)", () => {
  it.each([1, 2])("of home %i: no call of any route reaches the other home's D1", async (home) => {
    const other = 3 - home;
    const application = await createApplication({ ...RECORDED_EVENTS, home, statusList: true });
    let reached = 0;
    const out = {
      [databaseBindingOf(other)]: aroundD1(boundHome(other).d1, () => {
        reached++;
        throw new Error("this home is down");
      }),
    };
    await bindObject(application, () => out);
    const {
      "GET /v1/user/badges": own,
      "PATCH /v1/user/badges/{id}/suspend": suspended,
      ...outcomes
    } = await callEverything(sender(out), application);
    expect(Object.entries(outcomes).filter(([, each]) => !/^20\d$/.test(each))).toEqual([]);
    // Without an identity provider nobody proves to be a user.
    expect([own, suspended]).toEqual(["401 INVALID_USERTOKEN", "401 INVALID_USERTOKEN"]);
    expect(reached).toBe(0);
    const count = async (number: number) =>
      await boundHome(number)
        .d1.prepare("SELECT count(*) AS badges FROM badge WHERE application_id = ?1")
        .bind(application.id)
        .first<{ badges: number }>();
    expect((await count(home))?.badges).toBeGreaterThan(5);
    expect(await count(other)).toEqual({ badges: 0 });
  });

  it("every route refuses an application of a home that is not bound as unknown, and no D1 is asked", async () => {
    const [one, two] = [countedD1(env.DB), countedD1(boundHome(2).d1)];
    const counting = sender({ DB: one.d1, DB_2: two.d1, REFUSED_CALL_LIMIT: UNLIMITED });
    const secret = "bdss_unknown";
    const unbound = await callEverything(counting, { id: newApplicationId(7), secret });
    expect([one.trips, two.trips]).toEqual([0, 0]);
    expect(unbound).toEqual(await callEverything(counting, { id: newApplicationId(1), secret }));
    expect(one.trips).toBeGreaterThan(0);
    expect(unbound).toMatchObject({
      "POST /v1/badge": "401 INVALID_APPLICATIONID",
      "GET /v1/applications/{applicationId}/jwks.json": "404 UNKNOWN_APPLICATION",
    });
  });

  it("health asks home 1, whichever application the caller names", async () => {
    const application = await createApplication({ home: 2 });
    onTestFinished(() => void vi.useRealTimers());
    const down = <Result>(): Promise<Result> => Promise.reject(new Error("this home is down"));
    const health = async (bindings: Partial<Env>) => {
      // An isolate asks once a second.
      vi.setSystemTime(Date.now() + 1000);
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
          if (name === "jurisdiction") return (of: string) => note(target, String(of));
          return (id: string, options?: object) => {
            asked.push({ id, ...options, ...(jurisdiction !== undefined && { jurisdiction }) });
            return { wake: async () => {}, tick: async () => {} };
          };
        },
      });
    const home = { ...boundHome(2), place };
    await new AllocatorClient(note(env.ALLOCATOR), home).wake(applicationId, false);
    await tickHome({ ...env, HOME_SCHEDULER: note(env.HOME_SCHEDULER) }, home);
    return asked;
  }

  it("objects are made at the location or in the jurisdiction that the home's variable has, its scheduler too", async () => {
    expect(await askedFor("location=weur")).toEqual([
      { id: applicationId, locationHint: "weur" },
      { id: "2", locationHint: "weur" },
    ]);
    expect(await askedFor("jurisdiction=eu")).toEqual([
      { id: applicationId, jurisdiction: "eu" },
      { id: "2", jurisdiction: "eu" },
    ]);
    for (const hint of ["wnam", "enam", "sam", "eeur", "apac", "apac-ne", "apac-se", "oc", "afr", "me"]) {
      expect(await askedFor(`location=${hint}`)).toContainEqual({ id: "2", locationHint: hint });
    }
    for (const name of ["us", "fedramp"]) {
      expect(await askedFor(`jurisdiction=${name}`)).toContainEqual({ id: "2", jurisdiction: name });
    }
    for (const nothing of [undefined, ""]) {
      expect(await askedFor(nothing)).toEqual([{ id: applicationId }, { id: "2" }]);
    }
  });

  it.each(["weur", "location=moon", "jurisdiction=weur", "location=weur,jurisdiction=eu"])(
    "objects are made nowhere while the home's variable says %s: a wrong place would be for ever",
    async (place) => {
      await expect(askedFor(place)).rejects.toThrow(/Invalid option|HOME_2 is neither/);
    },
  );
});

it("the homes are those with a D1 bound under their name, in the order of their numbers, each with its place (contract section 17)", () => {
  const { d1 } = boundHome(2);
  const none = { DB_4: "a text", DB_5: null, DB_6: {}, DB_7: { prepare: d1.prepare }, DB_8: { batch: d1.batch } };
  const bound = Object.assign({}, env, {
    DB_10: d1,
    DB_3: d1,
    ...none,
    HOME_1: "location=enam",
    HOME_3: "location=oc",
  });
  const places = homesOf(bound).map(({ number, place }) => [number, place]);
  expect(places.filter(([number]) => number !== 2)).toEqual([
    [1, "location=enam"],
    [3, "location=oc"],
    [10, undefined],
  ]);
});

it("a home in a jurisdiction sends to its own queue, any other home to home 1's (contract sections 17 and 25)", () => {
  const own = { send: () => {}, sendBatch: () => {} };
  // Where such a home is deployed, the types have its queue.
  const none = {
    WEBHOOKS_4: "a text",
    WEBHOOKS_5: null,
    WEBHOOKS_6: { send: own.send },
    WEBHOOKS_7: { sendBatch: own.send },
  };
  const bound = Object.assign({}, env, { WEBHOOKS_2: own, ...none });
  for (const home of [1, 3, 4, 5, 6, 7]) expect(queueOf(bound, home)).toBe(env.WEBHOOKS);
  expect(queueOf(bound, 2)).toBe(own);
});
