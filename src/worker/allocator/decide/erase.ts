import type { AuditContext } from "../../../shared/actor.ts";
import type { InvitationDigest } from "../../../shared/identifiers.ts";
import { ERASE_BADGES, ERASE_INVITATIONS } from "../../../shared/limits/allocator-limits.ts";
import type { EraseCommand, Result } from "../commands.ts";
import type { EventPayload } from "../log-entry.ts";
import type { Transaction } from "../transaction.ts";
import { applyTransition } from "./transition.ts";

/**
 * Erases a person (contract section 24): revokes the user's badges, and puts an alias in place of the user ID wherever it
 * stands. Numbers stay taken, and a block goes on under a digest of the ID.
 */
export function decideErase(
  transaction: Transaction,
  audit: AuditContext,
  { userId, userDigest, alias, erasedBefore = 0 }: EraseCommand,
): Result {
  const { tables } = transaction;
  // A reason may name the person.
  const by = { ...audit, reason: null };
  const badges = tables.badgesOfUser(userId, "all", ERASE_BADGES);
  for (const badge of badges) {
    const anonymous = { ...badge, userId: alias, metadata: null, name: null };
    transaction.keepBadge(badge, anonymous);
    const revoked = applyTransition(transaction, by, anonymous, { kind: "revoke" });
    if (revoked === anonymous) transaction.changeBadge(anonymous, anonymous);
    eraseClaimed(transaction, badge.invitation, userId, alias);
    transaction.allowSplit();
  }
  const invitations = tables.invitationsNaming(userId, ERASE_INVITATIONS);
  for (const invitation of invitations) {
    const isClaimer = invitation.claimUserId === userId;
    transaction.updateInvitation(invitation, {
      ...invitation,
      name: null,
      userId: alias,
      ...(isClaimer && { claimUserId: alias }),
    });
    transaction.allowSplit();
  }
  const block = tables.block(userId, userDigest);
  const isBlockedByName = block?.userId === userId;
  if (isBlockedByName) {
    transaction.deleteBlock(block);
    // A user who is erased again, under the alias, keeps the first digest.
    transaction.insertBlock({ ...block, userId: alias, userDigest: block.userDigest ?? userDigest });
  }
  const isNamed = badges.length + invitations.length > 0 || isBlockedByName;
  if (isNamed) transaction.addHistory("user:erased", by, { userId: alias });
  // A repeated call joins the search that goes on: history may have named the user again since.
  const joined = isNamed ? undefined : tables.erasureOf(userId);
  const usedAlias = joined?.alias ?? alias;
  // Even if no row is left: an event may still name the user.
  transaction.eraseFromD1(userId, usedAlias, (data) => withoutPerson(data, userId, usedAlias), joined !== undefined);
  const isDone = badges.length < ERASE_BADGES && invitations.length < ERASE_INVITATIONS;
  return { kind: "erased", userId: usedAlias, erased: erasedBefore + badges.length, isDone };
}

/** The invitation that a badge was claimed from names the person, too. */
function eraseClaimed(transaction: Transaction, digest: InvitationDigest | null, userId: string, alias: string): void {
  const invitation = digest === null ? undefined : transaction.tables.invitation(digest);
  if (!invitation || invitation.claimUserId !== userId) return;
  transaction.updateInvitation(invitation, { ...invitation, name: null, claimUserId: alias });
}

/** What an event says, as `ERASE_EVENTS` (replica/erase-events.ts) leaves it in D1. */
function withoutPerson(data: EventPayload["data"], userId: string, alias: string): EventPayload["data"] {
  if (data.userId !== userId) return data;
  const { metadata: _, name: __, ...rest } = data;
  return { ...rest, userId: alias };
}
