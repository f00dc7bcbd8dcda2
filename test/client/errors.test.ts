import { describe, expect, it } from "vitest";
import { BadgeServiceError, ERROR_CODES } from "../../src/client/index.ts";
import { PUBLIC_ERRORS } from "../../src/shared/error-table.ts";
import { createApplication } from "../support/application.ts";
import { collect, device, failureOf, fakeService, inOneHour, refusal, server } from "./support.ts";

describe("what a client throws when the service refuses (contract section 6)", () => {
  it("a client knows each code of the service, once", () => {
    expect(ERROR_CODES.toSorted()).toEqual(Object.keys(PUBLIC_ERRORS).toSorted());
  });

  it("a refusal is thrown with the status, the code and the ID of the request in the service's log", async () => {
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

  it.each(Object.entries(PUBLIC_ERRORS))(
    "%s, with a message that says what to do",
    async (code, { status, retryAfterSeconds = null }) => {
      const headers = { ...(retryAfterSeconds && { "retry-after": String(retryAfterSeconds) }), "x-request-id": "r-1" };
      const { options } = fakeService(refusal(status, code, headers));
      const call = device({ id: "app" }, "phone", { ...options, maxTries: 1 }).sign("aGVsbG8=");
      await expect(call).rejects.toMatchObject({ name: "BadgeServiceError", status, code, retryAfterSeconds });
      const message = String(await failureOf(call));
      expect(message).toMatch(new RegExp(`^BadgeServiceError: ${status} ${code} \\(r-1\\): .{10,}`));
      expect(message).not.toContain("does not know the code");
    },
  );

  it.each([
    ["a log-in page where a badge should be", new Response("<html>", { status: 200 })],
    ["a success without what was asked for", Response.json({ badge: "7" }, { status: 201 })],
    ["a success of another shape", Response.json([{ signature: 7 }])],
    ["a proxy's error page", new Response("<html>", { status: 403 })],
    ["a code of a newer service", refusal(409, "BRAND_NEW")],
    ["an error that is not a code", Response.json({ error: { code: "NOT_FOUND" } }, { status: 404 })],
    ["a success that says it is an error", Response.json({ error: "NOT_FOUND" }, { status: 200 })],
  ])("what is thrown has no code for %s", async (_name, response) => {
    const phone = device({ id: "app" }, "phone", fakeService(response).options);
    const failure = { name: "BadgeServiceError", status: response.status, code: null, requestId: null };
    await expect(phone.requestBadge({ userId: "alice" })).rejects.toMatchObject(failure);
  });

  it("a client reads a Retry-After that is a date, as proxies may send", async () => {
    const { options } = fakeService(refusal(429, "RATE_LIMITED", { "retry-after": "Fri, 15 Jan 2027 08:01:30 GMT" }));
    const call = device({ id: "app" }, "phone", { ...options, maxTries: 1 }).sign("aGVsbG8=");
    await expect(call).rejects.toMatchObject({ retryAfterSeconds: 90 });
  });
});
