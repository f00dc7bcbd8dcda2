import { beforeEach, describe, expect, it, vi } from "vitest";
import { createApplication } from "../../support/application.ts";
import { type Answer, call, requestBadge, serverHeaders } from "../../support/http.ts";
import { outcome } from "../support/draft.ts";
import {
  CREATOR,
  claimedInvitation,
  expiredInvitation,
  invite,
  revokedInvitation,
  tenant,
} from "../support/invitations.ts";

beforeEach(() => {
  vi.spyOn(console, "log").mockImplementation(() => {});
});

/** All that a caller can see of an answer, but for the ID that every answer has of its own. */
function seen({ status, body, headers }: Answer): object {
  return { status, body, headers: [...headers].filter(([name]) => name !== "x-request-id") };
}

describe("what belongs to another application (contract sections 3 to 5)", () => {
  it("looks like something that does not exist, whatever its state", async () => {
    const [{ application: owner }, { application: stranger }] = [await tenant(), await tenant()];
    const server = serverHeaders(stranger);
    const device = { applicationid: stranger.id, udid: CREATOR };
    const revoke = (id: string, headers: Record<string, string>) =>
      call("PATCH", `/v1/invitation/${id}/revoke`, { headers });
    const claim = (invitationToken: string) => requestBadge(stranger, CREATOR, { userId: "user", invitationToken });
    const invitations = [
      await invite(owner),
      await claimedInvitation(owner),
      await revokedInvitation(owner),
      await expiredInvitation(owner),
    ];
    const unknown = "inv_0000000000000000000000000000000";
    for (const { id } of invitations) {
      expect(seen(await revoke(id, server))).toEqual(seen(await revoke(unknown, server)));
      expect(seen(await revoke(id, device))).toEqual(seen(await revoke(unknown, device)));
      expect(seen(await claim(id))).toEqual(seen(await claim(unknown)));
    }
    expect(outcome(await claim(unknown))).toBe("404 UNKNOWN_INVITATION");
    expect(outcome(await revoke(unknown, server))).toBe("404 UNKNOWN_INVITATION");
  });

  it("looks the same to another device of the same application", async () => {
    const application = await createApplication();
    const headers = { applicationid: application.id, udid: "another device" };
    const revoke = (id: string) => call("PATCH", `/v1/invitation/${id}/revoke`, { headers });
    const invitations = [
      await invite(application),
      await claimedInvitation(application),
      await revokedInvitation(application),
    ];
    for (const { id } of invitations) expect(seen(await revoke(id))).toEqual(seen(await revoke("inv_unknown")));
    expect(outcome(await revoke("inv_unknown"))).toBe("404 UNKNOWN_INVITATION");
  });

  it("is neither listed, found by user, signed for nor reached by a cursor", async () => {
    const [owner, stranger] = [await createApplication(), await createApplication()];
    for (const udid of ["phone", "tablet"])
      await requestBadge(owner, udid, { userId: "user", metadata: { os: "secret" } });
    const get = (path: string) => call("GET", path, { headers: serverHeaders(stranger) });
    const sign = (udid: string) =>
      call("POST", "/v1/badge/sign", { headers: { applicationid: stranger.id, udid }, body: { base64: "AAAA" } });
    const first = await call("GET", "/v1/badges?per_page=1", { headers: serverHeaders(owner) });
    const cursor = first.headers.get("pagination-cursor");
    expect(cursor).not.toBeNull();
    expect(seen(await get("/v1/users/user/badges"))).toEqual(seen(await get("/v1/users/nobody/badges")));
    expect(seen(await sign("phone"))).toEqual(seen(await sign("no such phone")));
    for (const path of ["/v1/badges", `/v1/badges?cursor=${cursor}`, `/v1/users/user/badges?cursor=${cursor}`]) {
      expect(await get(path)).toMatchObject({ status: 200, body: { badges: [] } });
    }
  });

  it("cannot be told from an unknown application by its lists", async () => {
    const [owner, stranger] = [await createApplication(), await createApplication()];
    const list = (applicationid: string) =>
      call("GET", "/v1/badges", { headers: { applicationid, applicationsecret: stranger.secret } });
    const disabled = await createApplication({ disabledAt: 1 });
    const unknown = seen(await list("app_00000000000000000000"));
    expect(seen(await list(owner.id))).toEqual(unknown);
    expect(seen(await list(disabled.id))).toEqual(unknown);
    const ofDisabled = await call("GET", "/v1/badges", { headers: serverHeaders(disabled) });
    expect(seen(ofDisabled)).toEqual(unknown);
  });

  it("does not change, whatever a stranger tries", async () => {
    const { application: owner, invitation } = await tenant();
    const { application: stranger } = await tenant();
    const state = () => call("GET", "/v1/badges", { headers: serverHeaders(owner) });
    const before = await state();
    const strangers = [
      { ...serverHeaders(stranger), udid: CREATOR },
      { applicationid: stranger.id, udid: CREATOR },
      { applicationid: owner.id, applicationsecret: stranger.secret, udid: "stranger" },
      { applicationid: stranger.id, applicationsecret: owner.secret, udid: CREATOR },
    ];
    for (const headers of strangers) {
      await call("PATCH", `/v1/invitation/${invitation}/revoke`, { headers });
      if (headers.applicationid === owner.id) continue;
      await call("POST", "/v1/badge", { headers, body: { userId: "user", invitationToken: invitation } });
      await call("POST", "/v1/badge", { headers, body: { userId: "user", metadata: { os: "changed" } } });
    }
    expect((await state()).body).toEqual(before.body);
    const claim = await requestBadge(owner, "guest", { userId: "guest", invitationToken: invitation });
    expect(claim.status).toBe(201);
  });

  it("has another badge, with a number of another range, for the same device and user", async () => {
    const applications = [await createApplication(), await createApplication()];
    for (const application of applications) {
      const { status, body } = await requestBadge(application, "phone", { userId: "user" });
      expect(status).toBe(201);
      expect(Number(body.badgeId)).toBeGreaterThanOrEqual(application.firstNumber);
      expect(Number(body.badgeId)).toBeLessThanOrEqual(application.lastNumber);
    }
  });
});
