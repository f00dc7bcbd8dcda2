import { decodeJwt } from "jose";
import { describe, expect, it } from "vitest";
import { ahead, HOUR, moveClock, SECOND, useStandingClock } from "../support/clock.ts";
import { expectDocumented } from "../support/documented.ts";
import { testHome } from "../support/home.ts";
import { A_SIGNATURE, BADGE, SIGN } from "../support/http.ts";
import { invite } from "../support/invitations.ts";
import { takeStep } from "./life-support.ts";
import { ALICE, FarPhone, phoneWithBadge, waitForCopy } from "./near-support.ts";

useStandingClock();

type Stage = Awaited<ReturnType<typeof phoneWithBadge>>;

const withoutBookmark = ({ application, d1 }: Stage) => new FarPhone(application, "phone", d1);
const onNewDevice = ({ application, d1 }: Stage) => new FarPhone(application, "another phone", d1);

type Act = (stage: Stage) => ReturnType<FarPhone["call"]>;

/** The trips are to the copy, the primary and the object, and those that are far. */
type CountedCall = [name: string, status: number, trips: [number, number, number, number], act: Act];

/** A claim of an invitation that the copy has. @param claims how often it was claimed before */
const claimAfter =
  (claims: number): Act =>
  async ({ application, d1, phone }) => {
    const { token: invitationToken } = await invite(application);
    for (let made = 0; made < claims; made++) await phone.logIn({ ...ALICE, invitationToken });
    await d1.catchUp();
    return phone.logIn({ ...ALICE, invitationToken });
  };

/** Every call begins with an application that the isolate knows, and a copy of D1 that is up to date. */
const CALLS: CountedCall[] = [
  ["a login with a bookmark", 200, [1, 0, 0, 0], ({ phone }) => phone.logIn()],
  [
    "a signature of one badge, with a bookmark",
    200,
    [1, 0, 0, 0],
    ({ phone, badgeId }) => phone.sign({ ...A_SIGNATURE, badgeId }),
  ],
  ["a login without a bookmark", 200, [1, 1, 0, 1], (stage) => withoutBookmark(stage).logIn()],
  ["a signature without one", 200, [0, 1, 0, 1], (stage) => withoutBookmark(stage).sign()],
  ["a new badge", 201, [1, 0, 1, 1], (stage) => onNewDevice(stage).logIn()],
  ["a new badge with a bookmark", 201, [1, 0, 1, 1], ({ phone }) => phone.logIn({ userId: "bob" })],
  ["a claimed invitation", 201, [1, 0, 1, 1], claimAfter(0)],
  ["a claim that is repeated", 200, [1, 0, 0, 0], claimAfter(1)],
  ["a login with new metadata", 200, [1, 0, 1, 1], ({ phone }) => phone.logIn({ ...ALICE, metadata: { os: "iOS" } })],
];

const HOME = testHome();
const FORM = new RegExp(`^${HOME}\\.[0-9a-f]{8}-[0-9a-f]{8}-[0-9a-f]{8}-[0-9a-f]{32}$`);

describe("the far trips of a call beside a copy of D1 (contract section 16)", () => {
  it.each(CALLS)(
    "%s takes the counted trips alone, and its response has a bookmark",
    async (name, status, [copy, primary, object, far], act) => {
      const stage = await phoneWithBadge();
      // A login does not read settings again, however old they are.
      moveClock(2 * SECOND);
      const { headers, body, ...answer } = await act(stage);
      expect(answer).toEqual({ status, trips: { copy, primary, object, far } });
      expect(headers.get("bookmark")).toMatch(FORM);
      const path = name.includes("signature") ? SIGN : BADGE;
      expectDocumented({ method: "POST", path, status, headers, body: JSON.stringify(body) });
    },
  );

  it("an invitation takes one far trip, to the object", async () => {
    const { phone } = await phoneWithBadge();
    const { status, trips } = await phone.call("/v1/invitation", { expiresAt: ahead(HOUR) });
    expect([status, trips]).toEqual([201, { copy: 0, primary: 0, object: 1, far: 1 }]);
  });
});

describe("the bookmark of a response (contract section 16)", () => {
  it("a refusal has no bookmark", async () => {
    const { application, phone, badgeId } = await phoneWithBadge();
    await takeStep(application, badgeId, "suspend");
    phone.bookmark = null;
    for (const refused of [await phone.logIn(), await phone.sign(), await phone.logIn({})]) {
      expect(refused.status).toBeGreaterThanOrEqual(400);
      expect(refused.headers.get("bookmark")).toBeNull();
    }
  });

  it("the bookmark of a write makes the next call wait for a copy that has the write", async () => {
    const { phone, d1, application } = await phoneWithBadge();
    const { token: invitationToken, number } = await invite(application);
    expect((await phone.logIn({ ...ALICE, invitationToken })).status).toBe(201);
    const { status, body, trips } = await waitForCopy(
      d1,
      () => phone.sign(),
      () => d1.catchUp(),
    );
    expect([status, trips]).toEqual([200, { copy: 1, primary: 0, object: 0, far: 0 }]);
    expect(decodeJwt(String(body.signature)).sub).toBe(String(number));
  });
});

describe("a bookmark that is not one (contract section 16)", () => {
  const VALID = "00000000-00000001-00000000-00000000000000000000000000000000";

  it("a malformed bookmark, or one of another home, counts as none", async () => {
    const { phone } = await phoneWithBadge();
    for (const bookmark of [
      "first-unconstrained",
      `${HOME}.first-unconstrained`,
      VALID,
      `${3 - HOME}.${VALID}`,
      `0${HOME}.${VALID}`,
      `${HOME}.${VALID.replace("1-", "A-")}`,
      `${HOME}.${VALID}0`,
    ]) {
      phone.bookmark = bookmark;
      const { status, trips } = await phone.sign();
      expect([bookmark, status, trips]).toEqual([bookmark, 200, { copy: 0, primary: 1, object: 0, far: 1 }]);
    }
  });

  it("a forged bookmark costs its sender a second, and the response has a true one", async () => {
    const { phone, d1 } = await phoneWithBadge();
    phone.bookmark = `${HOME}.ffffffff-ffffffff-ffffffff-${"f".repeat(32)}`;
    const { status, trips } = await waitForCopy(d1, () => phone.logIn());
    expect([status, trips]).toEqual([200, { copy: 1, primary: 1, object: 0, far: 2 }]);
    expect(phone.bookmark).toMatch(new RegExp(`^${HOME}\\.0{8}-`));
  });
});

it("where D1 has no copy, or the primary is the nearest, a login and a signature take one far trip, and a new badge two: to the primary and to the object (contract section 16)", async () => {
  const stage = await phoneWithBadge();
  const { phone, d1 } = stage;
  d1.behaviour = "is missing";
  for (const bookmark of [phone.bookmark, null]) {
    for (const act of [() => phone.logIn(), () => phone.sign()]) {
      phone.bookmark = bookmark;
      const { status, trips } = await act();
      expect([status, trips]).toEqual([200, { copy: 0, primary: 1, object: 0, far: 1 }]);
    }
  }
  const { status, trips } = await onNewDevice(stage).logIn();
  expect([status, trips]).toEqual([201, { copy: 0, primary: 1, object: 1, far: 2 }]);
});
