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

/**
 * Claims the events that are due and starts sending them, in small batches of one application, each batch in an
 * invocation of its own. Neither other events nor the queue's next batch wait for a slow receiver, because sending is
 * deferred: the platform gives deferred work 30 s, and an attempt takes at most half of that. After a crash before an
 * attempt is recorded, the claim's lease expires and the sweep sends the event again, so delivery is at least once.
 *
 * @throws Unavailable when D1 fails; events that were claimed nevertheless are due again when their leases expire
 */
export async function deliverEvents(context: Context, ids: readonly EventId[]): Promise<void> {
  const { events, endpoints } = await claimEvents(context.db, ids, { now: context.now(), random: Math.random() });
  const deliveries = events.flatMap((event): Delivery[] => {
    const endpoint = endpoints.get(event.applicationId);
    return endpoint ? [{ event, endpoint }] : [];
  });
  const batches = splitIntoBatches(deliveries);
  const attempts: Attempts = new WriteCoalescer(batches.length, (ended) => recordEnded(context, ended.flat()));
  for (const batch of batches) context.defer(deliverBatch(context, attempts, batch));
}

interface EndedAttempt extends Delivery {
  attempt: Attempt;
  step: NextStep;
}

/** Attempts at a receiver that hangs all time out at once, so they are recorded with one write. */
type Attempts = WriteCoalescer<EndedAttempt[]>;

/**
 * One batch per sender. A batch has deliveries of one application only, so that no application's record waits for
 * another's, unless that would take more senders than an invocation may call.
 */
function splitIntoBatches(deliveries: readonly Delivery[]): Delivery[][] {
  const applications = [...Map.groupBy(deliveries, ({ event }) => event.applicationId).values()];
  const separate = applications.flatMap(chunk);
  return separate.length <= MAX_SENDERS ? separate : chunk(applications.flat());
}

function chunk(deliveries: readonly Delivery[]): Delivery[][] {
  const count = Math.ceil(deliveries.length / MAX_CONNECTIONS_PER_SENDER);
  return Array.from({ length: count }, (_, index) =>
    deliveries.slice(index * MAX_CONNECTIONS_PER_SENDER, (index + 1) * MAX_CONNECTIONS_PER_SENDER),
  );
}

async function deliverBatch(context: Context, attempts: Attempts, batch: readonly Delivery[]): Promise<void> {
  try {
    const made = await context.sender.send(batch);
    await attempts.add(batch.flatMap((delivery, index) => toEnded(delivery, made[index])));
  } catch (error) {
    for (const { event } of batch) {
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
  for (const one of ended) logAttempt(context, one);
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

function logAttempt({ db }: Context, { event, attempt, step }: EndedAttempt): void {
  log("info", {
    event: "delivery",
    application: event.applicationId,
    eventId: event.eventId,
    attempt: event.attempts + 1,
    status: statusOf(attempt.outcome),
    outcome: outcomeLabel(attempt.outcome),
    next: step.kind,
    milliseconds: attempt.milliseconds,
    d1RoundTrips: db.roundTrips,
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
