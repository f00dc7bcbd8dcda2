import { afterEach, beforeEach, describe, expect, it } from "vitest";
import { changeBadge } from "../../src/worker/badges/transitions.ts";
import { claim, invite, outcome } from "../invitations/support/calls.ts";
import { ahead, HOUR, moveClock, useStandingClock } from "../invitations/support/clock.ts";
import { interceptedContext } from "../invitations/support/intercepted.ts";
import { useQuietLog } from "../invitations/support/log.ts";
import { RECORDED_EVENTS, readInvitation } from "../invitations/support/storage.ts";
import { aroundObjectD1 } from "../support/allocator.ts";
import { createApplication } from "../support/application.ts";
import { callWith, UNLIMITED } from "../support/bindings.ts";
import { aroundD1 } from "../support/d1.ts";
import { failingTrips, isAbout, LOST } from "../support/faults.ts";
import { HeldTrips } from "../support/held.ts";
import { bindDatabase, homeDatabase } from "../support/home.ts";
import { type Answer, requestBadge } from "../support/http.ts";
import { badgeRows } from "../support/rows.ts";
import { StandingTimers } from "../support/timers.ts";
import { block, getBadge, issueTo, runSweep, setEnd, signOn, takeStep } from "./life-support.ts";
import { inParallel } from "./support.ts";

useQuietLog();
useStandingClock();

/** A context on which something happens once, between what a step reads and what it writes. */
function overtakenBy(happens: () => Promise<unknown>) {
  let isDone = false;
  return interceptedContext(async ({ part }, go) => {
    if (part === "allocator" && !isDone) {
      isDone = true;
      await happens();
    }
    return go();
  });
}

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

  it("a revocation between a claim's read and its write decides the claim", async () => {
    const application = await createApplication();
    const id = await issueTo(application, "phone", "alice");
    const { token } = await invite(application);
    let isDone = false;
    await aroundObjectD1(application, () => async (statements, send) => {
      if (isAbout(statements, "SET state = 'claimed'") && !isDone) {
        isDone = true;
        const revoke = "UPDATE badge SET state = 'revoked', ended_at = 1, change = 99 WHERE number = ?1";
        await homeDatabase().prepare(revoke).bind(Number(id)).run();
      }
      return send();
    });
    expect(outcome(await claim(application, "phone", "alice", token))).toBe("403 REVOKED_BADGE");
    expect(isDone).toBe(true);
    expect(await readInvitation(token)).toMatchObject({ state: "pending" });
  });

  it("a concurrent revocation and claim end as if one had come first, never in a mix", async () => {
    const seen = new Set<string>();
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
      seen.add(result);
    }
    expect(seen.size).toBeGreaterThan(0);
  });

  it("a block between a claim's read and its write decides the claim", async () => {
    const application = await createApplication();
    const { token } = await invite(application);
    let isDone = false;
    await aroundObjectD1(application, () => async (statements, send) => {
      if (isAbout(statements, "SET state = 'claimed'") && !isDone) {
        isDone = true;
        await block(application, "alice");
      }
      return send();
    });
    expect(outcome(await claim(application, "phone", "alice", token))).toBe("403 BLOCKED_USER");
    expect(await readInvitation(token)).toMatchObject({ state: "pending" });
  });

  it("a resumption is refused when the sweep records the expiry first", async () => {
    const application = await createApplication();
    const id = await issueTo(application, "phone", "alice");
    await takeStep(application, id, "suspend");
    await setEnd(application, id, ahead(HOUR));
    moveClock(HOUR - 1);
    const context = overtakenBy(async () => {
      moveClock(1);
      await runSweep();
    });
    const resume = changeBadge(
      context,
      application.id,
      { number: Number(id), step: { kind: "resume" }, ifChange: null, ownedBy: null },
      { actor: { kind: "server" } },
    );
    await expect(resume).rejects.toMatchObject({ code: "ENDED_BADGE" });
    expect((await getBadge(application, id)).body.state).toBe("expired");
    await setEnd(application, id, null);
    expect((await getBadge(application, id)).body.state).toBe("suspended");
  });

  it("a later end wins when it is set while the sweep records the expiry", async () => {
    const application = await createApplication();
    const id = await issueTo(application, "phone", "alice");
    await setEnd(application, id, ahead(HOUR));
    moveClock(HOUR);
    let isDone = false;
    await aroundObjectD1(application, () => async (_, send) => {
      if (!isDone) {
        isDone = true;
        await homeDatabase()
          .prepare("UPDATE badge SET expires_at = NULL, change = change + 1 WHERE number = ?1")
          .bind(Number(id))
          .run();
      }
      return send();
    });
    await runSweep();
    expect(isDone).toBe(true);
    const { body } = await getBadge(application, id);
    expect(body).toMatchObject({ id, userId: "alice", state: "active" });
    expect(body).not.toHaveProperty("expiresAt");
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

describe("a D1 write that arrives late (contract section 12)", () => {
  let timers: StandingTimers;
  beforeEach(() => {
    timers = new StandingTimers();
  });
  afterEach(() => {
    timers.stop();
  });

  /** The call's trip to D1 hangs until its caller has given up. */
  async function timeOut(call: Promise<Answer>, held: HeldTrips): Promise<void> {
    await timers.pass(10_000, () => held.count === 1);
    expect(outcome(await call)).toBe("503 UNAVAILABLE");
    held.stop();
  }

  it("never undoes a later call", async () => {
    const application = await createApplication();
    const id = await issueTo(application, "phone", "alice");
    const held = new HeldTrips("UPDATE badge SET state");
    await aroundObjectD1(application, () => held.around);
    await timeOut(takeStep(application, id, "suspend"), held);
    // The same badge is suspended and resumed by others meanwhile.
    expect((await takeStep(application, id, "suspend")).status).toBe(200);
    expect((await takeStep(application, id, "resume")).status).toBe(200);
    await held.letThrough();
    expect((await getBadge(application, id)).body.state).toBe("active");
    expect((await signOn(application, "phone")).status).toBe(200);
  });

  it("of a login's metadata never replaces a later login's", async () => {
    const application = await createApplication();
    await issueTo(application, "phone", "alice");
    const held = new HeldTrips("SET metadata");
    const request = (os: string) =>
      new Request("https://badges.example/v1/badge", {
        method: "POST",
        headers: { applicationid: application.id, udid: "phone" },
        body: JSON.stringify({ userId: "alice", metadata: { os } }),
      });
    const late = {
      DEVICE_LIMIT: UNLIMITED,
      CLIENT_IP_LIMIT: UNLIMITED,
      ...bindDatabase(aroundD1(homeDatabase(), held.around)),
    };
    await timeOut(callWith(late, request("old")), held);
    expect((await requestBadge(application, "phone", { userId: "alice", metadata: { os: "new" } })).status).toBe(200);
    await held.letThrough();
    const [row] = await badgeRows(application);
    expect(row?.metadata).toBe('{"os":"new"}');
  });

  it("gets the response of the call that made it when the first response was lost", async () => {
    const application = await createApplication({ ...RECORDED_EVENTS, events: "badge:suspended" });
    const id = await issueTo(application, "phone", "alice");
    const kind = { name: "once", times: 1, error: LOST, isOvercome: true };
    await aroundObjectD1(application, () => failingTrips("UPDATE badge SET state", kind, "after"));
    expect(await takeStep(application, id, "suspend")).toMatchObject({ status: 200, body: { state: "suspended" } });
    const events = homeDatabase().prepare("SELECT count(*) AS count FROM webhook_event WHERE application_id = ?1");
    expect(await events.bind(application.id).first("count")).toBe(1);
  });
});
