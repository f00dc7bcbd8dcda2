/**
 * A device's current badge is the one with the highest `turn`. The index `badge_device_turn` has only the badges with a
 * turn above 1, so that the many devices with a single user cost it nothing. So every question about a device has two
 * parts: first that index; where it has nothing, the device's badge has turn 1, and `badge_user_device` finds it.
 *
 * Two badges can share a turn when an earlier version wrote them in one transaction. Their requests ran at the same
 * time, so either may be the current one, until the next login decides.
 */

/**
 * The highest turn among the issued badges of a device, 0 when it has none. Reads at most two rows of indexes, however
 * many badges the device has.
 *
 * @param device the application and the device, as SQL expressions
 * @returns an SQL expression
 */
export function highestTurn(device: { applicationId: string; device: string }): string {
  const ofDevice = `FROM badge AS given WHERE given.application_id = ${device.applicationId}
    AND given.device = ${device.device} AND given.position IS NOT NULL AND given.retired_at IS NULL`;
  // Naming `user_id` makes SQLite search by `badge_user_device` instead of reading every badge of the application.
  return `coalesce((SELECT max(given.turn) ${ofDevice} AND given.turn > 1),
    (SELECT 1 ${ofDevice} AND given.user_id IS NOT NULL LIMIT 1), 0)`;
}

/**
 * Numbers the rows of one transaction from 1 within each device. They all read the turns from before the transaction;
 * with its own `turnStep` added, each badge of a device gets a turn of its own.
 */
export function withTurnSteps<Row extends { device: string }>(rows: readonly Row[]): (Row & { turnStep: number })[] {
  const steps = new Map<string, number>();
  return rows.map((row) => {
    const turnStep = (steps.get(row.device) ?? 0) + 1;
    steps.set(row.device, turnStep);
    return { ...row, turnStep };
  });
}
