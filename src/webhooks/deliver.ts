import type { Context } from "../context.ts";
import { MAX_QUEUE_BATCH_MESSAGES, MAX_QUEUE_DELAY_SECONDS } from "../limits.ts";
import { log } from "../log.ts";
import { GroupCommit } from "../numbers/group-commit.ts";
import { type HealthChange, type MadeAttempt, type NextState, recordAttempts } from "../storage/webhook-attempts.ts";
import { type ClaimedEvent, claimEvents, type Endpoint, type EventId } from "../storage/webhook-events.ts";
import { type Attempt, attemptDelivery } from "./attempt.ts";
import { type AttemptOutcome, afterAttempt, decide, maxAttemptsOf, type NextStep } from "./policy.ts";
import { signWebhook } from "./signature.ts";
import { type DelayedWakeUp, sendWakeUps } from "./wake-up.ts";

/**
 * Claims the events that are due and starts sending them. The sending is deferred: the queue's next batch does not wait
 * for a slow receiver, and the platform gives deferred work 30 s, of which an attempt takes half at most. Should this
 * process die before it has recorded an attempt, the claim's lease runs out and the sweep sends the event again: at
 * least once, never zero times.
 *
 * @throws Unavailable when D1 cannot be asked; nothing was claimed then
 */
export async function deliverEvents(context: Context, ids: readonly EventId[]): Promise<void> {
  const { events, endpoints } = await claimEvents(context.db, ids, context.now());
  const finisher: Finisher = new GroupCommit(MAX_QUEUE_BATCH_MESSAGES, (ended) => finish(context, ended));
  for (const event of events) {
    const endpoint = endpoints.get(event.applicationId);
    if (endpoint) context.defer(deliver(context, finisher, event, endpoint));
  }
}

interface EndedAttempt {
  event: ClaimedEvent;
  endpoint: Endpoint;
  attempt: Attempt;
  step: NextStep;
}

/** Finishes together what ends together: when a receiver that hangs is given up, all of its attempts end at once. */
type Finisher = GroupCommit<EndedAttempt, "finished">;

async function deliver(context: Context, finisher: Finisher, event: ClaimedEvent, endpoint: Endpoint): Promise<void> {
  try {
    const attempt = await send(context, event, endpoint);
    const { attempts: attemptsBefore } = event;
    const maxAttempts = maxAttemptsOf(event.event);
    const step = decide({ attemptsBefore, outcome: attempt.outcome, random: Math.random(), maxAttempts });
    await finisher.add({ event, endpoint, attempt, step });
  } catch (error) {
    const { applicationId, eventId } = event;
    log("error", { event: "delivery-not-recorded", application: applicationId, eventId, error });
  }
}

async function finish(context: Context, ended: readonly EndedAttempt[]): Promise<"finished"[]> {
  const now = context.now();
  await recordAttempts(
    context.db,
    ended.map((one) => toRecord(one, now)),
  );
  for (const one of ended) logAttempt(context, one);
  await sendWakeUps(context.queue, ended.flatMap(toWakeUp));
  return ended.map(() => "finished");
}

async function send(context: Context, event: ClaimedEvent, endpoint: Endpoint): Promise<Attempt> {
  const { custody, isLocal } = context;
  const body = new TextEncoder().encode(event.payload);
  const secrets = endpoint.secrets.map(async (secret) => ({
    sha1: await custody.webhookKey(event.applicationId, secret.id, secret, "SHA-1"),
    sha256: await custody.webhookKey(event.applicationId, secret.id, secret, "SHA-256"),
  }));
  const timestampSeconds = Math.floor(context.now() / 1000);
  const headers = await signWebhook({
    eventId: event.eventId,
    timestampSeconds,
    body,
    secrets: await Promise.all(secrets),
  });
  return attemptDelivery({ url: endpoint.url, headers, body, isLocal });
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
