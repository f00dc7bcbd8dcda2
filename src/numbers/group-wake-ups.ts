/**
 * Gives one caller of a group the IDs of all events that the group wrote and the queue is to hear of, so that one message
 * batch does for all. Should that caller die first, the sweep finds the events within a minute.
 */
export function giveWakeUpsToOne<Result extends { kind: string } | null>(
  results: readonly Result[],
  wakeUps: readonly string[],
): Result[] {
  const one = results.findIndex((result) => result?.kind === "written");
  return results.map((result, place) => (place === one ? { ...result, wakeUps } : result));
}
