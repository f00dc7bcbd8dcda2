import { describe, expect, it } from "vitest";
import { BadgeServiceError, ERROR_CODES } from "../../src/client/index.ts";
import { PUBLIC_ERRORS } from "../../src/shared/error-table.ts";
import { device, failureOf, fakeService, refusal } from "./support.ts";

describe("what a client throws when the service refuses (contract section 6)", () => {
  it("a client knows each code of the service, once", () => {
    expect(ERROR_CODES.toSorted()).toEqual(Object.keys(PUBLIC_ERRORS).toSorted());
  });

  it("a refusal is thrown with the status, the code and the ID of the request in the service's log, and says what to do", async () => {
    for (const [code, { status, retryAfterSeconds = null }] of Object.entries(PUBLIC_ERRORS)) {
      const headers = { ...(retryAfterSeconds && { "retry-after": String(retryAfterSeconds) }), "x-request-id": "r-1" };
      const { options } = fakeService(refusal(status, code, headers));
      const error = await failureOf(device({ id: "app" }, "phone", { ...options, maxTries: 1 }).sign("aGVsbG8="));
      expect(error).toBeInstanceOf(BadgeServiceError);
      expect(error).toMatchObject({ name: "BadgeServiceError", status, code, requestId: "r-1", retryAfterSeconds });
      expect(String(error)).toMatch(new RegExp(`^BadgeServiceError: ${status} ${code} \\(r-1\\): .{10,}`));
      expect(String(error)).not.toContain("does not know the code");
    }
  });

  it("a value that no header can carry is refused by the header's name, not with the value, which may be a secret", async () => {
    const { options, requests } = fakeService(refusal(401, "INVALID_CREDENTIALS"));
    const error = await failureOf(device({ id: "app\nsecret" }, "phone", options).sign("aGVsbG8="));
    expect(error).toBeInstanceOf(TypeError);
    expect(String(error)).toContain("applicationid");
    expect(String(error)).not.toContain("secret");
    expect(requests).toEqual([]);
  });

  it.each([
    ["a log-in page where a badge should be", new Response("<html>", { status: 200 })],
    ["a success without what was asked for", Response.json({ badge: "7" }, { status: 201 })],
    ["a proxy's error page", new Response("<html>", { status: 403 })],
    ["a code of a newer service", refusal(409, "BRAND_NEW")],
    ["an error that is not a code", Response.json({ error: { code: "NOT_FOUND" } }, { status: 404 })],
    ["a success that says it is an error", Response.json({ error: "NOT_FOUND" }, { status: 200 })],
  ])("what is thrown has no code for %s", async (_name, response) => {
    const phone = device({ id: "app" }, "phone", fakeService(response).options);
    const failure = { name: "BadgeServiceError", status: response.status, code: null, requestId: null };
    await expect(phone.requestBadge({ userId: "alice" })).rejects.toMatchObject(failure);
  });
});
