import { eventIdTime } from "../../../../src/shared/identifiers.ts";
import type { Erasure } from "../../../../src/worker/allocator/log-entry.ts";
import { Member } from "../member.ts";
import type { Change } from "../platform/d1.ts";
import type { Row } from "../platform/sqlite.ts";
import type { Granted } from "./book.ts";

/** Where D1 names a user (?2) of an application (?1) in what was made before a time (?3, milliseconds). */
const MENTIONS = [
  "SELECT 'badge' AS what, number FROM badge WHERE application_id = ?1 AND user_id = ?2 AND issued_at < ?3",
  // It has the time of its request, which may have waited for the erasure.
  `SELECT 'invitation', number FROM invitation WHERE application_id = ?1
    AND ((user_id = ?2 AND created_at < ?3 AND NOT EXISTS (SELECT 1 FROM history WHERE application_id = ?1
      AND badge = invitation.number AND action = 'invitation:created' AND at >= ?3)) OR (claim_user_id = ?2 AND ended_at < ?3))`,
  "SELECT 'block', user_id FROM blocked_user WHERE application_id = ?1 AND user_id = ?2 AND blocked_at < ?3",
  `SELECT 'event', id FROM webhook_event WHERE application_id = ?1 AND payload ->> '$.data.userId' = ?2
    AND created_at < ?3`,
  `SELECT 'history', id FROM history WHERE application_id = ?1 AND at < ?3
    AND (user_id = ?2 OR actor_name = ?2 OR instr(reason, ?2) > 0)`,
  // One that is an hour old is not carried out any more.
  `SELECT 'command', id FROM script_command WHERE recipient = ?1 AND created_at < ?3 - 3600000 AND result IS NOT NULL
    AND ?2 IN (command ->> '$.command.userId', command ->> '$.actor.name', result ->> '$.badge.userId')`,
].join(" UNION ALL ");

const USER_COLUMNS = ["user_id", "claim_user_id"];

/** Users who were erased (contract section 24). Other checks go on knowing whose a row is: they see the user in place of the alias. */
export class Erased extends Member {
  /** By alias. */
  readonly #users = new Map<string, string>();
  readonly #everywhere = new Set<string>();

  note(applicationId: string, { userId, alias }: { userId: string; alias: string }): void {
    this.#users.set(alias, userId);
    this.#everywhere.add(`${applicationId} ${userId}`);
  }

  /** Whether a user was erased, perhaps. */
  has(applicationId: string, userId: string): boolean {
    return this.#everywhere.has(`${applicationId} ${userId}`);
  }

  nameOf<Id>(userId: Id): Id | string {
    return this.#users.get(String(userId)) ?? userId;
  }

  /** A row with the user, and with the alias apart. */
  known(row: Row): Row {
    const columns = USER_COLUMNS.filter((column) => this.#users.has(String(row[column])));
    if (columns.length === 0) return row;
    const alias = row.user_id ?? null;
    return { ...row, ...Object.fromEntries(columns.map((name) => [name, this.nameOf(row[name] ?? null)])), alias };
  }

  knownChange({ table, before, after }: Change): Change {
    return { table, before: before && this.known(before), after: after && this.known(after) };
  }

  checkTold({ request: { applicationId, userId }, from }: Granted<"erase">): void {
    this.#check(applicationId, userId, from - this.world.plan.clockErrorMilliseconds);
  }

  /** Nothing is under way, and an erasure is in the log. */
  checkLogged(applicationId: string, { userId, throughEvent }: Erasure): void {
    // It is a millisecond after the erasure: the person may have come back in between.
    this.#check(applicationId, userId, eventIdTime(throughEvent) - 1 - 2 * this.world.plan.clockErrorMilliseconds);
  }

  /** @param before what was made before this time, in milliseconds, names the user no more */
  #check(applicationId: string, userId: string, before: number): void {
    const { d1, replica, verdict, timeline } = this.world;
    if (replica.lacked(applicationId, timeline.now, timeline.now)) return;
    const left = d1.look(MENTIONS, applicationId, userId, before);
    verdict.expect(left.length === 0, "nothing names a user who was erased", userId, left);
  }
}
