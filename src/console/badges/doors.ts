import type { Application } from "../../client/index.ts";
import type { DoorCounts } from "../doors/knowing.ts";
import { count } from "../parts/texts.tsx";

const UNITS = [
  [86_400, "day"],
  [3600, "hour"],
  [60, "minute"],
] as const;

/** `90 seconds`, `15 minutes`, `2 days`. */
function durationWords(seconds: number): string {
  const [size, unit] = UNITS.find(([each]) => seconds >= each && seconds % each === 0) ?? [1, "second"];
  return new Intl.NumberFormat(undefined, { style: "unit", unit, unitDisplay: "long" }).format(seconds / size);
}

/**
 * What doors do once a badge is suspended or revoked (contract sections 3, 14 and 26).
 *
 * @param doors null if unknown
 */
export function doorsAfterEnd(application: Application, doors: DoorCounts | null): string {
  const { statusList, signatureLifetimeSeconds: lifetime } = application;
  const untilExpiry = lifetime === undefined ? "" : `, ${durationWords(lifetime)} after it was made`;
  if (statusList) {
    const last =
      lifetime === undefined ? "until that list expires" : `until the phone's last signature expires${untilExpiry}`;
    return `${doorsLearn("refuse it", doors)} A door without a network uses its last list ${last}.`;
  }
  if (lifetime !== undefined) {
    return `Doors do not learn of it: they open for a signature that the phone already has until it expires${untilExpiry}.`;
  }
  return "Doors do not learn of it: one that does not check the age opens for a signature that the phone already has. Ask your administrator for status lists.";
}

/** What doors do once a badge is resumed. @param doors null if unknown */
export const doorsAfterResume = ({ statusList }: Application, doors: DoorCounts | null): string =>
  statusList ? doorsLearn("open for it again", doors) : "Doors open for its next signature.";

/** When doors that read status lists do something, by how many are connected. */
function doorsLearn(what: string, doors: DoorCounts | null): string {
  const others = "others that read the status list within two minutes.";
  if (doors === null) return `Connected doors ${what} within two seconds, ${others}`;
  const { all, connected } = doors;
  if (connected === 0) return `No door is connected: those that read the status list ${what} within two minutes.`;
  if (connected < all)
    return `${count(connected)} of ${count(all)} doors are connected: they ${what} within two seconds, ${others}`;
  const which = all === 1 ? "The connected door" : `All ${count(all)} connected doors`;
  return `${which} ${all === 1 ? what.replace(/^\w+/, "$&s") : what} within two seconds, ${others}`;
}
