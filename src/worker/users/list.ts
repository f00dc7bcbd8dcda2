import * as z from "zod";
import type { ApplicationId } from "../../shared/identifiers.ts";
import type { blockedUserPage } from "../../shared/responses.ts";
import { isoTime } from "../../shared/time.ts";
import type { Application } from "../applications/application-cache.ts";
import { hashUserId } from "../applications/derived-ids.ts";
import type { Context } from "../context.ts";
import { type CursorCodec, cursorCodec } from "../cursor.ts";
import { type BlockedUserRow, isBlocked, listBlockedUsers } from "../storage/blocked-users.ts";

export const BLOCKED_USER_CURSOR: CursorCodec<BlockedUserRow> = cursorCodec(
  "blocked-users",
  z.object({ userId: z.string(), blockedAt: z.int() }),
);

type BlockedView = z.infer<typeof blockedUserPage>["users"][number];

/** Whether a user is blocked (contract section 12), even after the user was erased. */
export async function isUserBlocked(
  { db, unsealedKeys }: Context,
  application: Application,
  userId: string,
): Promise<boolean> {
  const userDigest = await hashUserId(unsealedKeys, application, userId);
  return isBlocked(db, { applicationId: application.id, userId, userDigest });
}

/** @returns a page of blocked users, and the user after whom the next page starts; null on the last page */
export async function pageBlockedUsers(
  { db }: Context,
  applicationId: ApplicationId,
  page: { after: BlockedUserRow | null; perPage: number },
): Promise<{ users: BlockedView[]; next: BlockedUserRow | null }> {
  const { items, last } = await listBlockedUsers(db, applicationId, page);
  return { users: items.map(viewUser), next: last };
}

const viewUser = ({ userId, blockedAt }: BlockedUserRow): BlockedView => ({
  userId,
  blocked: true,
  blockedAt: isoTime(blockedAt),
});
