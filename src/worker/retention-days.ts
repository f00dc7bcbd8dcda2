import { EVENT_RETENTION_DAYS, INVITATION_RETENTION_DAYS } from "../shared/limits.ts";

/** How long what is over is kept, in days (contract section 18); null: the variable is wrong, so nothing is deleted. */
export interface Retention {
  /** Of delivered events; of exhausted and held ones three times that. */
  eventDays: number | null;
  invitationDays: number | null;
}

const DAYS = /^\d{1,5}(\.\d{1,6})?$/;

/** A deployment whose wrangler.toml is older has no variables. */
export function readRetention(variables: {
  EVENT_RETENTION_DAYS?: string;
  INVITATION_RETENTION_DAYS?: string;
}): Retention {
  return {
    eventDays: readDays(variables.EVENT_RETENTION_DAYS, EVENT_RETENTION_DAYS),
    invitationDays: readDays(variables.INVITATION_RETENTION_DAYS, INVITATION_RETENTION_DAYS),
  };
}

function readDays(text: string | undefined, standard: number): number | null {
  if (text === undefined) return standard;
  return DAYS.test(text) ? Number(text) : null;
}
