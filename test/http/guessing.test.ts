import { afterEach, beforeEach, describe, expect, it, vi } from "vitest";
import { newApplicationId, newApplicationSecret } from "../../src/shared/identifiers.ts";
import { moveBadge } from "../badges/status-support.ts";
import { newAddress } from "../support/address.ts";
import { createApplication, type TestApplication } from "../support/application.ts";
import { callWith, countedLimit, UNLIMITED } from "../support/bindings.ts";
import { countedD1 } from "../support/d1.ts";
import { byEffort } from "../support/effort.ts";
import { bindDatabase, homeDatabase, runSql, testHome } from "../support/home.ts";
import { type Answer, outcome } from "../support/http.ts";
import { inParallel, tally, times } from "./support/draft.ts";

const REFUSALS_A_MINUTE = 120;
const LIMITED = "429 RATE_LIMITED";
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
  const counted = countedD1(homeDatabase());
  const limits = { DEVICE_LIMIT: UNLIMITED, CLIENT_IP_LIMIT: UNLIMITED, REFUSED_CALL_LIMIT: limit };
  const bindings = { ...limits, ...bindDatabase(counted.d1) };
  const call = (method: string, path: string, own: Record<string, string>, body?: unknown): Promise<Answer> =>
    callWith(bindings, method, path, { headers: { ...own, "cf-connecting-ip": address }, body });
  return {
    call,
    d1RoundTrips: () => counted.trips,
    login: (applicationid: string) =>
      call("POST", "/v1/badge", { applicationid, udid: "phone" }, { userId: "user" }).then(outcome),
    list: (applicationid: string, applicationsecret: string) =>
      call("GET", "/v1/badges", { applicationid, applicationsecret }).then(outcome),
    statusList: (id: string, list: number) => call("GET", `/v1/applications/${id}/status/${list}`, {}).then(outcome),
    invite: (headers: Record<string, string>) =>
      call("POST", "/v1/invitation", { udid: "phone", ...headers }, {}).then(outcome),
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

const NO_CREDENTIALS = "401 INVALID_CREDENTIALS";
const newId = () => newApplicationId(testHome());

/** Each guess is another. */
const KINDS: [what: string, refused: string, guess: (client: Client, known: TestApplication) => Promise<string>][] = [
  ["an application ID of a login", "401 INVALID_APPLICATIONID", (client) => client.login(newId())],
  ["an application ID of a key set", "404 UNKNOWN_APPLICATION", (client) => client.keySet(newId())],
  ["an application ID of a status list", "404 UNKNOWN_STATUSLIST", (client) => client.statusList(newId(), 0)],
  ["the number of a status list", "404 UNKNOWN_STATUSLIST", (client, { id }) => client.statusList(id, ++guessedLists)],
  ["application ID and secret", NO_CREDENTIALS, (client) => client.list(newId(), newApplicationSecret())],
  ["the secret of a known application", NO_CREDENTIALS, (client, { id }) => client.list(id, newApplicationSecret())],
  [
    "the secret of an invitation's application",
    NO_CREDENTIALS,
    (client, { id }) => client.invite({ applicationid: id, applicationsecret: newApplicationSecret() }),
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

  it("the call over the limit gets Retry-After, another address or /64 is not affected, and the count restarts with the next minute", async () => {
    const client = clientAt("2001:db8:1:2::1");
    await goOver(client);
    const answer = await client.call("GET", "/v1/badges", {});
    expect([outcome(answer), answer.headers.get("retry-after")]).toEqual([LIMITED, "60"]);
    expect(await clientAt("2001:0DB8:1:2:ffff::7").login(newId())).toBe(LIMITED);
    expect(await clientAt("2001:db8:1:3::1").login(newId())).toBe("401 INVALID_APPLICATIONID");
    vi.setSystemTime(minute + 60_000);
    expect(await client.login(newId())).toBe("401 INVALID_APPLICATIONID");
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

  it("an address over the limit has no settings read again, as another has before its call is refused", async () => {
    const [requiring, disabled] = [await createApplication({ requireSecret: true }), await createApplication()];
    await runSql("UPDATE application SET disabled_at = 1 WHERE id = ?", disabled.id);
    const call = async (client: Client) => {
      const before = client.d1RoundTrips();
      const outcomes = [await client.invite({ applicationid: requiring.id }), await client.login(disabled.id)];
      return [...outcomes, client.d1RoundTrips() - before];
    };
    await call(clientAt(newAddress()));
    const client = clientAt(newAddress());
    await goOver(client);
    vi.setSystemTime(minute + 2000);
    expect(await call(client)).toEqual([LIMITED, LIMITED, 0]);
    expect(await call(clientAt(newAddress()))).toEqual([NO_CREDENTIALS, "401 INVALID_APPLICATIONID", 2]);
  });

  it("an address is over the limit as soon as the platform's limit for its location says so", async () => {
    const twice = countedLimit(2);
    const client = clientAt("2001:db8:9:8:7:6:5:4", twice);
    const outcomes: string[] = [];
    for (const _ of times(5)) outcomes.push(await client.login(newId()));
    expect(outcomes).toEqual([...times(2).map(() => "401 INVALID_APPLICATIONID"), LIMITED, LIMITED, LIMITED]);
    expect(twice.keys).toEqual(times(3).map(() => "2001:db8:9:8::/64"));
    // And one for the IDs that exist.
    expect(client.d1RoundTrips()).toBe(4);
  });

  it("many devices at once are not guesses, even if the isolate has not loaded their application", async () => {
    const { id } = await createApplication();
    const client = clientAt(newAddress());
    expect(tally(await Promise.all(times(150).map(() => client.keySet(id))))).toEqual({ "200": 150 });
  });
});

describe("doors and phones behind an address that guesses (contract section 7)", () => {
  it("doors and phones behind a guessing address are served, also where the isolate has not loaded their application; guesses cost D1 one query", async () => {
    const door = await createApplication({ statusList: true });
    const [phone, server] = [await createApplication(), await createApplication()];
    const client = clientAt(newAddress());
    await goOver(client);
    // Calls wait for the application IDs that another call reads.
    expect(await Promise.all(times(5).map(() => client.keySet(door.id)))).toEqual(Array(5).fill("200"));
    expect(await client.statusList(door.id, 0)).toBe("200");
    expect(await client.login(phone.id)).toBe("201");
    expect(await client.list(server.id, server.secret)).toBe("200");
    expect(await client.list(server.id, newApplicationSecret())).toBe(LIMITED);
    const before = client.d1RoundTrips();
    for (const _ of times(20)) expect(await client.keySet(newId())).toBe(LIMITED);
    expect(client.d1RoundTrips()).toBe(before);
  });

  it("a door behind a guessing address may ask for a later list first, before the isolate knows how many there are", async () => {
    const { id } = await createApplication({ statusList: true });
    expect(await clientAt(newAddress()).login(id)).toBe("201");
    await moveBadge({ id }, 5 * 2 ** 17);
    const client = clientAt(newAddress());
    await goOver(client);
    const lists = [await client.statusList(id, 4), await client.statusList(id, 9), await client.statusList(id, 3)];
    expect(lists).toEqual(["200", LIMITED, "200"]);
  });

  it.each([
    ["they ask for the list after the last, to learn whether there is one: D1 is not asked for 20 seconds", true, 19],
    ["their application has no status lists: D1 is asked once a second", false, 0],
  ])("doors are not guessers, however many share an address, when %s (section 14)", async (_, statusList, seconds) => {
    const application = await createApplication({ statusList });
    const client = clientAt(newAddress());
    expect(await client.statusList(application.id, 1)).toBe("404 UNKNOWN_STATUSLIST");
    vi.setSystemTime(minute + seconds * 1000);
    const before = client.d1RoundTrips();
    const outcomes = await inParallel(times(200), () => client.statusList(application.id, 1));
    expect(tally(outcomes)).toEqual({ "404 UNKNOWN_STATUSLIST": 200 });
    expect(client.d1RoundTrips()).toBe(before);
    expect(await client.login(newId())).toBe("401 INVALID_APPLICATIONID");
  });
});

it.each<[string, object, (client: Client, known: TestApplication, made: string) => Promise<string>]>([
  ["an unknown application ID", {}, (client, _, made) => client.login(made)],
  ["a wrong secret", {}, (client, { id }, made) => client.list(id, made)],
  ["a disabled application", { disabledAt: 1 }, (client, { id }) => client.login(id)],
  ["a missing secret", { requireSecret: true }, (client, { id }) => client.invite({ applicationid: id })],
])("%s that is refused again is not looked up again (contract section 7)", async (_, columns, send) => {
  const application = await createApplication(columns);
  const client = clientAt(newAddress());
  const made = newId();
  const first = await send(client, application, made);
  expect(first).toMatch(/^401 /);
  const before = client.d1RoundTrips();
  for (const _time of times(20)) expect(await send(client, application, made)).toBe(first);
  expect(client.d1RoundTrips()).toBe(before);
});
