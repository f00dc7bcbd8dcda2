import { expect, it } from "vitest";
import { issueTo } from "../../badges/life-support.ts";
import { createApplication } from "../../support/application.ts";
import { callServer, outcome, requestBadge, sign } from "../../support/http.ts";

// Its badges and invitations by their numbers and tokens: test/http/errors/order.test.ts.
it("what belongs to another application is neither listed, found by user, signed for, blocked nor reached by a cursor (contract sections 3 and 4)", async () => {
  const [owner, stranger] = [await createApplication(), await createApplication()];
  for (const udid of ["phone", "tablet"]) await issueTo(owner, udid, "user");
  const cursor = (await callServer(owner, "GET", "/v1/badges?per_page=1")).headers.get("pagination-cursor");
  expect(cursor).not.toBeNull();
  expect(outcome(await sign(stranger, "phone", { base64: "AAAA" }))).toBe("404 UNKNOWN_BADGE");
  for (const path of ["/v1/badges", "/v1/users/user/badges"]) {
    for (const query of ["", `?cursor=${cursor}`]) {
      expect(await callServer(stranger, "GET", path + query)).toMatchObject({ status: 200, body: { badges: [] } });
    }
  }
  expect(await callServer(stranger, "PATCH", "/v1/users/user/block")).toMatchObject({ body: { revoked: [] } });
  expect((await requestBadge(owner, "phone", { userId: "user" })).status).toBe(200);
});
