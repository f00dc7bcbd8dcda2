import type { ApplicationId } from "../../shared/identifiers.ts";
import { MAX_CONNECTIONS_PER_SENDER, MAX_QUEUE_DELAY_SECONDS, MAX_SENDERS } from "../../shared/limits.ts";
import type { Context } from "../context.ts";
import { log } from "../log.ts";
import { type HealthChange, type MadeAttempt, type NextState, recordAttempts } from "../storage/webhook-attempts.ts";
import { type ClaimedEvent, claimEvents, type Endpoint, type EventId } from "../storage/webhook-events.ts";
import type { Attempt } from "./attempt.ts";
import { type AttemptOutcome, afterAttempt, decide, maxAttemptsOf, type NextStep } from "./policy.ts";
import type { Delivery } from "./sender.ts";
import { type DelayedWakeUp, sendDelayed } from "./wake-up.ts";
import { WriteCoalescer } from "./write-coalescer.ts";

/** Events of one home that may be due. */
interface HomeEvents {
  context: Context;
  ids: readonly EventId[];
}

/**
 * Claims the events that are due, with one claim for each home, and starts sending them, in small batches, each in an invocation
 * of its own. Neither other events nor the queue's next batch wait for a slow receiver, because sending is deferred: the platform
 * gives deferred work 30 s, and an attempt takes at most half of that. After a crash before an attempt is recorded, the claim's
 * lease expires and the sweep sends the event again, so delivery is at least once.
 *
 * @returns for each home its claim; rejects with Unavailable when its D1 fails, and events that were claimed nevertheless are due
 *   again when their leases expire
 */
export function deliverEvents(homes: readonly HomeEvents[]): Promise<unknown>[] {
  const batches = splitIntoBatches(homes);
  const claims = new Map(homes.map((home) => [home.context, claim(home, batches)]));
  for (const batch of batches) batch[0].context.defer(deliverBatch(claims, batch));
  return [...claims.values()];
}

/** Room for one event of an application in a batch. */
interface Seat {
  context: Context;
  applicationId: ApplicationId;
}

type Batch = readonly [Seat, ...Seat[]];

/**
 * One batch per sender. A batch has events of one application only, so that no application's record waits for another's, unless
 * that would take more senders than an invocation may call. It is split before the claims, so that no home waits for another's
 * claim, unless they share a sender.
 */
function splitIntoBatches(homes: readonly HomeEvents[]): Batch[] {
  const applications = homes.flatMap(({ context, ids }) =>
    [...Map.groupBy(ids, (id) => id.applicationId)].map(([applicationId, ofOne]) =>
      [...new Set(ofOne.map(({ eventId }) => eventId))].map((): Seat => ({ context, applicationId })),
    ),
  );
  const separate = applications.flatMap(chunk);
  return separate.length <= MAX_SENDERS ? separate : chunk(applications.flat());
}

function chunk(seats: readonly Seat[]): Batch[] {
  const [first, ...others] = seats.slice(0, MAX_CONNECTIONS_PER_SENDER);
  return first ? [[first, ...others], ...chunk(seats.slice(MAX_CONNECTIONS_PER_SENDER))] : [];
}

/** Result of one home's claim. */
interface Claim {
  /** Oldest first in an application's seats, of which the last ones may stay empty. */
  deliveries: ReadonlyMap<Seat, Delivery>;
  /** Attempts at a receiver that hangs all time out at once, so they are recorded with one write. */
  attempts: WriteCoalescer<EndedAttempt[]>;
}

async function claim({ context, ids }: HomeEvents, batches: readonly Batch[]): Promise<Claim> {
  const { events, endpoints } = await claimEvents(context.db, ids, { now: context.now(), random: Math.random() });
  const ofApplications = Map.groupBy(events, ({ applicationId }) => applicationId);
  const deliveries = new Map<Seat, Delivery>();
  for (const seat of batches.flat()) {
    const event = ofApplications.get(seat.applicationId)?.shift();
    const endpoint = endpoints.get(seat.applicationId);
    if (event && endpoint) deliveries.set(seat, { event, endpoint });
  }
  const senders = batches.filter((batch) => batch.some((seat) => deliveries.has(seat))).length;
  return { deliveries, attempts: new WriteCoalescer(senders, (ended) => recordEnded(context, ended.flat())) };
}

interface EndedAttempt extends Delivery {
  attempt: Attempt;
  step: NextStep;
}

async function deliverBatch(claims: ReadonlyMap<Context, Promise<Claim>>, batch: Batch): Promise<void> {
  const parts = await Promise.all(
    [...Map.groupBy(batch, ({ context }) => context)].map(async ([context, seats]) => {
      // The queue redelivers the events of a failed claim.
      const claimed = await claims.get(context)?.catch(() => undefined);
      return { claimed, deliveries: seats.flatMap((seat) => claimed?.deliveries.get(seat) ?? []) };
    }),
  );
  const deliveries = parts.flatMap((part) => part.deliveries);
  if (deliveries.length === 0) return;
  const sent = batch[0].context.sender.send(deliveries);
  const attempts = sent.then((made) => new Map(deliveries.map((delivery, index) => [delivery, made[index]])));
  await Promise.all(parts.map(({ claimed, deliveries: own }) => claimed && recordPart(claimed, own, attempts)));
}

/** Records what became of one home's events of a batch. */
async function recordPart(
  claimed: Claim,
  deliveries: readonly Delivery[],
  attempts: Promise<ReadonlyMap<Delivery, Attempt | null | undefined>>,
): Promise<void> {
  if (deliveries.length === 0) return;
  try {
    const made = await attempts;
    await claimed.attempts.add(deliveries.flatMap((delivery) => toEnded(delivery, made.get(delivery))));
  } catch (error) {
    for (const { event } of deliveries) {
      const { applicationId, eventId } = event;
      log("error", { event: "delivery-not-recorded", application: applicationId, eventId, error });
    }
  }
}

/** Empty if no attempt was made: the lease expires, and the sweep wakes the event again. */
function toEnded(delivery: Delivery, attempt: Attempt | null | undefined): EndedAttempt[] {
  if (!attempt) return [];
  const { attempts: attemptsBefore, event } = delivery.event;
  const maxAttempts = maxAttemptsOf(event);
  const step = decide({ attemptsBefore, outcome: attempt.outcome, random: Math.random(), maxAttempts });
  return [{ ...delivery, attempt, step }];
}

async function recordEnded(context: Context, ended: readonly EndedAttempt[]): Promise<void> {
  if (ended.length === 0) return;
  const now = context.now();
  await recordAttempts(
    context.db,
    ended.map((one) => toRecord(one, now)),
  );
  for (const one of ended) logAttempt(one);
  await sendDelayed(context.queue, ended.flatMap(toWakeUp));
}

function toRecord({ event, endpoint, attempt, step }: EndedAttempt, now: number): MadeAttempt {
  const { outcome, response, milliseconds } = attempt;
  return {
    claimed: event,
    endpoint,
    attempt: { status: statusOf(outcome), outcome: outcomeLabel(outcome), response, milliseconds },
    next: nextState(event, step, now),
    health: healthChange(endpoint, step, now),
  };
}

function logAttempt({ event, attempt, step }: EndedAttempt): void {
  log("info", {
    event: "delivery",
    application: event.applicationId,
    eventId: event.eventId,
    attempt: event.attempts + 1,
    status: statusOf(attempt.outcome),
    outcome: outcomeLabel(attempt.outcome),
    next: step.kind,
    milliseconds: attempt.milliseconds,
  });
}

function statusOf(outcome: AttemptOutcome): number | null {
  return outcome.kind === "answered" ? outcome.status : null;
}

function outcomeLabel(outcome: AttemptOutcome): string {
  return outcome.kind === "refused" ? `refused:${outcome.reason}` : outcome.kind;
}

function nextState({ event }: ClaimedEvent, step: NextStep, now: number): NextState {
  switch (step.kind) {
    case "delivered":
      return { state: "delivered", deliveredAt: now };
    case "retry":
      return { state: "pending", dueAt: now + step.afterMilliseconds };
    case "exhausted":
      return { state: "exhausted" };
    case "gone":
      // The administrator has seen the result of a test, so the test is not held for later.
      return { state: event === "webhook:test" ? "exhausted" : "held" };
  }
}

/** Null when nothing changes: a success of a healthy endpoint needs no write. */
function healthChange(before: Endpoint, step: NextStep, now: number): HealthChange | null {
  const isHealthy = before.failingSince === null && before.heldAt === null;
  if (step.kind === "delivered" && isHealthy) return null;
  return afterAttempt(before, step, now);
}

/** The queue delays short retries; the sweep finds the later ones in D1. */
function toWakeUp({ event: { applicationId, eventId }, step }: EndedAttempt): DelayedWakeUp[] {
  if (step.kind !== "retry") return [];
  const delaySeconds = Math.ceil(step.afterMilliseconds / 1000);
  return delaySeconds <= MAX_QUEUE_DELAY_SECONDS ? [{ body: { applicationId, eventId }, delaySeconds }] : [];
}
