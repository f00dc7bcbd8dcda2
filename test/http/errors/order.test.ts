import { describe, expect, it } from "vitest";
import { PUBLIC_ERRORS } from "../../../src/shared/error-table.ts";
import { createApplication, type TestApplication } from "../../support/application.ts";
import { type Answer, call, requestBadge, serverHeaders } from "../../support/http.ts";
import { useProviders } from "../../users/provider.ts";
import { inParallel, outcome } from "../support/draft.ts";
import {
  CREATOR,
  claimedInvitation,
  expiredInvitation,
  hoursAhead,
  invite,
  revokedInvitation,
} from "../support/invitations.ts";

/** A call being prepared. Tests start from one that the service grants, break it in places, and send it. */
interface Draft {
  method: string;
  path: string;
  query: Record<string, string>;
  headers: Record<string, string>;
  /** Sent as JSON; a string is sent as it is. */
  body: Record<string, unknown> | string | undefined;
}

type Change = (draft: Draft) => Draft;

/** @param value null takes the header away */
function withHeader(name: string, value: string | null): Change {
  return (draft) => {
    const { [name]: _, ...others } = draft.headers;
    return { ...draft, headers: value === null ? others : { ...others, [name]: value } };
  };
}

function send({ method, path, query, headers, body }: Draft): Promise<Answer> {
  const search = new URLSearchParams(query).toString();
  return call(method, search === "" ? path : `${path}?${search}`, { headers, ...(body !== undefined && { body }) });
}

/** @param value undefined takes the field away */
function withField(name: string, value: unknown): Change {
  return (draft) => ({ ...draft, body: { ...(typeof draft.body === "object" && draft.body), [name]: value } });
}

function withBody(body: string): Change {
  return (draft) => ({ ...draft, body });
}

function withQuery(name: string, value: string): Change {
  return (draft) => ({ ...draft, query: { ...draft.query, [name]: value } });
}

function withPath(path: string): Change {
  return (draft) => ({ ...draft, path });
}

/**
 * Something wrong with a call. `parts` are the pieces of the call it touches, "body.userId" for a field and "body" for all of
 * it: two faults of one piece exclude each other, all others can come together.
 */
interface Fault {
  name: string;
  parts: readonly string[];
  /** Status and code, as `outcome` writes them. */
  answer: string;
  /** The ways to make this mistake. The first stands for all of them where faults come in pairs. */
  variants: readonly [Change, ...Change[]];
}

/** A header that is missing, in each of the ways that count as that (contract section 2). */
function missingHeader(name: string, answer: string, parts: readonly string[] = [name]): Fault {
  const variants = [withHeader(name, null), withHeader(name, ""), withHeader(name, " \t ")] as const;
  return { name: `no ${name}`, parts, answer, variants };
}

/** A field that is missing, in each of the ways that count as that (contract section 2). */
function missingField(name: string, answer: string): Fault {
  const [absent, ...counted] = [undefined, null, "", " \t\n"].map((value) => withField(name, value));
  return { name: `no ${name}`, parts: [`body.${name}`], answer, variants: [absent ?? withBody("{}"), ...counted] };
}

function faultyHeader(name: string, [first, ...others]: readonly [string, ...string[]], answer: string): Fault {
  const variants = [withHeader(name, first), ...others.map((value) => withHeader(name, value))] as const;
  return { name: `${name} ${first.slice(0, 20)}`, parts: [name], answer, variants };
}

function faultyField(name: string, [first, ...others]: readonly [unknown, ...unknown[]], answer: string): Fault {
  const variants = [withField(name, first), ...others.map((value) => withField(name, value))] as const;
  return { name: `${name} ${JSON.stringify(first).slice(0, 40)}`, parts: [`body.${name}`], answer, variants };
}

function faultyQuery(name: string, [first, ...others]: readonly [string, ...string[]], answer: string): Fault {
  const variants = [withQuery(name, first), ...others.map((value) => withQuery(name, value))] as const;
  return { name: `${name}=${first}`, parts: [name], answer, variants };
}

function faultyPath(name: string, path: string, answer: string): Fault {
  return { name, parts: ["path"], answer, variants: [withPath(path)] };
}

/** Bodies that are not a JSON object. */
const FAULTY_BODY: Fault = {
  name: "body not an object",
  parts: ["body"],
  answer: "400 INVALID_JSON",
  variants: [withBody("[]"), withBody('{"userId":'), withBody('"text"'), withBody("null")],
};

const FAULTY_UDID: Fault = faultyHeader("udid", ["bell \u0007", "u".repeat(256)], "422 INVALID_UDID");

function canMeet(one: Fault, other: Fault): boolean {
  const isWithin = (part: string, whole: string) => part === whole || part.startsWith(`${whole}.`);
  return !one.parts.some((part) => other.parts.some((place) => isWithin(part, place) || isWithin(place, part)));
}

/** Each fault alone answers its own code; each pair that can come together answers the code of the earlier one. */
async function expectInOrder(grantedCall: () => Draft, faults: readonly Fault[]): Promise<void> {
  const alone = faults.flatMap(({ name, answer, variants }) =>
    variants.map((change, place) => ({ name: `${name} (${place + 1})`, draft: change(grantedCall()), answer })),
  );
  const pairs = faults.flatMap((first, place) =>
    faults
      .slice(place + 1)
      .filter((second) => canMeet(first, second))
      .map((second) => ({
        name: `${first.name} + ${second.name}`,
        draft: second.variants[0](first.variants[0](grantedCall())),
        answer: first.answer,
      })),
  );
  const cases = [...alone, ...pairs];
  const answers = await inParallel(cases, async ({ name, draft }) => `${name}: ${outcome(await send(draft))}`);
  expect(answers).toEqual(cases.map(({ name, answer }) => `${name}: ${answer}`));
}

/** An `applicationid` that is there but of no use. */
async function uselessApplication(answer: string): Promise<Fault> {
  const disabled = await createApplication({ disabledAt: 1 });
  return faultyHeader("applicationid", ["app_00000000000000000000", "not an application ID", disabled.id], answer);
}

/** The call is another application's, whose server has to show its secret. */
function noRequiredSecret(requiring: { id: string }): Fault {
  const other = withHeader("applicationid", requiring.id);
  return {
    name: "no required secret",
    parts: ["applicationid", "applicationsecret"],
    answer: "401 INVALID_CREDENTIALS",
    variants: [
      other,
      (draft) => withHeader("applicationsecret", "")(other(draft)),
      (draft) => withHeader("applicationsecret", " \t ")(other(draft)),
    ],
  };
}

/** The call is another application's, whose only number is taken. */
async function noNumberLeft(parts: readonly string[]): Promise<Fault> {
  const exhausted = await createApplication({ size: 1 });
  expect((await requestBadge(exhausted, "first", { userId: "first" })).status).toBe(201);
  const variants = [withHeader("applicationid", exhausted.id)] as const;
  return { name: "no number left", parts: ["applicationid", ...parts], answer: "503 NUMBERS_EXHAUSTED", variants };
}

/** The call is another application's, where devices have to prove their keys. */
const noRequiredProof = ({ id }: { id: string }): Fault => ({
  name: "no required proof",
  parts: ["applicationid", "dpop"],
  answer: "401 INVALID_PROOF",
  variants: [withHeader("applicationid", id)],
});

const FAULTY_PROOF = faultyHeader("dpop", ["none"], "401 INVALID_PROOF");

/** Any number of calls. Each POST is by a device of its own unless the headers name one. */
function callsOf(method: string, path: string, headers: Record<string, string>, body?: Draft["body"]): () => Draft {
  let devices = 0;
  return () => {
    const device = method === "POST" ? { udid: `device ${devices++}` } : {};
    return { method, path, query: {}, headers: { ...device, ...headers }, body };
  };
}

async function expectGranted(grantedCall: () => Draft, status: string): Promise<void> {
  expect(outcome(await send(grantedCall()))).toBe(status);
}

/** The error table of contract section 6: the codes of each status. */
const CODES_OF_STATUS: [status: number, ...codes: string[]][] = [
  [400, "INVALID_JSON"],
  [401, "INVALID_APPLICATIONID", "INVALID_CREDENTIALS", "INVALID_PROOF", "USE_DPOP_NONCE", "INVALID_USERTOKEN"],
  [403, "SUSPENDED_BADGE", "REVOKED_BADGE", "EXPIRED_BADGE", "EARLY_BADGE", "BLOCKED_USER", "READ_ONLY", "WRONG_USER"],
  [403, "DOOR_ONLY"],
  [404, "NOT_FOUND", "UNKNOWN_APPLICATION", "UNKNOWN_BADGE", "UNKNOWN_INVITATION", "UNKNOWN_EVENT"],
  [404, "UNKNOWN_STATUSLIST"],
  [405, "METHOD_NOT_ALLOWED"],
  [409, "CLAIMED_INVITATION", "ENDED_BADGE", "TOO_MANY_BADGES"],
  [410, "EXPIRED_INVITATION", "REVOKED_INVITATION", "EXPIRED_CURSOR"],
  [412, "CHANGED_BADGE"],
  [413, "PAYLOAD_TOO_LARGE"],
  [422, "UNDEFINED_APPLICATIONID", "UNDEFINED_UDID", "UNDEFINED_USERID", "UNDEFINED_BASE64", "UNDEFINED_EXPIRESAT"],
  [422, "INVALID_UDID", "INVALID_USERID", "INVALID_METADATA", "INVALID_BASE64", "INVALID_EXPIRESAT"],
  [422, "INVALID_BADGEEXPIRESAT", "INVALID_STARTSAT", "INVALID_IDEMPOTENCYKEY", "INVALID_ACTOR"],
  [422, "INVALID_INVITATIONS", "INVALID_NAME", "INVALID_STATE", "INVALID_INVITATIONTOKEN"],
  [422, "INVALID_PER_PAGE", "INVALID_CURSOR"],
  [429, "RATE_LIMITED"],
  [500, "INTERNAL_ERROR"],
  [501, "NOT_IMPLEMENTED"],
  [503, "NUMBERS_EXHAUSTED", "UNAVAILABLE"],
];

const STATUS_OF_CODE: ReadonlyMap<string, number> = new Map(
  CODES_OF_STATUS.flatMap(([status, ...codes]) => codes.map((code) => [code, status])),
);

describe("the error table (contract section 6)", () => {
  it("the error table decides the service's responses", () => {
    const entries = Object.entries(PUBLIC_ERRORS).map(([code, { status }]) => [code, status] as const);
    expect(new Map(entries)).toEqual(STATUS_OF_CODE);
  });
});

describe("faults of POST /v1/badge (contract sections 2, 15 and 22) are reported in the contract's order", () => {
  const newProvider = useProviders();

  /** Up to the INVALID_ codes. */
  const ofForm = async (): Promise<Fault[]> => [
    missingHeader("applicationid", "422 UNDEFINED_APPLICATIONID"),
    await uselessApplication("401 INVALID_APPLICATIONID"),
    missingHeader("udid", "422 UNDEFINED_UDID"),
    FAULTY_BODY,
    missingField("userId", "422 UNDEFINED_USERID"),
    FAULTY_UDID,
    faultyField("userId", [17, "u".repeat(256), ".."], "422 INVALID_USERID"),
    faultyField("metadata", [{ os: 17 }, "text"], "422 INVALID_METADATA"),
    faultyField("invitationToken", [17, {}, [], true], "422 INVALID_INVITATIONTOKEN"),
  ];

  it("of faults of POST /v1/badge, those of an application ID and a udid alone come in the contract's order", async () => {
    const application = await createApplication();
    const foreign = await createApplication();
    const token = ({ id }: { id: string }, answer: string) => faultyField("invitationToken", [id], answer);
    const body = { userId: "user", metadata: { os: "iOS" } };
    const grantedCall = callsOf("POST", "/v1/badge", { applicationid: application.id }, body);
    await expectGranted(grantedCall, "201");
    await expectInOrder(grantedCall, [
      ...(await ofForm()),
      FAULTY_PROOF,
      noRequiredProof(await createApplication({ requireProof: true })),
      token({ id: "inv_unknown" }, "404 UNKNOWN_INVITATION"),
      token(await invite(foreign), "404 UNKNOWN_INVITATION"),
      token(await claimedInvitation(application), "409 CLAIMED_INVITATION"),
      token(await revokedInvitation(application), "410 REVOKED_INVITATION"),
      token(await expiredInvitation(application), "410 EXPIRED_INVITATION"),
      await noNumberLeft(["body.invitationToken"]),
    ]);
  });

  it("faults of POST /v1/badge are reported in the contract's order where users are verified", async () => {
    const provider = await newProvider();
    const application = await createApplication(provider.columns);
    const authorization = `Bearer ${await provider.token("user")}`;
    const headers = { applicationid: application.id, authorization };
    const grantedCall = callsOf("POST", "/v1/badge", headers, { userId: "user" });
    await expectGranted(grantedCall, "201");
    const wrong = [await provider.token("other"), await provider.token("user", { exp: 1 }), "nonsense"];
    const tokens = ["", "Basic dTpw", ...wrong.map((one) => `Bearer ${one}`)] as const;
    await expectInOrder(grantedCall, [
      ...(await ofForm()),
      faultyHeader("authorization", tokens, "401 INVALID_USERTOKEN"),
      FAULTY_PROOF,
      faultyField("invitationToken", ["inv_unknown"], "404 UNKNOWN_INVITATION"),
    ]);
  });
});

describe("faults of POST /v1/badge/sign (contract sections 3 and 15)", () => {
  it("faults of POST /v1/badge/sign are reported in the contract's order", async () => {
    const application = await createApplication();
    expect((await requestBadge(application, "phone", { userId: "user" })).status).toBe(201);
    const headers = { applicationid: application.id, udid: "phone" };
    const grantedCall = callsOf("POST", "/v1/badge/sign", headers, { base64: "aGVsbG8=" });
    await expectGranted(grantedCall, "200");
    await expectInOrder(grantedCall, [
      missingHeader("applicationid", "401 INVALID_APPLICATIONID"),
      await uselessApplication("401 INVALID_APPLICATIONID"),
      missingHeader("udid", "422 UNDEFINED_UDID"),
      FAULTY_BODY,
      missingField("base64", "422 UNDEFINED_BASE64"),
      FAULTY_UDID,
      faultyField("base64", ["aGVsbG8", 17], "422 INVALID_BASE64"),
      FAULTY_PROOF,
      noRequiredProof(await createApplication({ requireProof: true })),
      faultyHeader("udid", ["a phone without a badge"], "404 UNKNOWN_BADGE"),
    ]);
  });
});

describe("faults of the lists (contract section 4)", () => {
  it.each(["/v1/badges", "/v1/users/somebody/badges"])(
    "faults of lists are reported in the contract's order by %s",
    async (path) => {
      const application = await createApplication();
      const foreign = await createApplication();
      const grantedCall = callsOf("GET", path, serverHeaders(application));
      await expectGranted(grantedCall, "200");
      await expectInOrder(grantedCall, [
        missingHeader("applicationid", "401 INVALID_CREDENTIALS"),
        await uselessApplication("401 INVALID_CREDENTIALS"),
        missingHeader("applicationsecret", "401 INVALID_CREDENTIALS"),
        faultyHeader("applicationsecret", ["wrong", foreign.secret], "401 INVALID_CREDENTIALS"),
        faultyQuery("per_page", ["0", "ten"], "422 INVALID_PER_PAGE"),
        faultyQuery("cursor", ["!"], "422 INVALID_CURSOR"),
      ]);
    },
  );
});

describe("faults of GET /v1/invitation (contract section 27)", () => {
  it("faults of GET /v1/invitation are reported in the order of the other device routes", async () => {
    const application = await createApplication();
    const foreign = await createApplication();
    const { id: invitationtoken } = await invite(application);
    const grantedCall = callsOf("GET", "/v1/invitation", { applicationid: application.id, invitationtoken });
    await expectGranted(grantedCall, "200");
    await expectInOrder(grantedCall, [
      missingHeader("applicationid", "401 INVALID_APPLICATIONID"),
      await uselessApplication("401 INVALID_APPLICATIONID"),
      missingHeader("invitationtoken", "422 INVALID_INVITATIONTOKEN"),
      faultyHeader("invitationtoken", ["inv_unknown", (await invite(foreign)).id], "404 UNKNOWN_INVITATION"),
    ]);
  });
});

describe("faults of POST /v1/invitation (contract section 5)", () => {
  it("faults of POST /v1/invitation are reported in the contract's order", async () => {
    const application = await createApplication();
    const headers = { applicationid: application.id };
    const grantedCall = callsOf("POST", "/v1/invitation", headers, { expiresAt: hoursAhead(1) });
    await expectGranted(grantedCall, "201");
    await expectInOrder(grantedCall, [
      missingHeader("applicationid", "401 INVALID_APPLICATIONID"),
      await uselessApplication("401 INVALID_APPLICATIONID"),
      faultyHeader("applicationsecret", ["wrong"], "401 INVALID_CREDENTIALS"),
      noRequiredSecret(await createApplication({ requireSecret: true })),
      missingHeader("udid", "422 UNDEFINED_UDID"),
      FAULTY_BODY,
      missingField("expiresAt", "422 UNDEFINED_EXPIRESAT"),
      FAULTY_UDID,
      faultyField("expiresAt", ["2000-01-01T00:00:00Z", 17], "422 INVALID_EXPIRESAT"),
      await noNumberLeft(["applicationsecret"]),
    ]);
  });
});

describe("faults of PATCH /v1/invitation/:id/revoke (contract section 5)", () => {
  const ofDevice = async (): Promise<Fault[]> => [
    noRequiredSecret(await createApplication({ requireSecret: true })),
    missingHeader("udid", "401 INVALID_CREDENTIALS", ["udid", "applicationsecret"]),
    faultyHeader("udid", ["another device", "u".repeat(256)], "404 UNKNOWN_INVITATION"),
  ];

  it.each<[string, (application: TestApplication) => Record<string, string>, () => Promise<Fault[]>]>([
    ["the udid that created the invitation", ({ id }) => ({ applicationid: id, udid: CREATOR }), ofDevice],
    [
      "the application's server",
      serverHeaders,
      async () => [missingHeader("applicationsecret", "401 INVALID_CREDENTIALS")],
    ],
  ])("are reported in the contract's order to %s", async (_, headersOf, ofCaller) => {
    const application = await createApplication();
    const pathOf = ({ id }: { id: string }) => `/v1/invitation/${id}/revoke`;
    const useless = (name: string, invitation: { id: string }, answer: string) =>
      faultyPath(name, pathOf(invitation), answer);
    const grantedCall = callsOf("PATCH", pathOf(await invite(application)), headersOf(application));
    await expectInOrder(grantedCall, [
      missingHeader("applicationid", "401 INVALID_APPLICATIONID"),
      await uselessApplication("401 INVALID_APPLICATIONID"),
      faultyHeader("applicationsecret", ["wrong"], "401 INVALID_CREDENTIALS"),
      ...(await ofCaller()),
      useless("unknown", { id: "inv_unknown" }, "404 UNKNOWN_INVITATION"),
      useless("another application's", await invite(await createApplication()), "404 UNKNOWN_INVITATION"),
      useless("claimed", await claimedInvitation(application), "409 CLAIMED_INVITATION"),
      useless("expired", await expiredInvitation(application), "410 EXPIRED_INVITATION"),
    ]);
    await expectGranted(grantedCall, "200");
  });
});
