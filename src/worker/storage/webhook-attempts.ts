import type { Database } from "./database.ts";
import type { ClaimedEvent, Endpoint } from "./webhook-events.ts";

/** What is stored about an attempt, for `webhook list` and `webhook test`. */
interface AttemptRecord {
  status: number | null;
  /** One word. */
  outcome: string;
  response: string | null;
  milliseconds: number;
}

/** Times are milliseconds. */
export type NextState =
  | { state: "delivered"; deliveredAt: number }
  | { state: "pending"; dueAt: number }
  | { state: "exhausted" }
  | { state: "held" };

export interface HealthChange {
  failingSince: number | null;
  failures: number;
  heldAt: number | null;
}

export interface MadeAttempt {
  claimed: ClaimedEvent;
  /** State of the endpoint when the event was claimed. */
  endpoint: Endpoint;
  attempt: AttemptRecord;
  next: NextState;
  /** Null when the endpoint's health does not change. */
  health: HealthChange | null;
}

/**
 * A success counts from any sender, so that no attempt follows it; a failure only from the holder of the lease. The response to a
 * payload whose person was erased meanwhile may repeat it.
 */
const RECORD_ATTEMPTS = `
  UPDATE webhook_event SET
    state = made ->> 'state',
    attempts = made ->> 'attempts',
    due_at = coalesce(made ->> 'dueAt', due_at),
    lease_until = 0,
    delivered_at = coalesce(made ->> 'deliveredAt', delivered_at),
    last_status = made ->> 'status',
    last_outcome = made ->> 'outcome',
    last_response = iif(payload = made ->> 'payload', made ->> 'response', NULL),
    last_milliseconds = made ->> 'milliseconds'
  FROM (SELECT value AS made FROM json_each(?1))
  WHERE application_id = made ->> 'applicationId' AND id = made ->> 'eventId'
    AND iif(made ->> 'state' = 'delivered', state <> 'delivered',
      state = 'pending' AND lease_until = made ->> 'leaseUntil')`;

/**
 * A success or a new hold is always written; another failure only if the count has not changed since it was read. Nothing is
 * written if the application's URL has changed.
 */
const RECORD_HEALTH = `
  UPDATE application SET
    webhook_failing_since = health ->> 'failingSince',
    webhook_failures = health ->> 'failures',
    webhook_held_at = health ->> 'heldAt'
  FROM (SELECT value AS health FROM json_each(?1))
  WHERE id = health ->> 'applicationId' AND webhook_url = health ->> 'url'
    AND (health ->> 'failures' = 0
      OR webhook_held_at IS NULL AND (health ->> 'isNewlyHeld' OR webhook_failures = health ->> 'failuresBefore'))`;

/** Records attempts of one claim and what they say of their endpoints, in one transaction. */
export async function recordAttempts(db: Database, made: readonly MadeAttempt[]): Promise<void> {
  const events = made.map(({ claimed: { applicationId, eventId, payload, leaseUntil, attempts }, attempt, next }) => ({
    applicationId,
    eventId,
    payload,
    leaseUntil,
    attempts: attempts + 1,
    ...attempt,
    ...next,
  }));
  const health = [...newestHealth(made)].map(([{ applicationId, url, failures: failuresBefore, heldAt }, change]) => ({
    applicationId,
    url,
    failuresBefore,
    isNewlyHeld: heldAt === null && change.heldAt !== null,
    ...change,
  }));
  await db.run((d1) =>
    d1.batch([
      d1.prepare(RECORD_ATTEMPTS).bind(JSON.stringify(events)),
      ...(health.length === 0 ? [] : [d1.prepare(RECORD_HEALTH).bind(JSON.stringify(health))]),
    ]),
  );
}

/** Attempts recorded together count as one per endpoint: a success if there is one, else a hold, else a failure. */
function newestHealth(made: readonly MadeAttempt[]): Map<Endpoint, HealthChange> {
  const newest = new Map<Endpoint, HealthChange>();
  for (const { endpoint, health } of made) {
    const known = newest.get(endpoint);
    if (health && (!known || weightOf(health) > weightOf(known))) newest.set(endpoint, health);
  }
  return newest;
}

const weightOf = ({ failures, heldAt }: HealthChange): number => (failures === 0 ? 2 : heldAt !== null ? 1 : 0);
