import { base64Url } from "../../shared/identifiers.ts";
import type { InvitationCursor } from "../invitations/list.ts";

/** Cursors of the lists that start with the newest row. Opaque to callers. */

const INVITATION = /^invitations:(0|[1-9]\d{0,15}):(0|[1-9]\d{0,15})$/;
const EVENT = /^events:(evt_[0-9a-z]{1,40})$/;

const encode = (text: string): string => base64Url(new TextEncoder().encode(text));

export const encodeInvitationCursor = ({ createdAt, rowid }: InvitationCursor): string =>
  encode(`invitations:${createdAt}:${rowid}`);

export const encodeEventCursor = (eventId: string): string => encode(`events:${eventId}`);

/** @returns null for anything that `encodeInvitationCursor` did not make */
export function decodeInvitationCursor(cursor: string): InvitationCursor | null {
  const [, createdAt, rowid] = INVITATION.exec(decode(cursor)) ?? [];
  if (createdAt === undefined || rowid === undefined) return null;
  const decoded = { createdAt: Number(createdAt), rowid: Number(rowid) };
  return encodeInvitationCursor(decoded) === cursor ? decoded : null;
}

/** @returns an event ID; null for anything that `encodeEventCursor` did not make */
export function decodeEventCursor(cursor: string): string | null {
  const id = EVENT.exec(decode(cursor))?.[1];
  return id !== undefined && encodeEventCursor(id) === cursor ? id : null;
}

/** @returns the empty text for what is not base64 for URLs */
function decode(cursor: string): string {
  if (!/^[\w-]+$/.test(cursor)) return "";
  try {
    return atob(cursor.replaceAll("-", "+").replaceAll("_", "/"));
  } catch {
    return "";
  }
}
