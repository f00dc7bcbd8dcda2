import type { Application } from "../../client/index.ts";

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

/** What doors do once a badge is suspended or revoked (contract sections 3 and 14). */
export function doorsAfterEnd({ statusList, signatureLifetimeSeconds: lifetime }: Application): string {
  const untilExpiry = lifetime === undefined ? "" : `, ${durationWords(lifetime)} after it was made`;
  if (statusList) {
    const last =
      lifetime === undefined ? "until that list expires" : `until the phone's last signature expires${untilExpiry}`;
    return `Connected doors refuse it within two seconds, others that read the status list within two minutes. A door without a network goes by its last list, ${last}.`;
  }
  if (lifetime !== undefined) {
    return `Doors do not learn of it: they open for a signature that the phone already has until it expires${untilExpiry}.`;
  }
  return "Doors do not learn of it: one that does not check the age opens for a signature that the phone already has. Ask your administrator for status lists.";
}

/** What doors do once a badge is resumed. */
export const doorsAfterResume = ({ statusList }: Application): string =>
  statusList
    ? "Connected doors open for it again within two seconds, others that read the status list within two minutes."
    : "Doors open for its next signature.";
