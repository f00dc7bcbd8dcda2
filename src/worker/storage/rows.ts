import type * as schema from "../../shared/schema.ts";

/** Rows of the four tables that the allocator owns, without the application ID: the types of src/shared/schema.ts. */

type RowOf<Table extends { $inferSelect: { applicationId: unknown } }> = Omit<Table["$inferSelect"], "applicationId">;

export type BadgeRow = RowOf<typeof schema.badge>;
export type InvitationRow = RowOf<typeof schema.invitation>;
export type BlockRow = RowOf<typeof schema.blockedUser>;
export type FreedRow = RowOf<typeof schema.freedNumber>;

/** Columns that every issued badge has. */
type IssuedColumns =
  | "device"
  | "userId"
  | "signingKeyId"
  | "ordinal"
  | "loginSequence"
  | "issuedAt"
  | "change"
  | "changedAt";

/** A badge that was issued, in any state. */
export type IssuedBadge = BadgeRow & { [Column in IssuedColumns]: NonNullable<BadgeRow[Column]> };

/** Whether the row is a badge, not a number that an invitation reserves. */
export const isIssued = <Row extends BadgeRow>(row: Row | undefined): row is Row & IssuedBadge =>
  row !== undefined && row.ordinal !== null;
