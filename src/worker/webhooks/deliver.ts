import { MAX_QUEUE_DELAY_SECONDS } from "../../shared/limits/sweep-limits.ts";
import type { Context } from "../context.ts";
import { log } from "../log.ts";
import { type CompletedAttempt, recordAttempts } from "../storage/webhook-attempts.ts";
import { type Endpoint, type EventId, type LeasedEvent, leaseEvents } from "../storage/webhook-events.ts";
import { type Attempt, attemptDelivery } from "./attempt.ts";
import { type DelayedMessage, enqueueDelayed } from "./delivery-message.ts";
import { type AttemptOutcome, holdChange, maxAttemptsOf, type NextStep, nextStepAfter } from "./delivery-policy.ts";
import { signWebhook } from "./signature.ts";

/**
 * Leases due events and starts sending them, one task per application. So no application, and no later batch of the
 * queue, waits for another's receiver. The platform gives deferred work 30 s, and an attempt takes at most half of
 * that. After a crash the tick finds the events again, so delivery is at least once.
 *
 * @throws Unavailable if D1 fails; events that were leased nevertheless are due again when their leases end
 */
export async function deliverEvents(context: Context, ids: readonly EventId[]): Promise<void> {
  const { events, endpoints } = await leaseEvents(context.db, ids, { now: context.now(), random: Math.random() });
  for (const [applicationId, own] of Map.groupBy(events, (event) => event.applicationId)) {
    const endpoint = endpoints.get(applicationId);
    if (endpoint) context.defer(deliverToEndpoint(context, endpoint, own));
  }
}

/** An attempt, and the next step of its event. */
interface SentEvent {
  event: LeasedEvent;
  attempt: Attempt;
  step: NextStep;
}

/** Sends each event once and records the results in one write. */
async function deliverToEndpoint(context: Context, endpoint: Endpoint, events: readonly LeasedEvent[]): Promise<void> {
  try {
    const all = await Promise.all(events.map((event) => attemptEvent(context, endpoint, event)));
    const sent = all.filter((each) => each !== null);
    if (sent.length === 0) return;
    const now = context.now();
    const steps = sent.map(({ step }) => step);
    await recordAttempts(
      context.db,
      sent.map((each) => completedAttempt(each, now)),
      endpoint,
      holdChange(endpoint.heldAt, steps, now),
    );
    for (const each of sent) logAttempt(each);
    await enqueueDelayed(context.queue, sent.flatMap(retryMessage));
  } catch (error) {
    for (const { applicationId, eventId } of events) {
      log("error", { event: "delivery-not-recorded", application: applicationId, eventId, error });
    }
  }
}

/** @returns null if a secret cannot be opened; nothing was sent then, and the tick retries */
async function attemptEvent(
  { unsealedKeys, isLocal, now }: Context,
  endpoint: Endpoint,
  event: LeasedEvent,
): Promise<SentEvent | null> {
  const { applicationId, eventId } = event;
  const body = new TextEncoder().encode(event.payload);
  try {
    const secrets = endpoint.secrets.map(async (secret) => ({
      sha1: await unsealedKeys.webhookKey(applicationId, secret.id, secret, "SHA-1"),
      sha256: await unsealedKeys.webhookKey(applicationId, secret.id, secret, "SHA-256"),
    }));
    const timestampSeconds = Math.floor(now() / 1000);
    const headers = await signWebhook({ eventId, timestampSeconds, body, secrets: await Promise.all(secrets) });
    const attempt = await attemptDelivery({ url: endpoint.url, headers, body, isLocal });
    const { attempts: attemptsBefore } = event;
    const maxAttempts = maxAttemptsOf(event.event);
    const step = nextStepAfter({ attemptsBefore, outcome: attempt.outcome, random: Math.random(), maxAttempts });
    return { event, attempt, step };
  } catch (error) {
    log("error", { event: "webhook-secret-unusable", application: applicationId, eventId, error });
    return null;
  }
}

function completedAttempt({ event, attempt, step }: SentEvent, now: number): CompletedAttempt {
  const { outcome, response, milliseconds } = attempt;
  return {
    event,
    ...{ status: statusOf(outcome), outcome: outcomeLabel(outcome), response, milliseconds },
    state: stateAfter(event, step),
    dueAt: step.kind === "retry" ? now + step.afterMilliseconds : null,
    deliveredAt: step.kind === "delivered" ? now : null,
  };
}

function stateAfter({ event }: LeasedEvent, step: NextStep): CompletedAttempt["state"] {
  switch (step.kind) {
    case "delivered":
    case "exhausted":
      return step.kind;
    case "retry":
      return "pending";
    case "gone":
      // A test is not held for later, because the administrator has seen its result.
      return event === "webhook:test" ? "exhausted" : "held";
  }
}

function logAttempt({ event, attempt, step }: SentEvent): void {
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

/** The message for a retry. Empty if the retry is too far ahead for the queue; the tick then enqueues it when it is due. */
function retryMessage({ event: { applicationId, eventId }, step }: SentEvent): DelayedMessage[] {
  if (step.kind !== "retry") return [];
  // Rounded up, because a message before the due time has no effect.
  const delaySeconds = Math.ceil(step.afterMilliseconds / 1000);
  return delaySeconds <= MAX_QUEUE_DELAY_SECONDS ? [{ body: { applicationId, eventId }, delaySeconds }] : [];
}
