import * as z from "zod";
import { badgeEnd } from "../command-line/arguments.ts";
import { ADMIN } from "../command-line/shell.ts";
import type { Database } from "../platform/database.ts";
import type { ShownApplication } from "./record.ts";

/** Options that bind badges to keys of devices (contract section 15). */

export const REQUIRE_PROOF_HELP = "refuse device calls without a proof (DPoP), and badges that are not bound to a key";

export const BIND_UNTIL_HELP =
  "until then the first login with a proof binds a badge that is not bound; a time that has passed, or never, ends that";

/** An object, because commander makes an empty text of an option's value that is null. */
export interface BindUntil {
  /** Milliseconds; null: first proofs bind no badge. */
  bindUntil: number | null;
}

/** Parses `--bind-until`: ISO 8601 with a zone, or `never`. */
export const bindUntil = (text: string): BindUntil => ({ bindUntil: badgeEnd(text).expiresAt });

const COUNT_UNBOUND = `
  SELECT count(*) AS unbound FROM badge
  WHERE application_id = ?1 AND (ended_at IS NOT NULL) = 0 AND position IS NOT NULL AND key_thumbprint IS NULL`;

const countRows = z.tuple([z.object({ unbound: z.number() })]);

/** Badges of an application that have not ended and are not bound to a key. */
export async function countUnboundBadges(database: Database, id: string): Promise<number> {
  const { results } = await database.run((_, d1) => d1.prepare(COUNT_UNBOUND).bind(id).all());
  return countRows.parse(results)[0].unbound;
}

/** Says what `--require-proof` means for the application's existing badges. */
export function requiredProofText({ applicationId, bindUntil: until }: ShownApplication, unbound: number): string {
  if (unbound === 0) return "Every badge of the application is bound to a key.";
  const first = `${unbound} ${unbound === 1 ? "badge is" : "badges are"} not bound to a key.`;
  const refused = "From half a minute on, every login and signature with such a badge gets 401 INVALID_PROOF";
  const isOpen = until !== null && Date.parse(until) > Date.now();
  if (isOpen) {
    return `${first} ${refused}, until a login with a proof binds it: --bind-until allows that until ${until}.`;
  }
  return `${first} ${refused}, until it is bound. To let the first login with a proof bind
  each of them: ${ADMIN} application update ${applicationId} --bind-until TIME
  one of them, within 24 hours: ${ADMIN} badge rebind NUMBER
Or go back with --no-require-proof.`;
}
