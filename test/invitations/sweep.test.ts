import { describe, expect, it } from "vitest";
import { requestQuietly } from "../badges/support.ts";
import { createApplication } from "../support/application.ts";
import { testContext } from "../support/context.ts";
import { byEffort } from "../support/effort.ts";
import { runSql } from "../support/home.ts";
import { call, serverHeaders } from "../support/http.ts";
import { sweep } from "../support/sweep.ts";
import { invite } from "./support/calls.ts";
import { ahead, MINUTE, moveClock, SECOND, useStandingClock } from "./support/clock.ts";
import { useQuietLog } from "./support/log.ts";
import { freedNumbers, RECORDED_EVENTS, readInvitation, rowsInSync } from "./support/storage.ts";

const log = useQuietLog();
useStandingClock();

const MANY = byEffort(600, 3_000);

describe("the sweep (contract section 5: expiry needs no request to happen)", () => {
  it("invitations expire at their end, and no others, and their numbers are freed", async () => {
    const application = await createApplication(RECORDED_EVENTS);
    const past = [await invite(application, ahead(SECOND)), await invite(application, ahead(MINUTE))];
    const later = await invite(application, ahead(MINUTE + 1));
    moveClock(MINUTE);
    await sweep([testContext().context]);
    for (const { token } of past) expect(await readInvitation(token)).toMatchObject({ state: "expired" });
    expect(await readInvitation(later.token)).toMatchObject({ state: "pending" });
    await rowsInSync(application);
    expect(await freedNumbers(application)).toEqual(past.map(({ number }) => number));
  });

  it("numbers are freed although the queue fails", async () => {
    const application = await createApplication({ webhookUrl: "https://hooks.example/badges" });
    const queue = { sendBatch: () => Promise.reject(new Error("no answer")), send: () => Promise.reject(new Error()) };
    const overrides = { queue: { ...testContext().context.queue, ...queue } };
    await runSql(
      `INSERT INTO webhook_event (application_id, id, event, payload, state, due_at, created_at)
       VALUES (?1, 'evt_lost', 'badge:created', '{}', 'pending', 0, 0)`,
      application.id,
    );
    const { token } = await invite(application, ahead(SECOND));
    moveClock(SECOND);
    await sweep([testContext(overrides).context]);
    await runSql("DELETE FROM webhook_event WHERE id = 'evt_lost'");
    expect(await readInvitation(token)).toMatchObject({ state: "expired" });
    expect(log.lines()).toContainEqual(expect.objectContaining({ event: "sweep-task-failed", task: "eventsEnqueued" }));
  });
});

describe("many invitations that expire in one minute (contract section 5)", () => {
  it("many invitations expire while badges are issued, and each number is freed once", async () => {
    const application = await createApplication({ size: 4 * MANY, ...RECORDED_EVENTS });
    const asServer = { ...serverHeaders(application), udid: "server" };
    const body = { invitations: Array.from({ length: 100 }, () => ({ expiresAt: ahead(MINUTE) })) };
    for (let count = 0; count < MANY; count += 100) {
      expect((await call("POST", "/v1/invitations", { headers: asServer, body })).status).toBe(200);
    }
    moveClock(MINUTE);
    const swept = sweep([testContext().context]);
    const device = (place: number) => requestQuietly(application, `device ${place}`, { userId: "alice" });
    const issued = await Promise.all(Array.from({ length: 50 }, (_, place) => device(place)));
    expect(issued.map(({ status }) => status)).toEqual(issued.map(() => 201));
    await swept;
    const { invitations } = await rowsInSync(application);
    expect(await freedNumbers(application)).toHaveLength(MANY);
    expect(invitations.every(({ state }) => state === "expired")).toBe(true);
  });
});
