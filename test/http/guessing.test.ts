import { afterEach, beforeEach, describe, expect, it, vi } from "vitest";
import { newApplicationId, newApplicationSecret } from "../../src/shared/identifiers.ts";
import { newAddress } from "../support/address.ts";
import { createApplication, type TestApplication } from "../support/application.ts";
import { callWith, countedLimit, UNLIMITED } from "../support/bindings.ts";
import { aroundD1 } from "../support/d1.ts";
import { byEffort } from "../support/effort.ts";
import { bindDatabase, homeDatabase, testHome } from "../support/home.ts";
import type { Answer } from "../support/http.ts";
import { ascii, inParallel, outcome, tally, times } from "./support/draft.ts";

const REFUSALS_A_MINUTE = 120;
const LIMITED = "429 RATE_LIMITED";
/** How often somebody guesses. */
const GUESSES = byEffort(150, 2000);

beforeEach(() => {
  // The beginning of a minute: none of these tests takes one. Each has a minute of its own.
  minute += 60_000;
  vi.setSystemTime(minute);
});

afterEach(() => {
  vi.useRealTimers();
});

let minute = Date.UTC(2031, 0, 1);

/** A client of one address, whose round trips to D1 are counted. */
function clientAt(address: string, limit: RateLimit = UNLIMITED) {
  let d1RoundTrips = 0;
  const bindings = {
    DEVICE_LIMIT: UNLIMITED,
    CLIENT_IP_LIMIT: UNLIMITED,
    REFUSED_CALL_LIMIT: limit,
    ...bindDatabase(
      aroundD1(homeDatabase(), (_, send) => {
        d1RoundTrips++;
        return send();
      }),
    ),
  };
  const call = (method: string, path: string, headers: Record<string, string>, body?: unknown): Promise<Answer> =>
    callWith(
      bindings,
      new Request(`https://badges.example${path}`, {
        method,
        headers: { ...headers, "cf-connecting-ip": address },
        ...(body !== undefined && { body: JSON.stringify(body) }),
      }),
    );
  return {
    call,
    d1RoundTrips: () => d1RoundTrips,
    login: (applicationid: string) =>
      call("POST", "/v1/badge", { applicationid, udid: "phone" }, { userId: "user" }).then(outcome),
    list: (applicationid: string, applicationsecret: string) =>
      call("GET", "/v1/badges", { applicationid, applicationsecret }).then(outcome),
    statusList: (id: string, list: number) => call("GET", `/v1/applications/${id}/status/${list}`, {}).then(outcome),
    keySet: (id: string) => call("GET", `/v1/applications/${id}/jwks.json`, {}).then(outcome),
  };
}

type Client = ReturnType<typeof clientAt>;

/** Guesses until the address is over its limit. */
async function goOver(client: Client): Promise<void> {
  const outcomes = await inParallel(times(REFUSALS_A_MINUTE + 1), () => client.login("no application ID"));
  expect(tally(outcomes)).toEqual({ "401 INVALID_APPLICATIONID": REFUSALS_A_MINUTE, [LIMITED]: 1 });
}

/** Doors ask for list 1 to learn whether there is one, so that is no guess. */
let guessedLists = 1;

type Guess = (client: Client, known: TestApplication) => Promise<string>;

const NO_CREDENTIALS = "401 INVALID_CREDENTIALS";

/** Each guess is another. */
const KINDS: [what: string, refused: string, guess: Guess][] = [
  ["an application ID of a login", "401 INVALID_APPLICATIONID", (client) => client.login(newApplicationId(testHome()))],
  [
    "an application ID of a key set",
    "404 UNKNOWN_APPLICATION",
    (client) => client.keySet(newApplicationId(testHome())),
  ],
  [
    "an application ID of a status list",
    "404 UNKNOWN_STATUSLIST",
    (client) => client.statusList(newApplicationId(testHome()), 0),
  ],
  ["the number of a status list", "404 UNKNOWN_STATUSLIST", (client, { id }) => client.statusList(id, ++guessedLists)],
  [
    "application ID and secret of a list",
    NO_CREDENTIALS,
    (client) => client.list(newApplicationId(testHome()), newApplicationSecret()),
  ],
  [
    "the secret of an application that is known",
    NO_CREDENTIALS,
    (client, { id }) => client.list(id, newApplicationSecret()),
  ],
  [
    "the secret of an invitation's application",
    NO_CREDENTIALS,
    async (client, { id }) => {
      const headers = { applicationid: id, applicationsecret: newApplicationSecret(), udid: "phone" };
      return outcome(await client.call("POST", "/v1/invitation", headers, {}));
    },
  ],
  [
    "the secret of a revocation's application",
    NO_CREDENTIALS,
    async (client, { id }) => {
      const headers = { applicationid: id, applicationsecret: newApplicationSecret() };
      return outcome(await client.call("PATCH", "/v1/invitation/inv_unknown/revoke", headers));
    },
  ],
];

describe("guessing does not load D1 (contract section 7)", () => {
  it.each(KINDS)(
    `${GUESSES} guesses from one address at %s: 120 are refused, and D1 is queried some 120 times`,
    async (_, refused, guess) => {
      const application = await createApplication({ statusList: true });
      const client = clientAt(newAddress());
      await clientAt(newAddress()).login(application.id);
      const outcomes = await inParallel(times(GUESSES), () => guess(client, application), 200);
      expect(tally(outcomes)).toEqual({ [refused]: REFUSALS_A_MINUTE, [LIMITED]: GUESSES - REFUSALS_A_MINUTE });
      // And once for the IDs that exist, by which doors and phones at this address are told from guesses.
      expect(client.d1RoundTrips()).toBeLessThanOrEqual(122);
    },
  );

  it("the call over the limit gets Retry-After, and the count restarts with the next minute", async () => {
    const client = clientAt(newAddress());
    await goOver(client);
    const answer = await client.call("GET", "/v1/badges", {});
    expect([outcome(answer), answer.headers.get("retry-after")]).toEqual([LIMITED, "60"]);
    vi.setSystemTime(minute + 60_000);
    expect(await client.login(newApplicationId(testHome()))).toBe("401 INVALID_APPLICATIONID");
  });

  it("another address or another /64 is not affected", async () => {
    await goOver(clientAt("2001:db8:1:2::1"));
    const unknown = newApplicationId(testHome());
    expect(await clientAt("2001:0DB8:1:2:ffff::7").login(unknown)).toBe(LIMITED);
    expect(await clientAt("2001:db8:1:3::1").login(unknown)).toBe("401 INVALID_APPLICATIONID");
    expect(await clientAt(newAddress()).login(unknown)).toBe("401 INVALID_APPLICATIONID");
  });

  it("an address over the limit is still served from the isolate's cache; a guess at a secret is not looked up", async () => {
    const known = await createApplication();
    const client = clientAt(newAddress());
    expect(await clientAt(newAddress()).login(known.id)).toBe("201");
    await goOver(client);
    expect(await client.login(known.id)).toBe("200");
    expect(await client.list(known.id, known.secret)).toBe("200");
    expect(await client.keySet(known.id)).toBe("200");
    const before = client.d1RoundTrips();
    for (const _ of times(5)) expect(await client.list(known.id, newApplicationSecret())).toBe(LIMITED);
    expect(client.d1RoundTrips()).toBe(before);
    // What was known does not become a guess by growing old.
    vi.setSystemTime(minute + 40_000);
    expect(await client.login(known.id)).toBe("200");
  });

  it("an address is over the limit as soon as the platform's limit for its location says so", async () => {
    const twice = countedLimit(2);
    const client = clientAt("2001:db8:9:8:7:6:5:4", twice);
    const outcomes: string[] = [];
    for (const _ of times(5)) outcomes.push(await client.login(newApplicationId(testHome())));
    expect(outcomes).toEqual([...times(2).map(() => "401 INVALID_APPLICATIONID"), LIMITED, LIMITED, LIMITED]);
    expect(twice.keys).toEqual(times(3).map(() => "2001:db8:9:8::/64"));
    // And one for the IDs that exist.
    expect(client.d1RoundTrips()).toBe(4);
  });

  it("many devices at once are not guesses, even if the isolate has not loaded their application", async () => {
    const application = await createApplication();
    const client = clientAt(newAddress());
    const outcomes = await Promise.all(times(150).map(() => client.keySet(application.id)));
    expect(tally(outcomes)).toEqual({ "200": 150 });
  });
});

describe("doors and phones behind an address that guesses (contract section 7)", () => {
  it("doors and phones behind a guessing address are served, also where the isolate has not loaded their application; guesses cost D1 one query", async () => {
    const [door, phone, server] = [
      await createApplication({ statusList: true }),
      await createApplication(),
      await createApplication(),
    ];
    const client = clientAt(newAddress());
    await goOver(client);
    expect(await client.keySet(door.id)).toBe("200");
    expect(await client.statusList(door.id, 0)).toBe("200");
    expect(await client.login(phone.id)).toBe("201");
    expect(await client.list(server.id, server.secret)).toBe("200");
    expect(await client.list(server.id, newApplicationSecret())).toBe(LIMITED);
    const before = client.d1RoundTrips();
    for (const _ of times(20)) expect(await client.keySet(newApplicationId(testHome()))).toBe(LIMITED);
    expect(client.d1RoundTrips()).toBe(before);
  });

  it("doors and phones behind a guessing address are served from 20 s after their application was made", async () => {
    const client = clientAt(newAddress());
    await goOver(client);
    expect(await client.keySet((await createApplication()).id)).toBe("200");
    const { id } = await createApplication();
    expect(await client.keySet(id)).toBe(LIMITED);
    vi.setSystemTime(minute + 20_000);
    expect(await client.keySet(id)).toBe("200");
  });

  it("calls wait for the application IDs that another call reads", async () => {
    const doors = await Promise.all(times(5).map(() => createApplication()));
    const client = clientAt(newAddress());
    await goOver(client);
    const outcomes = await Promise.all(doors.map(({ id }) => client.keySet(id)));
    expect(tally(outcomes)).toEqual({ "200": 5 });
  });

  it("a door behind a guessing address may ask for a later list first, before the isolate knows how many there are", async () => {
    const application = await createApplication({ statusList: true });
    // As if so many badges had been issued.
    expect(await clientAt(newAddress()).login(application.id)).toBe("201");
    await homeDatabase()
      .prepare("UPDATE badge SET ordinal = ?2 WHERE application_id = ?1")
      .bind(application.id, 5 * 2 ** 17)
      .run();
    const client = clientAt(newAddress());
    await goOver(client);
    expect(await client.statusList(application.id, 4)).toBe("200");
    expect(await client.statusList(application.id, 9)).toBe(LIMITED);
    expect(await client.statusList(application.id, 3)).toBe("200");
  });
});

describe("doors are not guessers, however many share an address (contract sections 7 and 14)", () => {
  const polls = REFUSALS_A_MINUTE + 80;

  it.each([
    [
      "when they ask for the list after the last, to learn whether there is one: D1 is not asked for 20 seconds",
      true,
      19,
    ],
    ["when their application has no status lists: D1 is asked once a second", false, 0],
  ])("%s", async (_, statusList, seconds) => {
    const application = await createApplication({ statusList });
    const client = clientAt(newAddress());
    expect(await client.statusList(application.id, 1)).toBe("404 UNKNOWN_STATUSLIST");
    vi.setSystemTime(minute + seconds * 1000);
    const before = client.d1RoundTrips();
    const outcomes = await inParallel(times(polls), () => client.statusList(application.id, 1));
    expect(tally(outcomes)).toEqual({ "404 UNKNOWN_STATUSLIST": polls });
    expect(client.d1RoundTrips()).toBe(before);
    expect(await client.login(newApplicationId(testHome()))).toBe("401 INVALID_APPLICATIONID");
  });
});

describe("what is refused again is not looked up again (contract section 7)", () => {
  type Repeated = (client: Client, known: TestApplication, made: { id: string; secret: string }) => Promise<string>;

  it.each<[string, Parameters<typeof createApplication>[0], Repeated]>([
    ["an unknown application ID", {}, (client, _known, made) => client.login(made.id)],
    ["a wrong secret", {}, (client, { id }, made) => client.list(id, made.secret)],
    ["a disabled application", { disabledAt: 1 }, (client, { id }) => client.login(id)],
    [
      "a missing secret",
      { requireSecret: true },
      async (client, { id }) =>
        outcome(await client.call("POST", "/v1/invitation", { applicationid: id, udid: "phone" }, {})),
    ],
  ])("%s", async (_, columns, send) => {
    const application = await createApplication(columns);
    const client = clientAt(newAddress());
    const made = { id: newApplicationId(testHome()), secret: newApplicationSecret() };
    const first = await send(client, application, made);
    expect(first).toMatch(/^401 /);
    const before = client.d1RoundTrips();
    for (const _time of times(20)) expect(await send(client, application, made)).toBe(first);
    expect(client.d1RoundTrips()).toBe(before);
  });

  it("guesses do not evict the applications that an isolate knows", async () => {
    const application = await createApplication();
    const client = clientAt(newAddress());
    expect(await client.login(application.id)).toBe("201");
    await inParallel(times(520), () => clientAt(newAddress()).login(newApplicationId(testHome())));
    const before = client.d1RoundTrips();
    expect(await client.login(application.id)).toBe("200");
    expect(client.d1RoundTrips()).toBe(before + 1);
  });

  it("an ID that was unknown is looked up again after 30 s", async () => {
    const { id } = await createApplication();
    const rename = (from: string, to: string) =>
      homeDatabase().batch([
        homeDatabase().prepare("PRAGMA defer_foreign_keys = true"),
        ...["application_secret", "signing_key"].map((table) =>
          homeDatabase().prepare(`UPDATE ${table} SET application_id = ?2 WHERE application_id = ?1`).bind(from, to),
        ),
        homeDatabase().prepare("UPDATE application SET id = ?2 WHERE id = ?1").bind(from, to),
      ]);
    const client = clientAt(newAddress());
    const away = newApplicationId(testHome());
    await rename(id, away);
    expect(await client.keySet(id)).toBe("404 UNKNOWN_APPLICATION");
    await rename(away, id);
    vi.setSystemTime(Date.now() + 30_000);
    expect(await client.keySet(id), ascii(id)).toBe("200");
  });
});
