import {
  EVENT_RETENTION_DAYS,
  HISTORY_RETENTION_DAYS,
  INVITATION_RETENTION_DAYS,
} from "../../shared/limits/sweep-limits.ts";

/** Retention of old rows in days (contract section 18). Null if the variable is malformed; nothing is deleted then. */
export interface Retention {
  /** For delivered events. Exhausted and held events are kept three times as long. */
  eventDays: number | null;
  invitationDays: number | null;
  historyDays: number | null;
}

const DAYS = /^\d{1,5}(\.\d{1,6})?$/;

/** A deployment with an older wrangler.toml does not have the variables. */
export function readRetention(variables: {
  EVENT_RETENTION_DAYS?: string;
  INVITATION_RETENTION_DAYS?: string;
  HISTORY_RETENTION_DAYS?: string;
}): Retention {
  return {
    eventDays: readDays(variables.EVENT_RETENTION_DAYS, EVENT_RETENTION_DAYS),
    invitationDays: readDays(variables.INVITATION_RETENTION_DAYS, INVITATION_RETENTION_DAYS),
    historyDays: readDays(variables.HISTORY_RETENTION_DAYS, HISTORY_RETENTION_DAYS),
  };
}

function readDays(text: string | undefined, standard: number): number | null {
  if (text === undefined) return standard;
  return DAYS.test(text) ? Number(text) : null;
}
