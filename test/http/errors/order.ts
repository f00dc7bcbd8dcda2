import { beforeEach, describe, expect, it, vi } from "vitest";
import { PUBLIC_ERRORS } from "../../../src/shared/error-table.ts";
import { createApplication, type TestApplication } from "../../support/application.ts";
import { call, requestBadge, serverHeaders } from "../../support/http.ts";
import { useProviders } from "../../users/provider.ts";
import { STATUS_OF_CODE } from "../support/codes.ts";
import { type Draft, outcome, send, withHeader } from "../support/draft.ts";
import {
  expectInOrder,
  FAULTY_BODY,
  FAULTY_UDID,
  type Fault,
  faultyField,
  faultyHeader,
  faultyPath,
  faultyQuery,
  missingField,
  missingHeader,
} from "../support/faults.ts";
import {
  CREATOR,
  claimedInvitation,
  expiredInvitation,
  hoursAhead,
  invite,
  revokedInvitation,
} from "../support/invitations.ts";

beforeEach(() => {
  vi.spyOn(console, "log").mockImplementation(() => {});
});

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

/** Any number of calls, each by a device of its own. */
function deviceCalls(application: { id: string }, path: string, body: Record<string, unknown>): () => Draft {
  let device = 0;
  return () => ({
    method: "POST",
    path,
    query: {},
    headers: { applicationid: application.id, udid: `device ${device++}` },
    body,
  });
}

describe("the error table (contract section 6)", () => {
  it("decides the service's responses", () => {
    const entries = Object.entries(PUBLIC_ERRORS).map(([code, { status }]) => [code, status] as const);
    expect(new Map(entries)).toEqual(STATUS_OF_CODE);
  });
});

describe("faults of POST /v1/badge (contract section 2)", () => {
  it("are reported in the contract's order", async () => {
    const application = await createApplication();
    const foreign = await createApplication();
    const token = ({ id }: { id: string }, answer: string) => faultyField("invitationToken", [id], answer);
    const grantedCall = deviceCalls(application, "/v1/badge", { userId: "user", metadata: { os: "iOS" } });
    expect(outcome(await send(grantedCall()))).toBe("201");
    await expectInOrder(grantedCall, [
      missingHeader("applicationid", "422 UNDEFINED_APPLICATIONID"),
      await uselessApplication("401 INVALID_APPLICATIONID"),
      missingHeader("udid", "422 UNDEFINED_UDID"),
      FAULTY_BODY,
      missingField("userId", "422 UNDEFINED_USERID"),
      FAULTY_UDID,
      faultyField("userId", [17, "u".repeat(256)], "422 INVALID_USERID"),
      faultyField("metadata", [{ os: 17 }, "text"], "422 INVALID_METADATA"),
      faultyField("invitationToken", [17, {}, [], true], "422 INVALID_INVITATIONTOKEN"),
      token({ id: "inv_unknown" }, "404 UNKNOWN_INVITATION"),
      token(await invite(foreign), "404 UNKNOWN_INVITATION"),
      token(await claimedInvitation(application), "409 CLAIMED_INVITATION"),
      token(await revokedInvitation(application), "410 REVOKED_INVITATION"),
      token(await expiredInvitation(application), "410 EXPIRED_INVITATION"),
      await noNumberLeft(["body.invitationToken"]),
    ]);
  });
});

describe("faults of POST /v1/badge where users are verified (contract sections 15 and 22)", () => {
  const newProvider = useProviders();

  it("are reported in the contract's order", async () => {
    const provider = await newProvider();
    const application = await createApplication(provider.columns);
    const token = await provider.token("user");
    const grantedCall = (): Draft => ({
      method: "POST",
      path: "/v1/badge",
      query: {},
      headers: { applicationid: application.id, udid: "phone", authorization: `Bearer ${token}` },
      body: { userId: "user" },
    });
    expect(outcome(await send(grantedCall()))).toBe("201");
    const wrong = [await provider.token("other"), await provider.token("user", { exp: 1 }), "nonsense"];
    await expectInOrder(grantedCall, [
      missingHeader("applicationid", "422 UNDEFINED_APPLICATIONID"),
      missingHeader("udid", "422 UNDEFINED_UDID"),
      FAULTY_BODY,
      missingField("userId", "422 UNDEFINED_USERID"),
      FAULTY_UDID,
      faultyField("userId", [17], "422 INVALID_USERID"),
      faultyField("metadata", ["text"], "422 INVALID_METADATA"),
      faultyField("invitationToken", [17], "422 INVALID_INVITATIONTOKEN"),
      faultyHeader(
        "authorization",
        ["", "Basic dTpw", ...wrong.map((one) => `Bearer ${one}`)],
        "401 INVALID_USERTOKEN",
      ),
      faultyHeader("dpop", ["none"], "401 INVALID_PROOF"),
      faultyField("invitationToken", ["inv_unknown"], "404 UNKNOWN_INVITATION"),
    ]);
  });
});

describe("faults of POST /v1/badge/sign (contract section 3)", () => {
  it("are reported in the contract's order", async () => {
    const application = await createApplication();
    expect((await requestBadge(application, "phone", { userId: "user" })).status).toBe(201);
    const grantedCall = (): Draft => ({
      method: "POST",
      path: "/v1/badge/sign",
      query: {},
      headers: { applicationid: application.id, udid: "phone" },
      body: { base64: "aGVsbG8=" },
    });
    expect(outcome(await send(grantedCall()))).toBe("200");
    await expectInOrder(grantedCall, [
      missingHeader("applicationid", "401 INVALID_APPLICATIONID"),
      await uselessApplication("401 INVALID_APPLICATIONID"),
      missingHeader("udid", "422 UNDEFINED_UDID"),
      FAULTY_BODY,
      missingField("base64", "422 UNDEFINED_BASE64"),
      FAULTY_UDID,
      faultyField("base64", ["aGVsbG8", 17], "422 INVALID_BASE64"),
      faultyHeader("udid", ["a phone without a badge"], "404 UNKNOWN_BADGE"),
    ]);
  });
});

describe("faults of the lists (contract section 4)", () => {
  it.each(["/v1/badges", "/v1/users/somebody/badges"])("are reported in the contract's order by %s", async (path) => {
    const application = await createApplication();
    const foreign = await createApplication();
    const headers = serverHeaders(application);
    const grantedCall = (): Draft => ({ method: "GET", path, query: {}, headers, body: undefined });
    expect(outcome(await send(grantedCall()))).toBe("200");
    await expectInOrder(grantedCall, [
      missingHeader("applicationid", "401 INVALID_CREDENTIALS"),
      await uselessApplication("401 INVALID_CREDENTIALS"),
      missingHeader("applicationsecret", "401 INVALID_CREDENTIALS"),
      faultyHeader("applicationsecret", ["wrong", foreign.secret], "401 INVALID_CREDENTIALS"),
      faultyQuery("per_page", ["0", "ten"], "422 INVALID_PER_PAGE"),
      faultyQuery("cursor", ["!"], "422 INVALID_CURSOR"),
    ]);
  });
});

describe("faults of POST /v1/invitation (contract section 5)", () => {
  it("are reported in the contract's order", async () => {
    const application = await createApplication();
    const grantedCall = deviceCalls(application, "/v1/invitation", { expiresAt: hoursAhead(1) });
    expect(outcome(await send(grantedCall()))).toBe("201");
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
  async function uselessInvitations(application: TestApplication): Promise<Fault[]> {
    const fault = (name: string, { id }: { id: string }, answer: string) =>
      faultyPath(name, `/v1/invitation/${id}/revoke`, answer);
    return [
      fault("unknown", { id: "inv_unknown" }, "404 UNKNOWN_INVITATION"),
      fault("another application's", await invite(await createApplication()), "404 UNKNOWN_INVITATION"),
      fault("claimed", await claimedInvitation(application), "409 CLAIMED_INVITATION"),
      fault("expired", await expiredInvitation(application), "410 EXPIRED_INVITATION"),
    ];
  }

  it("are reported in the contract's order to the udid that created the invitation", async () => {
    const application = await createApplication();
    const path = `/v1/invitation/${(await invite(application)).id}/revoke`;
    const headers = { applicationid: application.id, udid: CREATOR };
    const grantedCall = (): Draft => ({ method: "PATCH", path, query: {}, headers, body: undefined });
    await expectInOrder(grantedCall, [
      missingHeader("applicationid", "401 INVALID_APPLICATIONID"),
      await uselessApplication("401 INVALID_APPLICATIONID"),
      faultyHeader("applicationsecret", ["wrong"], "401 INVALID_CREDENTIALS"),
      noRequiredSecret(await createApplication({ requireSecret: true })),
      missingHeader("udid", "401 INVALID_CREDENTIALS", ["udid", "applicationsecret"]),
      faultyHeader("udid", ["another device", "u".repeat(256)], "404 UNKNOWN_INVITATION"),
      ...(await uselessInvitations(application)),
    ]);
    expect(outcome(await send(grantedCall()))).toBe("200");
  });

  it("are reported in the contract's order to the application's server", async () => {
    const application = await createApplication();
    const path = `/v1/invitation/${(await invite(application)).id}/revoke`;
    const headers = serverHeaders(application);
    const grantedCall = (): Draft => ({ method: "PATCH", path, query: {}, headers, body: undefined });
    await expectInOrder(grantedCall, [
      missingHeader("applicationid", "401 INVALID_APPLICATIONID"),
      await uselessApplication("401 INVALID_APPLICATIONID"),
      faultyHeader("applicationsecret", ["wrong"], "401 INVALID_CREDENTIALS"),
      missingHeader("applicationsecret", "401 INVALID_CREDENTIALS"),
      ...(await uselessInvitations(application)),
    ]);
    expect(outcome(await send(grantedCall()))).toBe("200");
  });
});

describe("the key set (contract section 3)", () => {
  it("does not exist for an application that does not exist", async () => {
    for (const id of ["app_00000000000000000000", "constructor", "%00"]) {
      const answer = await call("GET", `/v1/applications/${id}/jwks.json`);
      expect(answer).toMatchObject({ status: 404, body: { error: "UNKNOWN_APPLICATION" } });
    }
  });
});
