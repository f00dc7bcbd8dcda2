import type { AuditContext } from "../../shared/actor.ts";
import { parseBadgeNumber } from "../../shared/badge-lifecycle/view.ts";
import { expectKind } from "../../shared/expect-kind.ts";
import { type ApplicationId, invitationDigestOf } from "../../shared/identifiers.ts";
import type { Revoker } from "../allocator/commands.ts";
import type { Application } from "../applications/application-cache.ts";
import type { Context } from "../context.ts";

export interface RevokedInvitation {
  number: number;
  expiresAt: string;
  /** Milliseconds; the same in every response. */
  revokedAt: number;
}

/**
 * Ends a pending invitation, so that its number is available again.
 *
 * @param id the token; the application's server may also use the number while it is reserved (contract section 12)
 * @throws ApiError
 * @throws Unavailable
 */
export async function revokeInvitation(
  context: Context,
  application: Application,
  id: string,
  revoker: Revoker,
  audit: AuditContext,
): Promise<RevokedInvitation> {
  const number = revoker.kind === "server" ? parseBadgeNumber(id) : null;
  const command = { kind: "revoke-invitation" as const, id: number ?? (await invitationDigestOf(id)), revoker };
  const result = await context.allocator.execute(context.db, application.id, command, audit);
  return expectKind(result, "invitation-revoked");
}

/**
 * Deletes the name and user of an invitation, and revokes it if it is pending.
 *
 * @param id the token, or the number while it is reserved
 * @returns the number that it reserves or reserved
 * @throws ApiError
 * @throws Unavailable
 */
export async function eraseInvitation(
  { allocator, db }: Context,
  applicationId: ApplicationId,
  id: string,
  audit: AuditContext,
): Promise<number> {
  const command = { kind: "erase-invitation" as const, id: parseBadgeNumber(id) ?? (await invitationDigestOf(id)) };
  return expectKind(await allocator.execute(db, applicationId, command, audit), "invitation-erased").number;
}
