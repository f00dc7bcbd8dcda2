import { decodeCursorText, encodeCursorText } from "../cursor.ts";
import type { InvitationCursor } from "../invitations/list.ts";

/** Cursors of the lists that start with the newest row. Opaque to callers. */

const INVITATION = /^invitations:(0|[1-9]\d{0,15}):(0|[1-9]\d{0,15})$/;
const EVENT = /^events:(evt_[0-9a-z]{1,40})$/;

export const encodeInvitationCursor = ({ createdAt, rowid }: InvitationCursor): string =>
  encodeCursorText(`invitations:${createdAt}:${rowid}`);

export const encodeEventCursor = (eventId: string): string => encodeCursorText(`events:${eventId}`);

/** @returns null for anything that `encodeInvitationCursor` did not make */
export function decodeInvitationCursor(cursor: string): InvitationCursor | null {
  const [, createdAt, rowid] = INVITATION.exec(decodeCursorText(cursor)) ?? [];
  if (createdAt === undefined || rowid === undefined) return null;
  const decoded = { createdAt: Number(createdAt), rowid: Number(rowid) };
  return encodeInvitationCursor(decoded) === cursor ? decoded : null;
}

/** @returns an event ID; null for anything that `encodeEventCursor` did not make */
export function decodeEventCursor(cursor: string): string | null {
  const id = EVENT.exec(decodeCursorText(cursor))?.[1];
  return id !== undefined && encodeEventCursor(id) === cursor ? id : null;
}
