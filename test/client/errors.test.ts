import { describe, expect, it } from "vitest";
import { BadgeServiceError, ERROR_CODES } from "../../src/client/index.ts";
import { PUBLIC_ERRORS } from "../../src/shared/error-table.ts";
import { createApplication } from "../support/application.ts";
import { collect, device, failureOf, fakeService, inOneHour, refusal, server } from "./support.ts";

describe("what a client throws when the service refuses (contract section 6)", () => {
  it("knows each code of the service, once", () => {
    const codes = `INVALID_JSON INVALID_APPLICATIONID INVALID_CREDENTIALS NOT_FOUND UNKNOWN_APPLICATION UNKNOWN_BADGE
      UNKNOWN_INVITATION METHOD_NOT_ALLOWED CLAIMED_INVITATION EXPIRED_INVITATION REVOKED_INVITATION PAYLOAD_TOO_LARGE
      UNDEFINED_APPLICATIONID UNDEFINED_UDID UNDEFINED_USERID UNDEFINED_BASE64 UNDEFINED_EXPIRESAT INVALID_UDID
      INVALID_USERID INVALID_METADATA INVALID_BASE64 INVALID_EXPIRESAT INVALID_INVITATIONTOKEN INVALID_PER_PAGE
      INVALID_CURSOR SUSPENDED_BADGE REVOKED_BADGE EXPIRED_BADGE BLOCKED_USER UNKNOWN_EVENT ENDED_BADGE EXPIRED_CURSOR
       INVALID_BADGEEXPIRESAT INVALID_IDEMPOTENCYKEY INVALID_STATE UNKNOWN_STATUSLIST NOT_IMPLEMENTED RATE_LIMITED INTERNAL_ERROR NUMBERS_EXHAUSTED UNAVAILABLE`.split(
      /\s+/,
    );
    expect(ERROR_CODES).toEqual(expect.arrayContaining(codes));
    expect(new Set(ERROR_CODES).size).toBe(ERROR_CODES.length);
  });

  it("has the status, the code and the ID of the request in the service's log", async () => {
    const application = await createApplication({ size: 1 });
    const phone = device(application, "phone");
    const stranger = server({ ...application, secret: "bdss_wrong" });
    const client = server(application);
    const request = { userId: "a" };
    await device(application, "first").requestBadge(request);
    const invitation = { expiresAt: inOneHour(), udid: "desk" };
    const refusals: [() => Promise<unknown>, number, string][] = [
      [() => phone.sign("aGVsbG8="), 404, "UNKNOWN_BADGE"],
      [() => phone.sign("not base64"), 422, "INVALID_BASE64"],
      [() => phone.requestBadge({ userId: " " }), 422, "UNDEFINED_USERID"],
      [() => phone.requestBadge({ ...request, invitationToken: "inv_no" }), 404, "UNKNOWN_INVITATION"],
      [() => phone.requestBadge(request), 503, "NUMBERS_EXHAUSTED"],
      [() => device({ id: "app_none" }, "phone").sign("aGVsbG8="), 401, "INVALID_APPLICATIONID"],
      [() => collect(stranger.listBadges()), 401, "INVALID_CREDENTIALS"],
      [() => collect(client.listBadges({ perPage: 0 })), 422, "INVALID_PER_PAGE"],
      [() => client.createInvitation(invitation), 503, "NUMBERS_EXHAUSTED"],
      [() => client.createInvitation({ ...invitation, expiresAt: new Date(0) }), 422, "INVALID_EXPIRESAT"],
      [() => client.revokeInvitation("inv_no"), 404, "UNKNOWN_INVITATION"],
    ];
    for (const [call, status, code] of refusals) {
      const error = await failureOf(call());
      expect(error).toBeInstanceOf(BadgeServiceError);
      const requestId = expect.stringMatching(/.+/);
      expect(error).toMatchObject({ status, code, requestId, retryAfterSeconds: null });
    }
  });

  it.each(Object.entries(PUBLIC_ERRORS))("%s", async (code, { status, retryAfterSeconds = null }) => {
    const headers = retryAfterSeconds === null ? undefined : { "retry-after": String(retryAfterSeconds) };
    const { options } = fakeService(refusal(status, code, headers));
    const call = device({ id: "app" }, "phone", { ...options, maxTries: 1 }).sign("aGVsbG8=");
    await expect(call).rejects.toMatchObject({ name: "BadgeServiceError", status, code, retryAfterSeconds });
    await expect(call).rejects.toThrow(code);
  });

  it("says in every message what to do", async () => {
    for (const [code, { status }] of Object.entries(PUBLIC_ERRORS)) {
      const { options } = fakeService(refusal(status, code, { "x-request-id": "r-1" }));
      const error = await failureOf(device({ id: "app" }, "phone", { ...options, maxTries: 1 }).sign("aGVsbG8="));
      expect(String(error)).toMatch(new RegExp(`^BadgeServiceError: ${status} ${code} \\(r-1\\): .{10,}`));
      expect(String(error)).not.toContain("does not know the code");
    }
  });

  it.each([
    ["a log-in page where a badge should be", new Response("<html>", { status: 200 })],
    ["a success without what was asked for", Response.json({ badge: "7" }, { status: 201 })],
    ["a success of another shape", Response.json([{ signature: 7 }])],
    ["a proxy's error page", new Response("<html>", { status: 403 })],
    ["a code of a newer service", refusal(409, "BRAND_NEW")],
    ["an error that is not a code", Response.json({ error: { code: "NOT_FOUND" } }, { status: 404 })],
    ["a success that says it is an error", Response.json({ error: "NOT_FOUND" }, { status: 200 })],
  ])("has no code for %s", async (_name, response) => {
    const phone = device({ id: "app" }, "phone", fakeService(response).options);
    const failure = { name: "BadgeServiceError", status: response.status, code: null, requestId: null };
    await expect(phone.requestBadge({ userId: "alice" })).rejects.toMatchObject(failure);
  });

  it("reads a Retry-After that is a date, as proxies may send", async () => {
    const { options } = fakeService(refusal(429, "RATE_LIMITED", { "retry-after": "Fri, 15 Jan 2027 08:01:30 GMT" }));
    const call = device({ id: "app" }, "phone", { ...options, maxTries: 1 }).sign("aGVsbG8=");
    await expect(call).rejects.toMatchObject({ retryAfterSeconds: 90 });
  });
});
