import { describe, expect, it } from "vitest";
import type { AuditContext } from "../../src/shared/actor.ts";
import { deviceId } from "../../src/shared/identifiers.ts";
import { ApiError } from "../../src/worker/api-error.ts";
import type { Application } from "../../src/worker/applications/application-cache.ts";
import { hashUdid } from "../../src/worker/applications/derived-ids.ts";
import { issueBadge } from "../../src/worker/badges/issue.ts";
import type { Context } from "../../src/worker/context.ts";
import { createInvitations } from "../../src/worker/invitations/create.ts";
import { revokeInvitation } from "../../src/worker/invitations/revoke.ts";
import { ring } from "../support/allocator.ts";
import { createApplication, type TestApplication } from "../support/application.ts";
import { testContext } from "../support/context.ts";
import { byEffort } from "../support/effort.ts";
import { SEED } from "../support/random.ts";
import { ahead, moveClock, SECOND, useStandingClock } from "./support/clock.ts";
import { interleave, interruptingSchedule, type Schedule, seededSchedule } from "./support/interleaving.ts";
import { expectConsistent, isLive } from "./support/invariants.ts";
import { useQuietLog } from "./support/log.ts";
import { RECORDED_EVENTS } from "./support/storage.ts";

useQuietLog();
useStandingClock();

const BY_SERVER: AuditContext = { actor: { kind: "server" } };

/** What can happen to an invitation at one moment, and a plain request by one who also claims. */
const ACTS = ["claim", "claim by another", "revoke", "expire", "plain request"] as const;
type Act = (typeof ACTS)[number];

/** What was answered: a number (that of the invitation or another, new or not), a refusal, or that it was done. */
type Outcome = `${"created" | "existing"} ${"reserved" | "other"}` | `refused ${string}` | "revoked" | "swept";

type State = "pending" | "claimed" | "revoked" | "expired";

/** The invitation, and whether a user device has the reserved number or another. */
interface World {
  state: State;
  badges: Partial<Record<"alice" | "bob", "reserved" | "other">>;
}

interface Step {
  world: World;
  outcome: Outcome;
}

/** What the contract says of acts that come one after the other; of several steps any may be taken. */
function act(world: World, what: Act): Step[] {
  const { state, badges } = world;
  const isEnded = state === "revoked" || state === "expired";
  switch (what) {
    case "claim":
    case "claim by another": {
      const who = what === "claim" ? "alice" : "bob";
      if (state === "pending") {
        return [{ world: { state: "claimed", badges: { ...badges, [who]: "reserved" } }, outcome: "created reserved" }];
      }
      if (state === "claimed" && badges[who] === "reserved") return [{ world, outcome: "existing reserved" }];
      return [{ world, outcome: `refused ${state.toUpperCase()}_INVITATION` }];
    }
    case "plain request": {
      if (badges.alice !== undefined) return [{ world, outcome: `existing ${badges.alice}` }];
      const other: Step = { world: { state, badges: { ...badges, alice: "other" } }, outcome: "created other" };
      const freed: Step = { world: { state, badges: { ...badges, alice: "reserved" } }, outcome: "created reserved" };
      return isEnded ? [other, freed] : [other];
    }
    case "revoke":
      if (state === "pending") return [{ world: { state: "revoked", badges }, outcome: "revoked" }];
      return [{ world, outcome: state === "revoked" ? "revoked" : `refused ${state.toUpperCase()}_INVITATION` }];
    case "expire":
      return [{ world: { state: state === "pending" ? "expired" : state, badges }, outcome: "swept" }];
  }
}

/** Every end that the acts can come to in some order, as text: outcomes in the order of the acts, then the world. */
function possibleEnds(acts: readonly Act[]): string[] {
  const ends = new Set<string>();
  const seen = new Set<string>();
  const go = (world: World, outcomes: readonly (Outcome | null)[]): void => {
    const place = JSON.stringify([world, outcomes]);
    if (seen.has(place)) return;
    seen.add(place);
    if (!outcomes.includes(null)) ends.add(describeEnd(outcomes, world));
    for (const [index, what] of acts.entries()) {
      if (outcomes[index] !== null) continue;
      for (const next of act(world, what)) go(next.world, outcomes.with(index, next.outcome));
    }
  };
  go(
    { state: "pending", badges: {} },
    acts.map(() => null),
  );
  return [...ends];
}

function describeEnd(outcomes: readonly (Outcome | null)[], { state, badges }: World): string {
  return [...outcomes, state, `alice: ${badges.alice ?? "none"}`, `bob: ${badges.bob ?? "none"}`].join(", ");
}

interface Stage {
  application: Application;
  token: string;
  number: number;
  devices: { alice: string; bob: string };
  /** Milliseconds. */
  endsAt: number;
}

async function perform(context: Context, what: Act, stage: Stage): Promise<Outcome> {
  const { application, token, number, devices } = stage;
  const present = async (who: "alice" | "bob", invitationToken: string | null): Promise<Outcome> => {
    const device = deviceId.parse(devices[who]);
    const request = { device, userId: who, metadata: null, isVerified: true, invitationToken };
    const badge = await issueBadge(
      context,
      application,
      { ...request, keyThumbprint: null, bookmark: null },
      BY_SERVER,
    );
    return `${badge.kind} ${badge.number === number ? "reserved" : "other"}`;
  };
  try {
    switch (what) {
      case "claim":
        return await present("alice", token);
      case "claim by another":
        return await present("bob", token);
      case "plain request":
        return await present("alice", null);
      case "revoke":
        await revokeInvitation(context, application, token, { kind: "server" }, BY_SERVER);
        return "revoked";
      case "expire":
        if (stage.endsAt > Date.now()) moveClock(stage.endsAt - Date.now());
        await ring(application);
        return "swept";
    }
  } catch (error) {
    if (error instanceof ApiError) return `refused ${error.code}`;
    throw error;
  }
}

interface Ground {
  owner: TestApplication;
  application: Application;
}

async function createGround(): Promise<Ground> {
  const owner = await createApplication(RECORDED_EVENTS);
  const { context } = testContext();
  const application = await context.applicationCache.reload(context.db, owner.id, Date.now());
  if (!application) throw new Error("the application is there");
  return { owner, application };
}

/** One race, for an invitation and by user devices of its own. @returns how it ended */
async function race({ owner, application }: Ground, acts: readonly Act[], schedule: Schedule): Promise<string> {
  const { context } = testContext();
  const device = () => hashUdid(context.unsealedKeys, application, crypto.randomUUID());
  const devices = { alice: await device(), bob: await device() };
  // Sooner than the deadline of a call: time moves on while calls are under way.
  const request = { expiresAt: ahead(SECOND), badgeExpiresAt: null, badgeStartsAt: null, name: null, userId: null };
  const inviter = { kind: "device", device: devices.alice } as const;
  const caller = { device: devices.alice, inviter, idempotencyKey: null };
  const endsAt = Date.now() + SECOND;
  const [created] = await createInvitations(context, application, [request], caller, BY_SERVER);
  if (!created || "code" in created) throw new Error("the invitation is granted");
  const { id: token, number } = created;
  const stage: Stage = { application, token, number, devices, endsAt };
  const actors = acts.map((what) => (gated: Context) => perform(gated, what, stage));
  const outcomes = await interleave(schedule, Date.now, actors);

  const { badges, invitations } = await expectConsistent(owner);
  const state = invitations.find(
    (invitation) => invitation.number === number && invitation.createdAt === endsAt - SECOND,
  )?.state;
  const has = (who: "alice" | "bob"): World["badges"] => {
    const row = badges.find((badge) => badge.device === devices[who] && isLive(badge));
    return row ? { [who]: row.number === number ? "reserved" : "other" } : {};
  };
  if (state === undefined) throw new Error("the invitation has no row");
  // What is left pending ends now, so that the next race is alone.
  moveClock(SECOND);
  await ring(application);
  return describeEnd(outcomes, { state, badges: { ...has("alice"), ...has("bob") } });
}

describe("a request that is overtaken by another (contract sections 2 and 5)", () => {
  const pairs = ACTS.flatMap((one) => ACTS.map((other) => [one, other] as const));

  it.each(pairs)("%s, interrupted anywhere by %s: both come out as in one order", async (...acts) => {
    const ground = await createGround();
    const possible = possibleEnds(acts);
    for (let steps = 0; ; steps++) {
      const { schedule, isInterrupted } = interruptingSchedule(steps);
      const end = await race(ground, acts, schedule);
      expect(possible, `after ${steps} steps it came to: ${end}`).toContain(end);
      if (!isInterrupted()) break;
    }
  });
});

describe("requests at one moment (contract sections 2 and 5)", () => {
  async function expectSomeOrder(acts: readonly Act[], rounds: number): Promise<void> {
    const ground = await createGround();
    const possible = possibleEnds(acts);
    for (let seed = SEED; seed < SEED + rounds; seed++) {
      const end = await race(ground, acts, seededSchedule(seed));
      expect(possible, `seed ${seed} came to: ${end}`).toContain(end);
    }
  }

  const pairs = ACTS.flatMap((one, place) => ACTS.slice(place).map((other) => [one, other] as const));

  it.each(pairs)("%s and %s, step by step in random order: both come out as in one order", async (...acts) => {
    await expectSomeOrder(acts, byEffort(1, 40));
  });

  it("claims, claims by another, revocations, expiry and plain requests come out as in some order", async () => {
    await expectSomeOrder([...ACTS, "claim", "revoke"], byEffort(8, 300));
  });
});
