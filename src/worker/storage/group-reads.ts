import * as z from "zod";
import { type ApplicationId, type DeviceId, deviceId, type InvitationDigest } from "../../shared/identifiers.ts";
import {
  DUE_CHUNK_ROWS,
  ERASE_CHUNK_EVENTS,
  ERASE_CHUNK_HISTORY,
  ERASE_CHUNK_INVITATIONS,
  FREED_CHUNK_NUMBERS,
  USER_CHUNK_BADGES,
} from "../../shared/limits.ts";
import * as schema from "../../shared/schema.ts";
import { selectOf } from "./columns.ts";
import type { Database } from "./database.ts";
import {
  type BadgeRow,
  type BlockRow,
  badgeRow,
  blockRow,
  type FreedRow,
  freedRow,
  type InvitationRow,
  invitationRow,
  type Position,
  positionRow,
} from "./rows.ts";
import { highestTurn } from "./turns.ts";

/** What a group of commands has to know. */
export interface Needs {
  /** Badges of these user devices, and the devices' turns. */
  userDevices: { device: DeviceId; userId: string }[];
  /** Rows by number, and the invitations that reserve them. */
  numbers: number[];
  /** Invitations, and the rows of their numbers. */
  digests: InvitationDigest[];
  /** Blocks of these users. */
  users: string[];
  /** Badges of one user that a block may revoke, or all of them to be erased. */
  badgesOf: { userId: string; which: "revocable" | "all"; eventsAfter: string } | null;
  /** Freed numbers that have rested since, in milliseconds; null: none are needed. */
  restedBefore: number | null;
  /** What was due then, in milliseconds; null: not asked. */
  dueAt: number | null;
  /** Which of these commands of the script are not carried out. */
  commands: string[];
}

/** What D1 has of it. */
export interface GroupRows {
  /** Undefined: the application does not exist. */
  position: Position | undefined;
  badges: BadgeRow[];
  invitations: InvitationRow[];
  blocks: BlockRow[];
  freed: FreedRow[];
  /** Whether freed numbers were asked for, and whether there may be more, or invitations that leave some, than were read. */
  isFreedRead: boolean;
  isMoreFreed: boolean;
  turns: { device: DeviceId; turn: number }[];
  /** Whether what is due was asked for, and whether more is due than was read. */
  isDueRead: boolean;
  isMoreDue: boolean;
  /** Numbers of the badges of `badgesOf` that were read, with the invitations that they were claimed from. */
  numbersOfUser: number[];
  /** Up to which position all badges of `badgesOf` were read; null: all were. */
  readThrough: number | null;
  /** The last row of the user's history, and the last event, that an erasure may look at; null: all that are left. */
  historyThrough: string | null;
  eventsThrough: string | null;
  /** Whether an erasure has read all that names the user. */
  isLastOfUser: boolean;
  /** Of `commands`. */
  openCommands: string[];
}

export const BADGE = selectOf(schema.badge, "badge", badgeRow);
const INVITATION = selectOf(schema.invitation, "invitation", invitationRow);

const SELECT_POSITION = `SELECT ${selectOf(schema.position, "position", positionRow)} FROM position WHERE application_id = ?1`;

const SELECT_OWN = `
  SELECT ${BADGE} FROM json_each(?1) AS wanted CROSS JOIN badge
  WHERE badge.application_id = ?2 AND badge.device = wanted.value ->> 'device'
    AND (badge.key_thumbprint IS NOT NULL) IN (0, 1) AND badge.user_id = wanted.value ->> 'userId'
    AND badge.position IS NOT NULL AND badge.retired_at IS NULL`;

const SELECT_TURNS = `
  SELECT wanted.value AS device, ${highestTurn({ applicationId: "?2", device: "wanted.value" })} AS turn
  FROM json_each(?1) AS wanted`;

/** The plus sign keeps SQLite from searching by application, which would read all of its rows. */
const SELECT_NUMBERED = `
  SELECT ${BADGE} FROM badge WHERE badge.number IN (SELECT value FROM json_each(?1)) AND +badge.application_id = ?2`;

const SELECT_INVITATIONS_OF_NUMBERS = `
  SELECT ${INVITATION} FROM badge JOIN invitation ON invitation.digest = badge.invitation
  WHERE badge.number IN (SELECT value FROM json_each(?1)) AND +badge.application_id = ?2`;

export const SELECT_INVITATIONS = `
  SELECT ${INVITATION} FROM invitation
  WHERE invitation.digest IN (SELECT value FROM json_each(?1)) AND +invitation.application_id = ?2`;

const SELECT_INVITED = `
  SELECT ${BADGE} FROM invitation JOIN badge ON badge.number = invitation.number
  WHERE invitation.digest IN (SELECT value FROM json_each(?1)) AND +invitation.application_id = ?2
    AND +badge.application_id = ?2`;

const SELECT_BLOCKS = `
  SELECT ${selectOf(schema.blockedUser, "blocked_user", blockRow)} FROM json_each(?1) AS wanted CROSS JOIN blocked_user
  WHERE blocked_user.application_id = ?2 AND blocked_user.user_id = wanted.value`;

const SELECT_FREED = `
  SELECT ${selectOf(schema.freedNumber, "freed_number", freedRow)} FROM freed_number
  WHERE freed_number.application_id = ?2 AND freed_number.freed_at <= ?1
  ORDER BY freed_number.freed_at LIMIT ${FREED_CHUNK_NUMBERS}`;

/** In the order of `invitation_due`, in which rows that end together follow each other by `rowid`: nothing is sorted. */
const DUE = `
  invitation.application_id = ?2 AND invitation.state = 'pending' AND invitation.expires_at_time <= ?1
  ORDER BY invitation.expires_at_time, invitation.rowid LIMIT ${DUE_CHUNK_ROWS}`;

const SELECT_DUE_INVITATIONS = `SELECT ${INVITATION} FROM invitation WHERE ${DUE}`;

const SELECT_DUE_RESERVATIONS = `
  SELECT ${BADGE} FROM badge WHERE badge.number IN (SELECT number FROM invitation WHERE ${DUE})`;

const SELECT_DUE_BADGES = `
  SELECT ${BADGE} FROM badge WHERE badge.application_id = ?2 AND badge.expires_at IS NOT NULL AND badge.ended_at IS NULL
    AND badge.expires_at <= ?1
  ORDER BY badge.expires_at LIMIT ${DUE_CHUNK_ROWS}`;

const OF_USER = `badge.application_id = ?2 AND badge.user_id = ?1 AND badge.position IS NOT NULL
  AND (badge.ended_at IS NOT NULL) IN (0, 1)`;

const SELECT_REVOCABLE = `
  SELECT ${BADGE} FROM badge WHERE ${OF_USER} AND badge.state IN ('active', 'suspended')
    AND badge.position > coalesce((SELECT done_position FROM blocked_user
      WHERE application_id = ?2 AND user_id = ?1 AND is_revoking = 1), 0)
  ORDER BY badge.position LIMIT ${USER_CHUNK_BADGES}`;

/** In the order of `badge_user_page`: nothing is sorted, so a chunk costs the same however many there are. */
const NEXT_OF_USER = `FROM badge WHERE ${OF_USER} ORDER BY (badge.ended_at IS NOT NULL), badge.position LIMIT ${USER_CHUNK_BADGES}`;

const SELECT_ALL_OF_USER = `SELECT ${BADGE} ${NEXT_OF_USER}`;

const SELECT_CLAIMED_BY_USER = `
  SELECT ${INVITATION} FROM invitation WHERE invitation.digest IN (SELECT badge.invitation ${NEXT_OF_USER})`;

const SELECT_NAMING_USER = `
  SELECT ${INVITATION} FROM invitation WHERE invitation.application_id = ?2 AND invitation.user_id = ?1
  LIMIT ${ERASE_CHUNK_INVITATIONS}`;

const SELECT_HISTORY_THROUGH = `
  SELECT id FROM history WHERE application_id = ?2 AND user_id = ?1 ORDER BY id LIMIT 1 OFFSET ${ERASE_CHUNK_HISTORY - 1}`;

const SELECT_EVENTS_THROUGH = `
  SELECT id FROM webhook_event WHERE application_id = ?2 AND id > ?1 ORDER BY id LIMIT 1 OFFSET ${ERASE_CHUNK_EVENTS}`;

const SELECT_OPEN_COMMANDS = `
  SELECT id FROM inbox WHERE id IN (SELECT value FROM json_each(?1)) AND application_id = ?2 AND result IS NULL`;

const turnRow = z.object({ device: deviceId, turn: z.number() });
const idRow = z.object({ id: z.string() });
const numberRow = z.object({ number: z.number() });

/** What the rows of a statement are for. */
type Kind =
  | "badges"
  | "turns"
  | "invitations"
  | "blocks"
  | "freed"
  | "dueInvitations"
  | "dueBadges"
  | "userBadges"
  | "userInvitations"
  | "historyThrough"
  | "eventsThrough"
  | "openCommands";

/** Reads what a group needs from D1's primary. One round trip. */
export async function readGroup(db: Database, applicationId: ApplicationId, needs: Needs): Promise<GroupRows> {
  const { userDevices, numbers, digests, users, badgesOf, restedBefore, dueAt, commands } = needs;
  const wanted: [kind: Kind, sql: string, value: unknown][] = [];
  if (userDevices.length > 0) {
    wanted.push(["badges", SELECT_OWN, JSON.stringify(userDevices)]);
    const devices = new Set(userDevices.map(({ device }) => device));
    wanted.push(["turns", SELECT_TURNS, JSON.stringify([...devices])]);
  }
  if (numbers.length > 0) {
    wanted.push(["badges", SELECT_NUMBERED, JSON.stringify(numbers)]);
    wanted.push(["invitations", SELECT_INVITATIONS_OF_NUMBERS, JSON.stringify(numbers)]);
  }
  if (digests.length > 0) {
    wanted.push(["invitations", SELECT_INVITATIONS, JSON.stringify(digests)]);
    wanted.push(["badges", SELECT_INVITED, JSON.stringify(digests)]);
  }
  if (users.length > 0) wanted.push(["blocks", SELECT_BLOCKS, JSON.stringify(users)]);
  if (restedBefore !== null) wanted.push(["freed", SELECT_FREED, restedBefore]);
  if (dueAt !== null) {
    wanted.push(["dueInvitations", SELECT_DUE_INVITATIONS, dueAt]);
    wanted.push(["badges", SELECT_DUE_RESERVATIONS, dueAt]);
    wanted.push(["dueBadges", SELECT_DUE_BADGES, dueAt]);
  }
  if (badgesOf) {
    const sql = badgesOf.which === "all" ? SELECT_ALL_OF_USER : SELECT_REVOCABLE;
    wanted.push(["userBadges", sql, badgesOf.userId]);
    if (badgesOf.which === "all") {
      wanted.push(["invitations", SELECT_CLAIMED_BY_USER, badgesOf.userId]);
      wanted.push(["userInvitations", SELECT_NAMING_USER, badgesOf.userId]);
      wanted.push(["historyThrough", SELECT_HISTORY_THROUGH, badgesOf.userId]);
      wanted.push(["eventsThrough", SELECT_EVENTS_THROUGH, badgesOf.eventsAfter]);
    }
  }
  if (commands.length > 0) wanted.push(["openCommands", SELECT_OPEN_COMMANDS, JSON.stringify(commands)]);
  const [position, ...results] = await db.atPrimary((d1) =>
    d1.batch([
      d1.prepare(SELECT_POSITION).bind(applicationId),
      ...wanted.map(([, sql, value]) => d1.prepare(sql).bind(value, applicationId)),
    ]),
  );
  const rowsOf = <Row>(row: z.ZodType<Row>, ...kinds: Kind[]): Row[] =>
    wanted.flatMap(([kind], index) => (kinds.includes(kind) ? z.array(row).parse(results[index]?.results ?? []) : []));
  const userBadges = rowsOf(badgeRow, "userBadges");
  const userInvitations = rowsOf(invitationRow, "userInvitations");
  const historyThrough = rowsOf(idRow, "historyThrough")[0]?.id ?? null;
  const eventsThrough = rowsOf(idRow, "eventsThrough")[0]?.id ?? null;
  const freed = rowsOf(freedRow, "freed");
  const isChunk = (rows: readonly unknown[], size: number) => rows.length >= size;
  const areMoreInvitationsDue = isChunk(rowsOf(invitationRow, "dueInvitations"), DUE_CHUNK_ROWS);
  return {
    position: positionRow.optional().parse(position?.results[0]),
    badges: rowsOf(badgeRow, "badges", "dueBadges", "userBadges"),
    invitations: rowsOf(invitationRow, "invitations", "dueInvitations", "userInvitations"),
    blocks: rowsOf(blockRow, "blocks"),
    freed,
    isFreedRead: restedBefore !== null,
    isMoreFreed: restedBefore === null || isChunk(freed, FREED_CHUNK_NUMBERS) || areMoreInvitationsDue,
    turns: rowsOf(turnRow, "turns"),
    isDueRead: dueAt !== null,
    isMoreDue: isChunk(rowsOf(badgeRow, "dueBadges"), DUE_CHUNK_ROWS) || areMoreInvitationsDue,
    numbersOfUser: userBadges.map(({ number }) => number),
    readThrough: isChunk(userBadges, USER_CHUNK_BADGES) ? (userBadges.at(-1)?.position ?? null) : null,
    historyThrough,
    eventsThrough,
    isLastOfUser:
      !isChunk(userBadges, USER_CHUNK_BADGES) &&
      !isChunk(userInvitations, ERASE_CHUNK_INVITATIONS) &&
      historyThrough === null &&
      eventsThrough === null,
    openCommands: rowsOf(idRow, "openCommands").map(({ id }) => id),
  };
}

const SELECT_REVOKED_BY = `
  SELECT number FROM badge WHERE ${OF_USER} AND badge.state = 'revoked' AND badge.position <= ?3 AND badge.change > ?4
  ORDER BY badge.position`;

/** What a group knows that was decided without reading. */
export const NOTHING_READ: GroupRows = {
  position: undefined,
  badges: [],
  invitations: [],
  blocks: [],
  freed: [],
  isFreedRead: false,
  isMoreFreed: true,
  turns: [],
  isDueRead: false,
  isMoreDue: false,
  numbersOfUser: [],
  readThrough: null,
  historyThrough: null,
  eventsThrough: null,
  isLastOfUser: true,
  openCommands: [],
};

/** Numbers of the badges that a block revoked, in the order of issue. One round trip. */
export async function readRevokedBy(db: Database, applicationId: ApplicationId, block: BlockRow): Promise<number[]> {
  const { userId, throughPosition, afterChange } = block;
  const rows = await db.primaryRows(numberRow, SELECT_REVOKED_BY, [
    userId,
    applicationId,
    throughPosition,
    afterChange,
  ]);
  return rows.map(({ number }) => number);
}

/** How far the application's entries have come in D1. One round trip. @returns undefined: it does not exist */
export async function readPosition(db: Database, applicationId: ApplicationId): Promise<Position | undefined> {
  const [row] = await db.primaryRows(positionRow, SELECT_POSITION, [applicationId]);
  return row;
}
