import * as z from "zod";
import type { ApplicationId } from "../identifiers.ts";
import { OBSERVED_HOURS } from "../limits.ts";
import { METADATA_FIELDS, type MetadataField } from "../metadata-fields.ts";
import { EVENT_STATES } from "../schema.ts";
import type { Database } from "./d1.ts";

/**
 * Counts of an application's rows. Each statement reads every row of a kind once, so callers cache the result
 * (src/worker/applications/statistics.ts). All of them use the primary key or an index that starts with the application.
 */

const count = z.number();

const HOUR_MILLISECONDS = 3600 * 1000;

/** `?1` first number, `?2` last number: the primary key, so the rows are read in table order. */
const IN_RANGE = "number BETWEEN ?1 AND ?2";

const COUNT_NUMBERS = `
  SELECT count(*) AS used, count(position) FILTER (WHERE retired_at IS NULL) AS issued,
    count(*) FILTER (WHERE retired_at IS NOT NULL) AS retired,
    count(*) FILTER (WHERE position IS NULL AND retired_at IS NULL) AS reserved
  FROM badge WHERE ${IN_RANGE}`;

const numberRows = z.tuple([z.object({ used: count, issued: count, retired: count, reserved: count })]);

/** States as callers see them at the time `?3` (src/shared/badge-life/states.ts). */
const COUNT_STATES = `
  SELECT iif(state IN ('active', 'suspended') AND expires_at <= ?3, 'expired', state) AS state, count(*) AS count
  FROM badge WHERE ${IN_RANGE} AND position IS NOT NULL GROUP BY 1`;

/** Days in UTC, since `?3`. */
const COUNT_DAYS = `
  SELECT date(issued_at / 1000, 'unixepoch') AS day, count(*) AS count
  FROM badge WHERE ${IN_RANGE} AND position IS NOT NULL AND issued_at >= ?3 GROUP BY 1`;

const countField = (field: MetadataField): string => `
  SELECT json_extract(metadata, '$.${field}') AS value, count(*) AS badges
  FROM badge WHERE ${IN_RANGE} AND position IS NOT NULL AND retired_at IS NULL
  GROUP BY 1 ORDER BY badges DESC, value LIMIT ?3`;

const valueRows = z.array(z.object({ value: z.string().nullable(), badges: count }));

/** `resting`: numbers still within the reuse delay: of invitations that ended after `?2`. */
const COUNT_INVITATIONS = `
  SELECT state, count(*) AS count, count(*) FILTER (WHERE state IN ('revoked', 'expired')
    AND ended_at > ?2) AS resting
  FROM invitation WHERE application_id = ?1 GROUP BY state`;

const invitationRows = z.array(z.object({ state: z.string(), count, resting: count }));

/** By the last outcome; null: not tried yet. */
const COUNT_DELIVERIES = `
  SELECT state, last_outcome AS outcome, count(*) AS count FROM webhook_event WHERE application_id = ?1
  GROUP BY state, last_outcome ORDER BY count DESC`;

/** Since the hour `?2`, by the hour of the login. */
const COUNT_LOGINS = `
  SELECT coalesce(sum(with_token), 0) AS withToken, coalesce(sum(without_token), 0) AS withoutToken,
    coalesce(sum(with_wrong_token), 0) AS withWrongToken
  FROM observed_logins WHERE application_id = ?1 AND hour > ?2`;

const loginRows = z.tuple([z.object({ withToken: count, withoutToken: count, withWrongToken: count })]);

const deliveryRows = z.array(z.object({ state: z.enum(EVENT_STATES), outcome: z.string().nullable(), count }));
const stateRows = z.array(z.object({ state: z.string(), count }));
const dayRows = z.array(z.object({ day: z.string(), count }));

export interface Counts {
  numbers: z.infer<typeof numberRows>[0];
  states: z.infer<typeof stateRows>;
  days: z.infer<typeof dayRows>;
  invitations: z.infer<typeof invitationRows>;
  deliveries: z.infer<typeof deliveryRows>;
  logins: z.infer<typeof loginRows>[0];
  fields: Record<MetadataField, z.infer<typeof valueRows>>;
}

export interface Counted {
  applicationId: ApplicationId;
  firstNumber: number;
  lastNumber: number;
  /** Milliseconds, like the next two. */
  now: number;
  /** Numbers of invitations that ended later are still within the reuse delay. */
  restedBefore: number;
  /** Start of the first day. */
  daysFrom: number;
  valuesShown: number;
}

/** Reads every badge, invitation and event of an application. One round trip. */
export async function readCounts(db: Database, counted: Counted): Promise<Counts> {
  const { applicationId, firstNumber, lastNumber, now, restedBefore, daysFrom, valuesShown } = counted;
  const [numbers, states, days, invitations, deliveries, logins, ...fields] = await db.run((_, d1) => {
    const ofRange = (sql: string, ...more: number[]) => d1.prepare(sql).bind(firstNumber, lastNumber, ...more);
    return d1.batch([
      ofRange(COUNT_NUMBERS),
      ofRange(COUNT_STATES, now),
      ofRange(COUNT_DAYS, daysFrom),
      d1.prepare(COUNT_INVITATIONS).bind(applicationId, restedBefore),
      d1.prepare(COUNT_DELIVERIES).bind(applicationId),
      d1.prepare(COUNT_LOGINS).bind(applicationId, Math.floor(now / HOUR_MILLISECONDS) - OBSERVED_HOURS),
      ...METADATA_FIELDS.map((field) => ofRange(countField(field), valuesShown)),
    ]);
  });
  const values = (field: MetadataField) => valueRows.parse(fields[METADATA_FIELDS.indexOf(field)]?.results);
  return {
    numbers: numberRows.parse(numbers?.results)[0],
    states: stateRows.parse(states?.results),
    days: dayRows.parse(days?.results),
    invitations: invitationRows.parse(invitations?.results),
    deliveries: deliveryRows.parse(deliveries?.results),
    logins: loginRows.parse(logins?.results)[0],
    fields: {
      deviceModel: values("deviceModel"),
      os: values("os"),
      osVersion: values("osVersion"),
      sdkVersion: values("sdkVersion"),
    },
  };
}
