import { describe, expect, it } from "vitest";
import { createApplication } from "../support/application.ts";
import { call, requestBadge, serverHeaders, sign } from "../support/http.ts";

describe("a user device and its badge (contract section 1)", () => {
  it("answers 201 with number and public key first, 200 with the same number ever after", async () => {
    const application = await createApplication();
    const first = await requestBadge(application, "device-1", { userId: "alice" });
    expect(first.status).toBe(201);
    expect(Object.keys(first.body).sort()).toEqual(["badgeId", "publicKey"]);
    const second = await requestBadge(application, "device-1", { userId: "alice" });
    expect(second).toMatchObject({ status: 200, body: { badgeId: first.body.badgeId } });
    expect(await sign(application, "device-1", { base64: "aGVsbG8=" })).toMatchObject({ status: 200 });
    const page = await call("GET", "/v1/badges", { headers: serverHeaders(application) });
    expect(page).toMatchObject({ status: 200, body: { badges: [{ id: first.body.badgeId, userId: "alice" }] } });
  });
});
