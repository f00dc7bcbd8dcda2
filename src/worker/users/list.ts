import * as z from "zod";
import type { ApplicationId } from "../../shared/identifiers.ts";
import type { blockedUserPage } from "../../shared/responses.ts";
import { isoTime } from "../../shared/time.ts";
import type { Context } from "../context.ts";
import { type CursorCodec, cursorCodec } from "../cursor.ts";
import { type BlockedUserRow, listBlockedUsers } from "../storage/blocked-users.ts";

export const BLOCKED_USER_CURSOR: CursorCodec<BlockedUserRow> = cursorCodec(
  "blocked-users",
  z.object({ userId: z.string(), blockedAt: z.int() }),
);

type BlockedView = z.infer<typeof blockedUserPage>["users"][number];

/** @returns a page of blocked users (contract section 24), and the one after whom the next page starts; null on the last page */
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
