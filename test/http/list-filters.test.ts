import { describe, expect, it } from "vitest";
import { block, issueTo, takeStep, unblock } from "../badges/life-support.ts";
import { claim, requestInvitation, revoke } from "../invitations/support/calls.ts";
import { ahead, DAY, HOUR, MINUTE, moveClock, SECOND, useStandingClock } from "../invitations/support/clock.ts";
import { createApplication, type TestApplication } from "../support/application.ts";
import { call, callServer, serverHeaders } from "../support/http.ts";
import { outcome } from "./support/draft.ts";
import { follow, listPage } from "./support/pages.ts";
import { signIn } from "./support/people.ts";

useStandingClock();

const time = (milliseconds: number) => encodeURIComponent(ahead(milliseconds).replace("Z", "+00:00"));

describe("GET /v1/invitations?from=&until=&q= (contract section 19)", () => {
  /** One invitation for each name; times are milliseconds ahead. @returns the tokens */
  async function inviteAll(
    application: TestApplication,
    visits: Readonly<Record<string, { starts?: number; ends?: number; until: number; userId?: string }>>,
  ): Promise<Record<string, string>> {
    const tokens: Record<string, string> = {};
    for (const [name, { starts, ends, until, userId }] of Object.entries(visits)) {
      const body = {
        name,
        userId,
        expiresAt: ahead(until),
        ...(starts !== undefined && { badgeStartsAt: ahead(starts) }),
        ...(ends !== undefined && { badgeExpiresAt: ahead(ends) }),
      };
      const made = await requestInvitation(application, body, serverHeaders(application));
      expect(made.status, JSON.stringify(made.body)).toBe(201);
      tokens[name] = String(made.body.id);
    }
    return tokens;
  }

  const namesOf = async (application: TestApplication, query: string, perPage = 2) =>
    (await follow(application, `/v1/invitations?${query}`, perPage)).flat().map(({ name }) => name);

  /** Longer than a day, a week and a month, so that all classes of visits are there. */
  const VISITS = {
    "next month": { starts: 30 * DAY, ends: 30 * DAY + HOUR, until: 20 * DAY },
    "a year": { starts: -300 * DAY, ends: 65 * DAY, until: 60 * DAY },
    "a fortnight": { starts: -10 * DAY, ends: 4 * DAY, until: DAY },
    "this morning": { starts: -2 * HOUR, ends: HOUR, until: HOUR },
    "three days": { starts: -DAY, ends: 2 * DAY, until: DAY },
    "until claimed": { until: 3 * HOUR },
    tomorrow: { starts: DAY, ends: DAY + HOUR, until: DAY },
  };
  const IN_ORDER = ["a year", "a fortnight", "three days", "this morning", "until claimed", "tomorrow", "next month"];

  it.each([1, 2, 10])("invitations of a day come in the order in which visits begin, %i on a page", async (perPage) => {
    const application = await createApplication();
    await inviteAll(application, VISITS);
    expect(await namesOf(application, `from=${time(-400 * DAY)}`, perPage)).toEqual(IN_ORDER);
    expect(await namesOf(application, `until=${time(31 * DAY)}`, perPage)).toEqual(IN_ORDER);
  });

  it("invitations from one time until another are those whose visit begins before its end and ends after its beginning", async () => {
    const application = await createApplication();
    await inviteAll(application, VISITS);
    const touching = (from: number, until: number) => namesOf(application, `from=${time(from)}&until=${time(until)}`);
    expect(await touching(HOUR, DAY)).toEqual(["a year", "a fortnight", "three days", "until claimed"]);
    expect(await touching(HOUR - 1, DAY + 1)).toEqual(IN_ORDER.slice(0, 6));
    expect(await touching(3 * HOUR, 3 * HOUR)).toEqual(["a year", "a fortnight", "three days"]);
    expect(await touching(66 * DAY, 99 * DAY)).toEqual([]);
    expect(await touching(-299 * DAY, -11 * DAY)).toEqual(["a year"]);
    expect(await touching(30 * DAY, 40 * DAY)).toEqual(["a year", "next month"]);
  });

  it("a visit is found by its beginning, although its invitation has to be claimed before", async () => {
    const application = await createApplication();
    await inviteAll(application, { "claimed early": { starts: 30 * DAY, until: DAY } });
    const touching = (from: number, until: number) => namesOf(application, `from=${time(from)}&until=${time(until)}`);
    expect(await touching(30 * DAY, 31 * DAY)).toEqual(["claimed early"]);
    expect(await touching(30 * DAY + 1, 31 * DAY)).toEqual([]);
    expect(await touching(29 * DAY, 30 * DAY)).toEqual([]);
  });

  it("a visit that was moved after the claim is on its new day, with its new times", async () => {
    const application = await createApplication();
    const visit = { starts: HOUR, ends: 2 * HOUR, until: HOUR };
    const tokens = await inviteAll(application, { moved: visit, other: visit });
    const { body } = await claim(application, "phone", "visitor", tokens.moved);
    const of = (day: number) => `from=${time(day)}&until=${time(day + 6 * HOUR)}`;
    const times = { startsAt: ahead(DAY + HOUR), expiresAt: ahead(DAY + 2 * HOUR) };
    await callServer(application, "PATCH", `/v1/badges/${body.badgeId}`, times);
    expect(await namesOf(application, of(0))).toEqual(["other"]);
    expect(await namesOf(application, of(DAY))).toEqual(["moved"]);
    const { body: listed } = await callServer(application, "GET", `/v1/invitations?${of(DAY)}`);
    expect(listed.invitations).toMatchObject([{ badgeStartsAt: times.startsAt, badgeExpiresAt: times.expiresAt }]);
    await callServer(application, "PATCH", `/v1/badges/${body.badgeId}`, { startsAt: null, expiresAt: null });
    const { body: today } = await callServer(application, "GET", `/v1/invitations?${of(0)}`);
    expect(today.invitations).toEqual([
      expect.not.objectContaining({ badgeStartsAt: expect.anything() }),
      expect.objectContaining({ name: "other" }),
    ]);
  });

  it("invitations can be searched by name and user ID, and filtered by a state that the clock decides, in both orders", async () => {
    const application = await createApplication();
    const tokens = await inviteAll(application, {
      "Zoë Müller": { starts: HOUR, until: DAY },
      "Ann Lee": { until: 2 * MINUTE, userId: "mueller" },
      "MÜLLER, Jo": { until: DAY },
      Bob: { until: DAY },
      "Tom Müller": { until: MINUTE },
    });
    expect((await claim(application, "phone", "Mr MÜLLER", tokens.Bob)).status).toBe(201);
    expect((await revoke(application, tokens["MÜLLER, Jo"] ?? "")).status).toBe(200);
    moveClock(MINUTE);
    const q = `q=${encodeURIComponent("müLLer")}`;
    expect(await namesOf(application, q)).toEqual(["Tom Müller", "Bob", "MÜLLER, Jo", "Zoë Müller"]);
    expect(await namesOf(application, `${q}&state=pending`)).toEqual(["Zoë Müller"]);
    const span = `from=${time(-DAY)}&until=${time(DAY)}`;
    for (const [state, found] of [
      ["pending", ["Zoë Müller"]],
      ["expired", ["Tom Müller"]],
      ["claimed", ["Bob"]],
      ["revoked", ["MÜLLER, Jo"]],
    ] as const) {
      expect([state, await namesOf(application, `${q}&state=${state}`)]).toEqual([state, found]);
      expect([state, await namesOf(application, `${q}&state=${state}&${span}`)]).toEqual([state, found]);
    }
    expect(await namesOf(application, `q=mueller&${span}`)).toEqual(["Ann Lee"]);
    expect(await namesOf(await createApplication(), span)).toEqual([]);
  });
});

describe("GET /v1/badges?q= (contract section 24)", () => {
  it.each(["İbrahim", "ΣΙΣΥΦΟΣ", "Straße", "ÅSA", "ПЁТР"])("q finds %s by exactly that text", async (userId) => {
    const application = await createApplication();
    await issueTo(application, "phone", userId);
    const { body } = await callServer(application, "GET", `/v1/badges?q=${encodeURIComponent(userId)}`);
    expect(body.badges).toMatchObject([{ userId }]);
  });
});

describe("GET /v1/access (contract section 19)", () => {
  it("GET /v1/access lists who has a console secret, by name and a page at a time, for the server and for operators alone", async () => {
    const application = await createApplication();
    const viewer = await signIn(application, "viewer");
    const reception = await signIn(application, "reception");
    const operator = await signIn(application, "operator");
    await signIn(await createApplication(), "operator");
    const pages = await follow(application, "/v1/access");
    expect(pages.map((page) => page.length)).toEqual([2, 1]);
    expect(pages.flat()).toEqual(
      ["operator", "reception", "viewer"].map((role) => ({
        ...{ name: expect.stringContaining(`The ${role} `), role, createdAt: "1970-01-01T00:00:00.001Z" },
      })),
    );
    const ask = async (headers: Record<string, string>) => outcome(await call("GET", "/v1/access", { headers }));
    expect(await ask(operator)).toBe("200");
    for (const headers of [viewer, reception]) expect(await ask(headers)).toBe("403 READ_ONLY");
    expect(await ask({ applicationid: application.id })).toBe("401 INVALID_CREDENTIALS");
  });
});

describe("GET /v1/history?since=&until=&actor=&action= (contract section 23)", () => {
  it("the history can be filtered by time, actor, action, badge, user, and all of these together", async () => {
    const application = await createApplication();
    const [adas, bobs] = [await issueTo(application, "phone", "ada"), await issueTo(application, "tablet", "bob")];
    const asAnn = { ...serverHeaders(application), actor: "Ann%20Lee" };
    const step = (badge: string, name: string) =>
      call("PATCH", `/v1/badges/${badge}/${name}`, { headers: asAnn, body: {} });
    for (const act of [
      () => takeStep(application, adas, "suspend"),
      () => step(adas, "resume"),
      () => step(bobs, "suspend"),
      () => block(application, "ada"),
      () => unblock(application, "ada"),
    ]) {
      expect((await act()).status).toBe(200);
      moveClock(SECOND);
    }
    const list = async (query: string) =>
      (await follow(application, `/v1/history?${query}`, 1)).flat().map(({ action }) => action);
    const all = [
      "user:unblocked",
      "user:blocked",
      "badge:revoked",
      "badge:suspended",
      "badge:resumed",
      "badge:suspended",
    ];
    expect((await list("")).toSorted()).toEqual(all.toSorted());
    const ofSecond = async (second: number) =>
      (await list(`since=${time(second * SECOND)}&until=${time((second + 1) * SECOND)}`)).toSorted();
    expect(await ofSecond(-2)).toEqual(["badge:revoked", "user:blocked"]);
    expect(await ofSecond(-1)).toEqual(["user:unblocked"]);
    expect(await list(`until=${time(-3 * SECOND)}`)).toEqual(["badge:resumed", "badge:suspended"]);
    expect(await list(`since=${time(-1 * SECOND + 1)}`)).toEqual([]);
    expect(await list("since=1970-01-01T00:00:00Z&until=1970-01-02T00:00:00Z")).toEqual([]);
    expect(await list("actor=Ann%20Lee")).toEqual(["badge:suspended", "badge:resumed"]);
    expect(await list("actor=Ann")).toEqual([]);
    expect(await list("action=badge:suspended")).toEqual(["badge:suspended", "badge:suspended"]);
    expect(await list(`action=badge:suspended&badge=${adas}`)).toEqual(["badge:suspended"]);
    expect(await list("action=badge:suspended&user=bob&actor=Ann%20Lee")).toEqual(["badge:suspended"]);
    const span = `since=${time(-5 * SECOND)}&until=${time(-3 * SECOND)}`;
    expect(await list(`badge=${adas}&user=ada&${span}`)).toEqual(["badge:resumed", "badge:suspended"]);
    expect(await list(`badge=${adas}&user=ada&actor=Ann%20Lee&action=badge:resumed&${span}`)).toEqual([
      "badge:resumed",
    ]);
    expect(await list(`badge=${bobs}&user=ada&${span}`)).toEqual([]);
  });
});

describe("filters that are not what a list has (contract section 6)", () => {
  const times = ["", "soon", "2030-01-01", "2030-01-01T00:00:00"];

  it.each([
    ["/v1/invitations", ["from", "until"], [["q=a", "NAME"]]],
    [
      "/v1/history",
      ["since", "until"],
      [
        ["action=badge:opened", "STATE"],
        ["actor=", "ACTOR"],
        [`actor=${"x".repeat(101)}`, "ACTOR"],
      ],
    ],
  ] as const)("are refused by %s", async (path, parameters, others) => {
    const application = await createApplication();
    const wrong = parameters.flatMap((name) => times.map((text) => [`${name}=${text}`, "EXPIRESAT"] as const));
    for (const [query, code] of [...wrong, ...others]) {
      const refused = outcome(await callServer(application, "GET", `${path}?${query}`));
      expect(`${query} ${refused}`).toBe(`${query} 422 INVALID_${code}`);
    }
  });

  it("a cursor of the other order of invitations is refused", async () => {
    const application = await createApplication();
    for (let place = 0; place < 2; place++) {
      const made = await requestInvitation(application, { expiresAt: ahead(HOUR) }, serverHeaders(application));
      expect(made.status).toBe(201);
    }
    const bySpan = `from=${time(-DAY)}`;
    for (const [list, other] of [
      ["", bySpan],
      [bySpan, ""],
    ]) {
      const { next } = await listPage(application, `/v1/invitations?per_page=1&${list}`);
      expect(next).toMatch(/^[\w-]+$/);
      const refused = await callServer(application, "GET", `/v1/invitations?cursor=${next}&${other}`);
      expect(outcome(refused)).toBe("422 INVALID_CURSOR");
    }
  });
});
