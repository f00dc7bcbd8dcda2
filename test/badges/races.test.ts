import { describe, expect, it } from "vitest";
import { ENTRY } from "../core/support.ts";
import { claim, invite, outcome } from "../invitations/support/calls.ts";
import { useStandingClock } from "../invitations/support/clock.ts";
import { useQuietLog } from "../invitations/support/log.ts";
import { RECORDED_EVENTS, readInvitation } from "../invitations/support/storage.ts";
import { aroundObjectD1 } from "../support/allocator.ts";
import { createApplication } from "../support/application.ts";
import { failingTrips, LOST } from "../support/faults.ts";
import { homeDatabase } from "../support/home.ts";
import { badgeRows } from "../support/rows.ts";
import { getBadge, issueTo, signOn, takeStep } from "./life-support.ts";
import { inParallel } from "./support.ts";

useQuietLog();
useStandingClock();

describe("steps that race (contract section 12)", () => {
  it("a suspension applies to every signature requested after its response", async () => {
    const application = await createApplication();
    const id = await issueTo(application, "phone", "alice");
    const signatures = inParallel(20, () => signOn(application, "phone"));
    expect((await takeStep(application, id, "suspend")).status).toBe(200);
    const later = await inParallel(5, () => signOn(application, "phone"));
    expect(later.map(outcome)).toEqual(Array.from({ length: 5 }, () => "403 SUSPENDED_BADGE"));
    for (const answer of await signatures) expect(["200", "403 SUSPENDED_BADGE"]).toContain(outcome(answer));
  });

  it("a concurrent revocation and claim end as if one had come first, never in a mix", async () => {
    for (let round = 0; round < 12; round++) {
      const application = await createApplication();
      const id = await issueTo(application, "phone", "alice");
      const { token } = await invite(application);
      const calls = [
        () => takeStep(application, id, "revoke"),
        () => claim(application, "phone", "alice", token),
      ] as const;
      const [revoked, claimed] = await Promise.all(
        round % 2 === 0 ? [calls[0](), calls[1]()] : [scheduler.wait(round).then(calls[0]), calls[1]()],
      );
      const state = (await getBadge(application, id)).body.state;
      const result = `${outcome(revoked)}, ${outcome(claimed)}: ${String(state)}`;
      expect(["200, 403 REVOKED_BADGE: revoked", "409 ENDED_BADGE, 201: replaced"]).toContain(result);
      expect((await readInvitation(token)).state).toBe(state === "replaced" ? "claimed" : "pending");
    }
  });

  it("concurrent suspensions and resumptions each get their own change number", async () => {
    const application = await createApplication({ ...RECORDED_EVENTS, events: "badge:suspended,badge:resumed" });
    const numbers = await inParallel(5, (place) => issueTo(application, `phone-${place}`, "alice"));
    const answers = await inParallel(40, (place) =>
      takeStep(application, numbers[place % 5] ?? "", place % 2 === 0 ? "suspend" : "resume"),
    );
    expect(answers.filter(({ status }) => status !== 200 && status !== 503)).toEqual([]);
    const rows = await badgeRows(application);
    expect(new Set(rows.map(({ change }) => change)).size).toBe(5);
    const { results } = await homeDatabase()
      .prepare("SELECT payload FROM webhook_event WHERE application_id = ?1")
      .bind(application.id)
      .all();
    const changes = results.map(({ payload }) => JSON.parse(String(payload)).data.change);
    expect(changes.every(Number.isSafeInteger)).toBe(true);
    expect(new Set(changes).size).toBe(changes.length);
  });
});

describe("a call whose response was lost (contract section 12)", () => {
  it("is not carried out twice when it is repeated", async () => {
    const application = await createApplication({ ...RECORDED_EVENTS, events: "badge:suspended" });
    const id = await issueTo(application, "phone", "alice");
    const kind = { name: "once", times: 1, error: LOST, isOvercome: true };
    await aroundObjectD1(application, () => failingTrips(ENTRY, kind, "after"));
    expect(await takeStep(application, id, "suspend")).toMatchObject({ status: 200, body: { state: "suspended" } });
    expect(await takeStep(application, id, "suspend")).toMatchObject({ status: 200, body: { state: "suspended" } });
    const events = homeDatabase().prepare("SELECT count(*) AS count FROM webhook_event WHERE application_id = ?1");
    expect(await events.bind(application.id).first("count")).toBe(1);
  });
});
