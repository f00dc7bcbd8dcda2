import type { AuditContext } from "../../shared/actor.ts";
import { expectKind } from "../../shared/expect-kind.ts";
import { newAlias } from "../../shared/identifiers.ts";
import type { Application } from "../applications/application-cache.ts";
import { hashUserId } from "../applications/derived-ids.ts";
import type { Context } from "../context.ts";

/** The response to a block or an unblock; `revoked`: badge numbers. */
interface BlockedUserView {
  userId: string;
  blocked: boolean;
  revoked: string[];
}

/** Blocks a user and revokes the user's badges, or lifts the block. @throws Unavailable */
export async function changeBlock(
  context: Context,
  application: Application,
  userId: string,
  kind: "block" | "unblock",
  audit: AuditContext,
): Promise<BlockedUserView> {
  const userDigest = await hashUserId(context.unsealedKeys, application, userId);
  const result = await context.allocator.execute(context.db, application.id, { kind, userId, userDigest }, audit);
  const { numbers } = expectKind(result, "user");
  return { userId, blocked: kind === "block", revoked: numbers.map(String) };
}

/** Erases a user; the badges stay under an alias. @throws Unavailable */
export async function eraseUser(
  context: Context,
  application: Application,
  userId: string,
  audit: AuditContext,
): Promise<{ userId: string; erased: number }> {
  const userDigest = await hashUserId(context.unsealedKeys, application, userId);
  const command = { kind: "erase" as const, userId, userDigest, alias: newAlias() };
  const result = await context.allocator.execute(context.db, application.id, command, audit);
  const { userId: alias, erased } = expectKind(result, "erased");
  return { userId: alias, erased };
}
