import { describe, expect, it } from "vitest";
import { getBadge, takeStep } from "../badges/life-support.ts";
import { requestQuietly } from "../badges/support.ts";
import { aroundObjectD1 } from "../support/allocator.ts";
import { createApplication } from "../support/application.ts";
import { callWith } from "../support/bindings.ts";
import { aroundD1 } from "../support/d1.ts";
import { isAbout } from "../support/faults.ts";
import { bindDatabase, homeDatabase } from "../support/home.ts";
import { type Answer, serverHeaders } from "../support/http.ts";
import { StandingTimers } from "../support/timers.ts";
import { invite, outcome, requestInvitation } from "./support/calls.ts";
import { ahead, DAY } from "./support/clock.ts";
import { expectConsistent } from "./support/invariants.ts";
import { useQuietLog } from "./support/log.ts";
import { RECORDED_EVENTS } from "./support/storage.ts";

const log = useQuietLog();

/** 503 to the caller, and its one line in the log is of a request that lost its races: no failure of anything. */
function expectContended(answer: Answer): void {
  expect(outcome(answer)).toBe("503 UNAVAILABLE");
  expect(answer.headers.get("retry-after")).toBe("2");
  const requestId = answer.headers.get("x-request-id");
  const line = { level: "info", event: "request", requestId, status: 503, code: "UNAVAILABLE", detail: "contended" };
  expect(log.lines().filter((written) => written.requestId === requestId)).toMatchObject([line]);
}

/** Before each group of badges is written, somebody else has got all of its numbers. */
function takingNumbers(application: { id: string }): Promise<void> {
  return aroundObjectD1(application, () => async (statements, send) => {
    if (isAbout(statements, "INSERT INTO badge")) {
      const rows = statements.find(({ sql }) => sql.includes("INSERT INTO badge"))?.parameters[0];
      await homeDatabase()
        .prepare(
          `INSERT INTO badge (number, application_id, device, user_id, position, turn)
         SELECT value ->> 'number', 'app_foreign', 'device-' || (value ->> 'number'), 'mallory', value ->> 'number', 1
         FROM json_each(?1)`,
        )
        .bind(rows)
        .run();
    }
    return send();
  });
}

describe("a request that loses every race gets 503, and no outage is logged (contract section 6)", () => {
  it("a claim by a user device that claims others each time", async () => {
    const application = await createApplication(RECORDED_EVENTS);
    const wanted = await invite(application);
    const claimQuietly = (token: string, bindings: Partial<Env> = {}) =>
      requestQuietly(application, "phone", { userId: "alice", invitationToken: token }, bindings);
    const DB = aroundD1(homeDatabase(), async (statements, send) => {
      const seen = await send();
      if (isAbout(statements, 'from "invitation"')) {
        expect((await claimQuietly((await invite(application)).token)).status).toBe(201);
      }
      return seen;
    });
    expectContended(await claimQuietly(wanted.token, { ...bindDatabase(DB) }));
    // Nothing was done: the token is still good.
    expect(outcome(await claimQuietly(wanted.token))).toBe("201");
    await expectConsistent(application);
  });

  it("a badge and an invitation whose numbers another holder gets each time", async () => {
    const [one, other] = [await createApplication({ size: 500 }), await createApplication({ size: 500 })];
    await Promise.all([one, other].map(takingNumbers));
    // However long a busy machine takes: it is not the deadline that ends these calls.
    const timers = new StandingTimers();
    try {
      const requests = [
        requestQuietly(one, "phone", { userId: "alice" }),
        requestInvitation(other, { expiresAt: ahead(DAY) }),
      ];
      for (const answer of await Promise.all(requests)) expectContended(answer);
    } finally {
      timers.stop();
    }
  });

  it("a badge that is gone when it is looked up", async () => {
    const application = await createApplication();
    expect((await requestQuietly(application, "phone", { userId: "alice" })).status).toBe(201);
    let looks = 0;
    const hide = homeDatabase()
      .prepare("UPDATE badge SET user_id = 'hidden' WHERE application_id = ?")
      .bind(application.id);
    const show = homeDatabase()
      .prepare("UPDATE badge SET user_id = 'alice' WHERE application_id = ?")
      .bind(application.id);
    const DB = aroundD1(homeDatabase(), async (statements, send) => {
      if (!isAbout(statements, "FROM badge")) return send();
      // The first look misses it, the object finds it, the second look misses it again.
      looks++;
      await hide.run();
      const seen = await send();
      await show.run();
      return seen;
    });
    expectContended(await requestQuietly(application, "phone", { userId: "alice" }, { ...bindDatabase(DB) }));
    expect(looks).toBe(2);
  });

  it("a revocation of an invitation that is pending again each time", async () => {
    const application = await createApplication();
    const { token } = await invite(application);
    const pendingAgain = homeDatabase()
      .prepare("UPDATE invitation SET state = 'pending', ended_at = NULL WHERE application_id = ?")
      .bind(application.id);
    const DB = aroundD1(homeDatabase(), async (statements, send) => {
      const sent = await send();
      if (isAbout(statements, "SET state = 'revoked'")) await pendingAgain.run();
      return sent;
    });
    const headers = serverHeaders(application);
    const request = () =>
      new Request(`https://badges.example/v1/invitation/${token}/revoke`, { method: "PATCH", headers });
    expectContended(await callWith(bindDatabase(DB), request()));
    // Nothing was done: it can still be revoked.
    expect((await callWith({}, request())).status).toBe(200);
  });

  it("a step in the life of a badge that somebody else changes each time", async () => {
    const application = await createApplication();
    const { body } = await requestQuietly(application, "phone", { userId: "alice" });
    let changes = 0;
    await aroundObjectD1(application, () => async (statements, send) => {
      if (isAbout(statements, "UPDATE badge")) {
        changes++;
        await homeDatabase()
          .prepare("UPDATE badge SET change = change + 1000 WHERE application_id = ?")
          .bind(application.id)
          .run();
      }
      return send();
    });
    expectContended(await takeStep(application, String(body.badgeId), "suspend"));
    expect(changes).toBeGreaterThan(1);
    expect((await getBadge(application, String(body.badgeId))).body.state).toBe("active");
  });
});
