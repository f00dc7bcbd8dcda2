import { describe, expect, it } from "vitest";
import { issueTo } from "../../badges/life-support.ts";
import { createApplication } from "../../support/application.ts";
import { type Answer, call, callServer, requestBadge, serverHeaders, sign } from "../../support/http.ts";
import { outcome } from "../support/draft.ts";
import {
  CREATOR,
  claimedInvitation,
  expiredInvitation,
  invite,
  revokedInvitation,
  tenant,
} from "../support/invitations.ts";

/** All that a caller can see of an answer, but for the ID that every answer has of its own. */
function seen({ status, body, headers }: Answer): object {
  return { status, body, headers: [...headers].filter(([name]) => name !== "x-request-id") };
}

describe("what belongs to another application (contract sections 3 to 5)", () => {
  it("looks like something that does not exist, whatever its state, as it does to another device of its own", async () => {
    const [{ application: owner }, { application: stranger }] = [await tenant(), await tenant()];
    const revokers = [
      serverHeaders(stranger),
      { applicationid: stranger.id, udid: CREATOR },
      { applicationid: owner.id, udid: "another device" },
    ];
    const revoke = (id: string, headers: Record<string, string>) =>
      call("PATCH", `/v1/invitation/${id}/revoke`, { headers });
    const claim = (invitationToken: string) => requestBadge(stranger, CREATOR, { userId: "user", invitationToken });
    const unknown = "inv_0000000000000000000000000000000";
    for (const make of [invite, claimedInvitation, revokedInvitation, expiredInvitation]) {
      const { id } = await make(owner);
      for (const headers of revokers)
        expect(seen(await revoke(id, headers))).toEqual(seen(await revoke(unknown, headers)));
      expect(seen(await claim(id))).toEqual(seen(await claim(unknown)));
    }
    expect(outcome(await claim(unknown))).toBe("404 UNKNOWN_INVITATION");
    for (const headers of revokers) expect(outcome(await revoke(unknown, headers))).toBe("404 UNKNOWN_INVITATION");
  });

  it("is neither listed, found by user, signed for, blocked nor reached by a cursor", async () => {
    const [owner, stranger] = [await createApplication(), await createApplication()];
    for (const udid of ["phone", "tablet"]) await issueTo(owner, udid, "user");
    const get = (path: string) => callServer(stranger, "GET", path);
    const signOf = (udid: string) => sign(stranger, udid, { base64: "AAAA" });
    const cursor = (await callServer(owner, "GET", "/v1/badges?per_page=1")).headers.get("pagination-cursor");
    expect(cursor).not.toBeNull();
    expect(seen(await get("/v1/users/user/badges"))).toEqual(seen(await get("/v1/users/nobody/badges")));
    expect(seen(await signOf("phone"))).toEqual(seen(await signOf("no such phone")));
    for (const path of ["/v1/badges", `/v1/badges?cursor=${cursor}`, `/v1/users/user/badges?cursor=${cursor}`]) {
      expect(await get(path)).toMatchObject({ status: 200, body: { badges: [] } });
    }
    expect(await callServer(stranger, "PATCH", "/v1/users/user/block")).toMatchObject({ body: { revoked: [] } });
    expect((await requestBadge(owner, "phone", { userId: "user" })).status).toBe(200);
  });
});
