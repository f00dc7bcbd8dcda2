import { CONNECTIONS_OF_A_SENDER, MAX_QUEUE_DELAY_SECONDS, MAX_SENDERS } from "../../shared/limits.ts";
import type { Context } from "../context.ts";
import { log } from "../log.ts";
import { type HealthChange, type MadeAttempt, type NextState, recordAttempts } from "../storage/webhook-attempts.ts";
import { type ClaimedEvent, claimEvents, type Endpoint, type EventId } from "../storage/webhook-events.ts";
import type { Attempt } from "./attempt.ts";
import { Gathering } from "./gathering.ts";
import { type AttemptOutcome, afterAttempt, decide, maxAttemptsOf, type NextStep } from "./policy.ts";
import type { Delivery } from "./sender.ts";
import { type DelayedWakeUp, sendDelayed } from "./wake-up.ts";

/**
 * Claims the events that are due and starts sending them, each beside a few others of its application in an invocation
 * of its own. Nothing waits for a slow receiver: not the other events, and not the queue's next batch, because the
 * sending is deferred; the platform gives deferred work 30 s, of which an attempt takes half at most. Should this process
 * die before it has recorded an attempt, the claim's lease runs out and the sweep sends the event again: at least once,
 * never zero times.
 *
 * @throws Unavailable when D1 cannot be asked; whatever was claimed all the same is due again when its lease is over
 */
export async function deliverEvents(context: Context, ids: readonly EventId[]): Promise<void> {
  const { events, endpoints } = await claimEvents(context.db, ids, { now: context.now(), random: Math.random() });
  const deliveries = events.flatMap((event): Delivery[] => {
    const endpoint = endpoints.get(event.applicationId);
    return endpoint ? [{ event, endpoint }] : [];
  });
  const parts = dealOut(deliveries);
  const attempts: Attempts = new Gathering(parts.length, (ended) => finish(context, ended.flat()));
  for (const part of parts) context.defer(deliverPart(context, attempts, part));
}

interface EndedAttempt extends Delivery {
  attempt: Attempt;
  step: NextStep;
}

/** When a receiver that hangs is given up, all of its attempts end at about one moment: D1 hears of them at once. */
type Attempts = Gathering<EndedAttempt[]>;

/** Parts of one sender each: of one application where so many senders may be called, so no record waits for another's. */
function dealOut(deliveries: readonly Delivery[]): Delivery[][] {
  const applications = [...Map.groupBy(deliveries, ({ event }) => event.applicationId).values()];
  const apart = applications.flatMap(inParts);
  return apart.length <= MAX_SENDERS ? apart : inParts(applications.flat());
}

function inParts(deliveries: readonly Delivery[]): Delivery[][] {
  const count = Math.ceil(deliveries.length / CONNECTIONS_OF_A_SENDER);
  return Array.from({ length: count }, (_, part) =>
    deliveries.slice(part * CONNECTIONS_OF_A_SENDER, (part + 1) * CONNECTIONS_OF_A_SENDER),
  );
}

async function deliverPart(context: Context, attempts: Attempts, part: readonly Delivery[]): Promise<void> {
  try {
    const made = await context.sender.send(part);
    await attempts.add(part.flatMap((delivery, place) => ended(delivery, made[place])));
  } catch (error) {
    for (const { event } of part) {
      const { applicationId, eventId } = event;
      log("error", { event: "delivery-not-recorded", application: applicationId, eventId, error });
    }
  }
}

/** Nothing where no attempt was made: the lease runs out, and the sweep wakes the event again. */
function ended(delivery: Delivery, attempt: Attempt | null | undefined): EndedAttempt[] {
  if (!attempt) return [];
  const { attempts: attemptsBefore, event } = delivery.event;
  const maxAttempts = maxAttemptsOf(event);
  const step = decide({ attemptsBefore, outcome: attempt.outcome, random: Math.random(), maxAttempts });
  return [{ ...delivery, attempt, step }];
}

async function finish(context: Context, ended: readonly EndedAttempt[]): Promise<void> {
  if (ended.length === 0) return;
  const now = context.now();
  await recordAttempts(
    context.db,
    ended.map((one) => toRecord(one, now)),
  );
  for (const one of ended) logAttempt(context, one);
  await sendDelayed(context.queue, ended.flatMap(toWakeUp));
}

function toRecord({ event, endpoint, attempt, step }: EndedAttempt, now: number): MadeAttempt {
  const { outcome, response, milliseconds } = attempt;
  return {
    claimed: event,
    endpoint,
    attempt: { status: statusOf(outcome), outcome: wordFor(outcome), response, milliseconds },
    next: nextState(event, step, now),
    health: healthChange(endpoint, step, now),
  };
}

function logAttempt({ db }: Context, { event, attempt, step }: EndedAttempt): void {
  log("info", {
    event: "delivery",
    application: event.applicationId,
    eventId: event.eventId,
    attempt: event.attempts + 1,
    status: statusOf(attempt.outcome),
    outcome: wordFor(attempt.outcome),
    next: step.kind,
    milliseconds: attempt.milliseconds,
    d1RoundTrips: db.roundTrips,
  });
}

function statusOf(outcome: AttemptOutcome): number | null {
  return outcome.kind === "answered" ? outcome.status : null;
}

function wordFor(outcome: AttemptOutcome): string {
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
      // Whoever waited for a test event has its answer: it is not kept for later.
      return { state: event === "webhook:test" ? "exhausted" : "held" };
  }
}

/** Null when there is nothing to note: a healthy endpoint that did well costs no write. */
function healthChange(before: Endpoint, step: NextStep, now: number): HealthChange | null {
  const isHealthy = before.failingSince === null && before.heldAt === null;
  if (step.kind === "delivered" && isHealthy) return null;
  return afterAttempt(before, step, now);
}

/** A short wait is the queue's; a long one is left to the sweep, which asks D1. */
function toWakeUp({ event: { applicationId, eventId }, step }: EndedAttempt): DelayedWakeUp[] {
  if (step.kind !== "retry") return [];
  const delaySeconds = Math.ceil(step.afterMilliseconds / 1000);
  return delaySeconds <= MAX_QUEUE_DELAY_SECONDS ? [{ body: { applicationId, eventId }, delaySeconds }] : [];
}
