import type { Invitation, InvitationInput } from "../../client/index.ts";
import { explainCode } from "../parts/problems.ts";
import { randomHex, type Session } from "../session.ts";
import type { Guest } from "./guests.ts";
import type { NewPass } from "./pass.tsx";

const KEY_RANDOM_BYTES = 16;
const DAY_MILLISECONDS = 24 * 3600 * 1000;
/** How long the code of a visit without an end is valid. The service accepts up to 365 days (contract section 5). */
const CODE_DAYS = 7;
const LONGEST_CODE_DAYS = 364;

/** The results of a list of visitors: passes, and those who were refused, with the reason. */
export interface Invited {
  passes: NewPass[];
  refused: { name: string; why: string }[];
}

/** What is sent. A retry after a lost response gets the same invitations. */
export interface Attempt {
  guests: readonly Guest[];
  key: string;
  wishes: InvitationInput[];
}

export const newAttempt = (guests: readonly Guest[]): Attempt => ({
  guests,
  key: randomHex(KEY_RANDOM_BYTES),
  wishes: guests.map(wishOf),
});

/** Invites all visitors in one call. The session keeps the passes, even if the form was closed meanwhile. */
export async function sendInvitations(session: Session, { guests, key, wishes }: Attempt): Promise<Invited> {
  session.inviting++;
  const made = await session
    .run((server, signal) => server.createInvitations(wishes, { udid: session.udid, idempotencyKey: key, signal }))
    .finally(() => session.inviting--);
  const invited: Invited = { passes: [], refused: [] };
  for (const [place, result] of made.entries()) {
    const { name = "", host = "" } = guests[place] ?? {};
    if ("error" in result) invited.refused.push({ name, why: explainCode(result.error) });
    else invited.passes.push({ invitation: withWish(result, wishes[place]), host });
  }
  if (invited.passes.length > 0) session.addInvited(invited);
  return invited;
}

const wishOf = ({ name, userId, startsAt, expiresAt }: Guest): InvitationInput => ({
  expiresAt: codeEnd(startsAt, expiresAt),
  badgeStartsAt: startsAt ?? undefined,
  badgeExpiresAt: expiresAt ?? undefined,
  // A cell of a spreadsheet is pasted with its tab.
  name: name.replaceAll("\t", " "),
  userId: userId || undefined,
});

/** When the code expires: at the end of the visit, within what the service accepts. */
function codeEnd(startsAt: string | null, expiresAt: string | null): Date {
  const latest = Date.now() + LONGEST_CODE_DAYS * DAY_MILLISECONDS;
  const wanted = expiresAt ?? new Date(Date.parse(startsAt ?? new Date().toISOString()) + CODE_DAYS * DAY_MILLISECONDS);
  return new Date(Math.min(latest, new Date(wanted).getTime()));
}

/** Adds what the service does not send back. */
function withWish(invitation: Invitation, wish: InvitationInput | undefined): Invitation {
  const text = (time: string | Date | undefined) => (time instanceof Date ? time.toISOString() : time);
  return {
    name: wish?.name,
    badgeStartsAt: text(wish?.badgeStartsAt),
    badgeExpiresAt: text(wish?.badgeExpiresAt),
    ...invitation,
  };
}
