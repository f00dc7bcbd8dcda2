import { decodeJwt } from "jose";
import { describe, expect, it, onTestFinished } from "vitest";
import { hoursAhead, invite } from "../http/support/invitations.ts";
import { useQuietLog } from "../invitations/support/log.ts";
import { CALLS as MODELLED } from "../long-runs/scale/latency.ts";
import { expectDocumented } from "../support/documented.ts";
import { testHome } from "../support/home.ts";
import { call } from "../support/http.ts";
import { isSettled, StandingTimers } from "../support/timers.ts";
import { takeStep } from "./life-support.ts";
import { ALICE, BADGE, FarPhone, phoneWithBadge, SIGN, SIGNED } from "./near-support.ts";

useQuietLog();

/** From here to the end of the running test, time passes only by `pass`. */
function stopTime(): StandingTimers {
  const timers = new StandingTimers();
  onTestFinished(() => timers.stop());
  return timers;
}

type Stage = Awaited<ReturnType<typeof phoneWithBadge>>;

const withoutBookmark = ({ application, d1 }: Stage) => new FarPhone(application, "phone", d1);
const onNewDevice = ({ application, d1 }: Stage) => new FarPhone(application, "another phone", d1);

type Act = (stage: Stage) => ReturnType<FarPhone["call"]>;

const tripsOf = (copy: number, primary: number, object: number, far: number) => ({ copy, primary, object, far });

/** With an invitation that the copy has. */
const claim: Act = async ({ application, d1, phone }) => {
  const { id } = await invite(application);
  await d1.catchUp();
  return phone.logIn({ ...ALICE, invitationToken: id });
};

const claimAgain: Act = async ({ application, d1, phone }) => {
  const { id } = await invite(application);
  await phone.logIn({ ...ALICE, invitationToken: id });
  await d1.catchUp();
  return phone.logIn({ ...ALICE, invitationToken: id });
};

/**
 * Every call begins with an application that the isolate knows, and a copy of D1 that is up to date. The trips are to the copy,
 * the primary and the object, and those that are far.
 */
const CALLS: [name: string, status: number, trips: ReturnType<typeof tripsOf>, act: Act][] = [
  ["a login with a bookmark", 200, tripsOf(1, 0, 0, 0), ({ phone }) => phone.logIn()],
  ["a signature with a bookmark", 200, tripsOf(1, 0, 0, 0), ({ phone }) => phone.sign()],
  [
    "a signature of one badge, with a bookmark",
    200,
    tripsOf(1, 0, 0, 0),
    ({ phone, badgeId }) => phone.sign({ ...SIGNED, badgeId }),
  ],
  ["a login without a bookmark", 200, tripsOf(1, 1, 0, 1), (stage) => withoutBookmark(stage).logIn()],
  ["a signature without a bookmark", 200, tripsOf(0, 1, 0, 1), (stage) => withoutBookmark(stage).sign()],
  ["a new badge", 201, tripsOf(1, 0, 1, 1), (stage) => onNewDevice(stage).logIn()],
  [
    "a new badge with a bookmark: another user of the device",
    201,
    tripsOf(1, 0, 1, 1),
    ({ phone }) => phone.logIn({ userId: "bob" }),
  ],
  ["a claimed invitation", 201, tripsOf(1, 0, 1, 1), claim],
  ["a claim that is repeated", 200, tripsOf(1, 0, 0, 0), claimAgain],
  [
    "an invitation",
    201,
    tripsOf(0, 0, 1, 1),
    ({ phone }) => phone.call("/v1/invitation", { expiresAt: hoursAhead(1) }),
  ],
  [
    "a login with new metadata",
    200,
    tripsOf(1, 0, 1, 1),
    ({ phone }) => phone.logIn({ ...ALICE, metadata: { os: "iOS" } }),
  ],
];

describe("the far trips of a call beside a copy of D1 (contract section 16)", () => {
  it.each(CALLS)("%s: %i", async (_, status, trips, act) => {
    const answer = await act(await phoneWithBadge());
    expect([answer.status, answer.trips]).toEqual([status, trips]);
  });
});

describe("the model of latencies (docs/performance.md)", () => {
  it.each([
    ["login, with a bookmark", "a login with a bookmark"],
    ["signature, with a bookmark", "a signature with a bookmark"],
    ["login, no bookmark", "a login without a bookmark"],
    ["signature, no bookmark", "a signature without a bookmark"],
    ["new badge", "a new badge"],
    ["claim", "a claimed invitation"],
    ["invitation", "an invitation"],
  ])("the model of latencies calculates with the trips that are counted here: %s", (modelled, counted) => {
    const { copy, far } = CALLS.find(([name]) => name === counted)?.[2] ?? {};
    expect(MODELLED.find(({ name }) => name === modelled)?.nearCopy).toEqual({ copy, far });
  });
});

const HOME = testHome();
const FORM = new RegExp(`^${HOME}\\.[0-9a-f]{8}-[0-9a-f]{8}-[0-9a-f]{8}-[0-9a-f]{32}$`);

describe("the bookmark of a response (contract section 16)", () => {
  it("each 200 and 201 has a bookmark, wherever the response comes from", async () => {
    const stage = await phoneWithBadge();
    for (const [name, status, , act] of CALLS.filter(([name]) => name !== "an invitation")) {
      await stage.d1.catchUp();
      const answer = await act(stage);
      expect([name, answer.headers.get("bookmark")]).toEqual([name, expect.stringMatching(FORM)]);
      expect([200, 201]).toContain(answer.status);
      const { headers, body } = answer;
      const path = name.includes("signature") ? SIGN : BADGE;
      if (answer.status === status)
        expectDocumented({ method: "POST", path, status, headers, body: JSON.stringify(body) });
    }
  });

  it.each([BADGE, SIGN])("web pages of any origin may send and read the bookmark: %s", async (path) => {
    const { phone } = await phoneWithBadge();
    const listOf = (text: string | null) => text?.split(",");
    const preflight = await call("OPTIONS", path, { headers: { origin: "https://app.example" } });
    expect(listOf(preflight.headers.get("access-control-allow-headers"))).toContain("bookmark");
    const { headers } = await phone.call(path, path === BADGE ? ALICE : SIGNED);
    expect(listOf(headers.get("access-control-expose-headers"))).toContain("bookmark");
  });

  it("a refusal has no bookmark", async () => {
    const { application, phone, badgeId } = await phoneWithBadge();
    await takeStep(application, badgeId, "suspend");
    phone.bookmark = null;
    const refusals = [
      await phone.logIn(),
      await phone.sign(),
      await phone.sign({ ...SIGNED, badgeId: "1" }),
      await phone.logIn({ ...ALICE, invitationToken: "inv_unknown" }),
      await phone.logIn({}),
    ];
    expect(refusals.map(({ status, headers }) => [status, headers.get("bookmark")])).toEqual([
      [403, null],
      [403, null],
      [404, null],
      [404, null],
      [422, null],
    ]);
  });

  it("the bookmark of a write makes the next call wait for a copy that has the write", async () => {
    const { phone, d1, application } = await phoneWithBadge();
    const { id, badgeId } = await invite(application);
    expect((await phone.logIn({ ...ALICE, invitationToken: id })).status).toBe(201);
    const timers = stopTime();
    const before = d1.copyTrips;
    const signing = phone.sign();
    await timers.pass(999, () => d1.copyTrips > before);
    expect(await isSettled(signing)).toBe(false);
    await d1.catchUp();
    const { status, body, trips } = await signing;
    expect([status, trips]).toEqual([200, { copy: 1, primary: 0, object: 0, far: 0 }]);
    expect(decodeJwt(String(body.signature)).sub).toBe(badgeId);
  });

  it("the primary responds after a second if the copy stays behind the bookmark of a write", async () => {
    const { phone, d1 } = await phoneWithBadge();
    const { body } = await phone.logIn({ userId: "bob" });
    const timers = stopTime();
    const before = d1.copyTrips;
    const logIn = phone.logIn({ userId: "bob" });
    await timers.pass(999, () => d1.copyTrips > before);
    expect(await isSettled(logIn)).toBe(false);
    await timers.pass(1);
    const { status, trips, body: repeated } = await logIn;
    expect([status, repeated.badgeId, trips]).toEqual([200, body.badgeId, { copy: 1, primary: 1, object: 0, far: 2 }]);
  });
});

describe("a bookmark that is not one (contract section 16)", () => {
  const VALID = "00000000-00000001-00000000-00000000000000000000000000000000";
  const NONE = [
    ["blank", " "],
    ["D1's own words for any copy", "first-unconstrained"],
    ["the same with a home", `${HOME}.first-unconstrained`],
    ["without a home", VALID],
    ["another home's", `${3 - HOME}.${VALID}`],
    ["a home with a leading zero", `0${HOME}.${VALID}`],
    ["in capital letters", `${HOME}.${VALID.replace("1-", "A-")}`],
    ["too long", `${HOME}.${VALID}0`],
    ["two of them", `${HOME}.${VALID}, ${HOME}.${VALID}`],
  ] as const;

  it.each(NONE)("a malformed bookmark counts as none: %s", async (_, bookmark) => {
    const { phone } = await phoneWithBadge();
    phone.bookmark = bookmark;
    const { status, trips } = await phone.sign();
    expect([status, trips]).toEqual([200, { copy: 0, primary: 1, object: 0, far: 1 }]);
  });

  it("a forged bookmark costs its sender a second, and the response has a true one", async () => {
    const { phone, d1 } = await phoneWithBadge();
    const timers = stopTime();
    const forged = `${HOME}.ffffffff-ffffffff-ffffffff-${"f".repeat(32)}`;
    for (const act of [() => phone.logIn(), () => phone.sign()]) {
      phone.bookmark = forged;
      const before = d1.copyTrips;
      const answer = act();
      await timers.pass(999, () => d1.copyTrips > before);
      expect(await isSettled(answer)).toBe(false);
      await timers.pass(1);
      const { status, trips } = await answer;
      expect([status, trips]).toEqual([200, { copy: 1, primary: 1, object: 0, far: 2 }]);
      expect(phone.bookmark).toMatch(new RegExp(`^${HOME}\\.0{8}-`));
    }
  });
});

describe("the far trips of a call where D1 has no copy, or the primary is the nearest (contract section 16)", () => {
  it.each([
    { name: "a login", act: (phone: FarPhone) => phone.logIn() },
    { name: "a signature", act: (phone: FarPhone) => phone.sign() },
  ])("$name with a bookmark and without: 1", async ({ act }) => {
    const { phone, d1 } = await phoneWithBadge();
    d1.behaviour = "is missing";
    for (const bookmark of [phone.bookmark, null]) {
      phone.bookmark = bookmark;
      const { status, trips } = await act(phone);
      expect([status, trips]).toEqual([200, { copy: 0, primary: 1, object: 0, far: 1 }]);
    }
  });

  it("a new badge takes two far trips: to the primary and to the object", async () => {
    const stage = await phoneWithBadge();
    stage.d1.behaviour = "is missing";
    const { status, trips } = await onNewDevice(stage).logIn();
    expect([status, trips]).toEqual([201, { copy: 0, primary: 1, object: 1, far: 2 }]);
  });
});
