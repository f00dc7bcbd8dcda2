import { describe, expect, it } from "vitest";
import { signIn } from "../http/support/people.ts";
import { createApplication } from "../support/application.ts";
import { collect, device, fakeService, inOneHour, server } from "./support.ts";

describe("settings, invitations, events and counts with the server client (contract section 19)", () => {
  it("the server client shows the application's settings", async () => {
    const application = await createApplication({ name: "Main Street 1", requireSecret: true, statusList: true });
    expect(await server(application).getApplication()).toEqual({
      applicationId: application.id,
      name: "Main Street 1",
      firstNumber: application.firstNumber,
      lastNumber: application.lastNumber,
      requireSecret: true,
      requireProof: false,
      statusList: true,
      webhookUrl: null,
      // The page for visitors (section 27), at the PUBLIC_URL of wrangler.toml.
      invitationLink: `http://localhost:8787/pass#${application.id}/{token}`,
    });
  });

  it("the server client lists invitations newest first, page by page or one by one, all or those in one state", async () => {
    const application = await createApplication();
    const client = server(application);
    const end = inOneHour();
    const visit = { expiresAt: end, udid: "desk" };
    const claimed = await client.createInvitation({ ...visit, badgeExpiresAt: end });
    await device(application, "visitor").requestBadge({ userId: "vera", invitationToken: claimed.id });
    const revoked = await client.createInvitation(visit);
    await client.revokeInvitation(revoked.id);
    const pending = await client.createInvitation(visit);
    const pages = await collect(client.listInvitations({ perPage: 2 }));
    expect(pages.map(({ invitations }) => invitations.length)).toEqual([2, 1]);
    expect(pages.map(({ nextCursor }) => nextCursor === null)).toEqual([false, true]);
    const expiresAt = end.toISOString();
    const createdAt = expect.stringMatching(/Z$/);
    const all = await collect(client.listInvitations({ perPage: 1 }).invitations());
    const byState = Object.fromEntries(all.map((invitation) => [invitation.state, invitation]));
    expect(byState).toEqual({
      pending: { badgeId: pending.badgeId, state: "pending", createdAt, expiresAt },
      revoked: { badgeId: revoked.badgeId, state: "revoked", createdAt, expiresAt },
      claimed: {
        badgeId: claimed.badgeId,
        state: "claimed",
        createdAt,
        expiresAt,
        badgeExpiresAt: expiresAt,
        userId: "vera",
      },
    });
    expect(await collect(client.listInvitations({ state: "claimed" }).invitations())).toEqual([byState.claimed]);
  });

  it("the server client lists invitations by visit and by name, the history by time, actor and action, and who has access", async () => {
    const application = await createApplication();
    const client = server(application);
    const [end, udid] = [inOneHour(), "desk"];
    const early = new Date(Date.now() - 1000);
    await client.createInvitation({ expiresAt: end, udid, name: "Ann Lee", actor: "Tom" });
    await client.createInvitation({ expiresAt: end, udid, name: "Bob", badgeStartsAt: early, badgeExpiresAt: end });
    const namesOf = async (query: Parameters<typeof client.listInvitations>[0]) =>
      (await collect(client.listInvitations({ perPage: 1, ...query }).invitations())).map(({ name }) => name);
    expect(await namesOf({ from: early, until: end.toISOString() })).toEqual(["Bob", "Ann Lee"]);
    expect(await namesOf({ from: end })).toEqual([]);
    expect(await namesOf({ q: "LEE" })).toEqual(["Ann Lee"]);
    const countOf = async (query: Parameters<typeof client.listHistory>[0]) =>
      (await collect(client.listHistory({ perPage: 1, ...query }).history())).length;
    expect(await countOf({ since: early, until: end, actor: "Tom", action: "invitation:created" })).toBe(1);
    expect(await countOf({ since: early.toISOString(), action: "invitation:created" })).toBe(2);
    expect(await countOf({ until: early })).toBe(0);
    await signIn(application, "viewer");
    const name = expect.stringContaining("The viewer");
    const people = [{ name, role: "viewer", createdAt: "1970-01-01T00:00:00.001Z" }];
    expect(await collect(client.listAccess({ perPage: 1 }).people())).toEqual(people);
  });

  it("the server client lists events with their deliveries, and replays one", async () => {
    const application = await createApplication({ webhookUrl: "https://hooks.example/badges", webhookHeldAt: 1 });
    const client = server(application);
    const numbers = [];
    for (const udid of ["a", "b", "c"]) {
      numbers.push(
        (await device(application, udid).requestBadge({ userId: "alice", metadata: { os: "iOS" } })).badgeId,
      );
    }
    const pages = await collect(client.listEvents({ perPage: 2 }));
    expect(pages.map(({ events }) => events.length)).toEqual([2, 1]);
    const events = await collect(client.listEvents({ perPage: 1 }).events());
    expect(events.map(({ data }) => data.id).toSorted()).toEqual(numbers.toSorted());
    const [event] = events;
    expect(event).toMatchObject({ event: "badge:created", attempts: 0, lastStatus: null, nextAttemptAt: null });
    expect(event?.data).toMatchObject({ userId: "alice", metadata: { os: "iOS" } });
    expect(await client.replayEvent(event?.id ?? "")).toEqual({ id: event?.id, state: "held" });
    const held = await collect(client.listEvents({ state: "held" }).events());
    expect(held.map(({ id }) => id)).toContain(event?.id);
    expect(await collect(client.listEvents({ state: "delivered" }).events())).toEqual([]);
    await expect(client.replayEvent("evt_none")).rejects.toMatchObject({ status: 404, code: "UNKNOWN_EVENT" });
  });

  it("the server client returns the same counts as the script's stats, and badges by state and day", async () => {
    const application = await createApplication({ size: 10 });
    await device(application, "phone").requestBadge({ userId: "alice", metadata: { os: "iOS" } });
    const statistics = await server(application).getStatistics();
    expect(statistics).toMatchObject({
      applicationId: application.id,
      numbers: { size: 10, issued: 1, left: 9, usedPercent: 10 },
      badges: { os: { values: [{ value: "iOS", badges: 1 }], others: 0 } },
      invitations: { pending: 0, claimed: 0, revoked: 0, expired: 0 },
      badgesByState: { active: 1, suspended: 0, revoked: 0, expired: 0, replaced: 0 },
      deliveries: [],
    });
    expect(statistics.badgesPerDay).toHaveLength(90);
    expect(statistics.badgesPerDay.at(-1)?.badges).toBe(1);
  });

  it("the server client passes on what a newer service adds, and takes nothing that has not what the caller needs", async () => {
    const { options } = fakeService(
      Response.json({ id: "evt_1", state: "held", since: "x" }, { status: 202 }),
      Response.json({ id: "evt_1" }, { status: 202 }),
    );
    const client = server(await createApplication(), options);
    expect(await client.replayEvent("evt_1")).toEqual({ id: "evt_1", state: "held", since: "x" });
    await expect(client.replayEvent("evt_1")).rejects.toMatchObject({ status: 202, code: null });
  });
});
