/**
 * A badge's `turn` is a sequence number: logging in gives it one more than the highest turn of its device's badges, so the
 * badge with the highest turn is the device's current one. The index `badge_device_turn` contains only turns above 1, so
 * that the many devices with a single user cost no index rows. Every query about a device therefore has two parts: that
 * index, and, if it has nothing, `badge_user_device`, which finds the only badge, with turn 1. Both have a device's unbound
 * badges before its bound ones (contract section 15), so each part looks in both places.
 */

/**
 * The highest turn among a device's issued badges, 0 when it has none. Reads at most four index rows, however many badges
 * the device has.
 *
 * @param device the application and the device, as SQL expressions
 * @returns an SQL expression
 */
export function highestTurn(device: { applicationId: string; device: string }): string {
  const ofDevice = (isBound: 0 | 1) => `FROM badge AS issued WHERE issued.application_id = ${device.applicationId}
    AND issued.device = ${device.device} AND (issued.key_thumbprint IS NOT NULL) = ${isBound}
    AND issued.position IS NOT NULL AND issued.retired_at IS NULL`;
  const highest = (isBound: 0 | 1) => `coalesce((SELECT max(issued.turn) ${ofDevice(isBound)} AND issued.turn > 1), 0)`;
  // Naming `user_id` makes SQLite search by `badge_user_device` instead of reading every badge of the application.
  const only = (isBound: 0 | 1) => `(SELECT 1 ${ofDevice(isBound)} AND issued.user_id IS NOT NULL LIMIT 1)`;
  return `coalesce(nullif(max(${highest(0)}, ${highest(1)}), 0), ${only(0)}, ${only(1)}, 0)`;
}
