import { expect } from "vitest";
import { z } from "zod";
import { Database } from "../../src/worker/storage/database.ts";
import { beat, stampHeartbeat } from "../../src/worker/storage/heartbeat.ts";
import { aroundAllocators } from "../support/allocator.ts";
import { createApplication, type TestApplication } from "../support/application.ts";
import { callWith } from "../support/bindings.ts";
import { FarD1 } from "../support/copy.ts";
import { bindDatabase, homeDatabase } from "../support/home.ts";
import { A_SIGNATURE, type Answer, BADGE, SIGN } from "../support/http.ts";
import { log } from "../support/log.ts";
import { objectsSendTo } from "../support/queue.ts";
import { isSettled, StandingTimers } from "../support/timers.ts";
import { QUIETLY } from "./support.ts";

export const ALICE = { userId: "alice" };

/** Writes the mark of time of this moment, as the scheduler does every minute. */
export async function tick(): Promise<void> {
  const db = new Database(homeDatabase());
  await beat(db, 0);
  await stampHeartbeat(db, Date.now());
}

const requestLine = z.object({ event: z.literal("request"), roundTrips: z.number() });

/** What a call asked for. `far`: what its line in the log says. */
interface Trips {
  /** Of a copy of D1 near the caller. */
  copy: number;
  primary: number;
  object: number;
  far: number;
}

/** A phone far from the primary of D1, with a copy of D1 nearby. */
export class FarPhone {
  readonly application: TestApplication;
  readonly udid: string;
  readonly d1: FarD1;
  /** What it sends next. */
  bookmark: string | null = null;

  constructor(application: TestApplication, udid: string, d1: FarD1) {
    this.application = application;
    this.udid = udid;
    this.d1 = d1;
  }

  /** Calls as a phone does, and keeps the bookmark of the response. */
  async call(path: string, body: unknown, headers: Record<string, string> = {}): Promise<Answer & { trips: Trips }> {
    const { application, udid, d1, bookmark } = this;
    let object = 0;
    const before = { copy: d1.copyTrips, primary: d1.primaryTrips };
    objectsSendTo(QUIETLY.WEBHOOKS);
    const ALLOCATOR = aroundAllocators((_, go) => {
      object++;
      return go();
    });
    const all = { applicationid: application.id, udid, ...(bookmark !== null && { bookmark }), ...headers };
    const bindings = { ...QUIETLY, ALLOCATOR, ...bindDatabase(d1.binding) };
    const answer = await callWith(bindings, "POST", path, { headers: all, body });
    const [copy, primary] = [d1.copyTrips - before.copy, d1.primaryTrips - before.primary];
    const requestId = answer.headers.get("x-request-id");
    const line = requestLine.parse(log.lines().find((written) => written.requestId === requestId));
    this.bookmark = answer.headers.get("bookmark") ?? this.bookmark;
    return { ...answer, trips: { copy, primary, object, far: line.roundTrips } };
  }

  logIn(body: object = ALICE) {
    return this.call(BADGE, body);
  }

  sign(body: object = A_SIGNATURE) {
    return this.call(SIGN, body);
  }
}

/** A phone with a badge of alice and the bookmark of its login. The copy is up to date and has this minute's mark of time. */
export async function phoneWithBadge(options: Parameters<typeof createApplication>[0] = {}) {
  const application = await createApplication(options);
  const d1 = await FarD1.create();
  const phone = new FarPhone(application, "phone", d1);
  const issued = await phone.logIn();
  expect(issued.status).toBe(201);
  const badgeId = String(issued.body.badgeId);
  await tick();
  await d1.catchUp();
  return { application, d1, phone, badgeId };
}

/** The status and the code, or the badge. */
export const outcome = ({ status, body }: Answer): string =>
  `${status} ${body.error ?? body.badgeId ?? (typeof body.signature === "string" ? "signature" : "")}`;

/**
 * Calls where the copy does not respond, and passes almost the second for which the service waits.
 *
 * @param then ends the wait; passes the rest of the second unless given
 */
export async function waitForCopy<T>(d1: FarD1, act: () => Promise<T>, then?: () => Promise<void>): Promise<T> {
  const timers = new StandingTimers();
  try {
    const before = d1.copyTrips;
    const answer = act();
    await timers.pass(999, () => d1.copyTrips > before);
    expect(await isSettled(answer)).toBe(false);
    await (then === undefined ? timers.pass(1) : then());
    return await answer;
  } finally {
    timers.stop();
  }
}
