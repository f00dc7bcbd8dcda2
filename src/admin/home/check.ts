import { sql } from "drizzle-orm";
import { homeOf } from "../../shared/homes.ts";
import type { ApplicationId } from "../../shared/identifiers.ts";
import { UNUSED_REGISTRATION_HOURS } from "../../shared/limits.ts";
import { isoTime } from "../../shared/time.ts";
import { listOwnedRanges, listRegistrations, registerMissing } from "../number-range/owners.ts";
import type { OwnedRange } from "../number-range/range.ts";
import { inChunks } from "../platform/database.ts";
import type { Homes } from "../platform/homes.ts";

export type CheckedHomes = Awaited<ReturnType<typeof checkHomes>>;

/**
 * Brings the register of number ranges into line with the homes (contract section 17): registers what it lacks, and clears what was
 * registered over a day ago for an application that its home does not have.
 */
export async function checkHomes(homes: Homes) {
  const registered = await registerMissing(homes);
  const before = await listRegistrations(homes);
  // Read after the register: whatever was created in between has a registration that is too young to be cleared.
  const owned = await listOwnedRanges(homes);
  const existing = new Map(owned.map((range) => [range.id, range]));
  const bound = new Set(homes.all.map(({ number }) => number));
  const isBound = (id: ApplicationId): boolean => bound.has(homeOf(id));
  /**
   * `recent`: not old enough to be cleared. `home-not-bound`: nobody can tell whether the application exists. `growing`: an
   * `application update` that adds numbers did not finish.
   */
  const reasonOf = (id: ApplicationId): "recent" | "home-not-bound" | "growing" => {
    if (existing.has(id)) return "growing";
    return isBound(id) ? "recent" : "home-not-bound";
  };
  const unused = before.filter(({ applicationId: id }) => !existing.has(id));
  await clear(
    homes,
    unused.filter(({ applicationId: id }) => isBound(id)),
  );
  const after = new Set((await listRegistrations(homes)).map(({ applicationId }) => applicationId));
  const growing = before.filter(({ applicationId: id, firstNumber, lastNumber }) => {
    const range = existing.get(id);
    return range !== undefined && (firstNumber < range.firstNumber || lastNumber > range.lastNumber);
  });
  const kept = [...unused.filter(({ applicationId }) => after.has(applicationId)), ...growing];
  return {
    homes: homes.all.length,
    applications: owned.length,
    /** Numbers of applications that the register lacked. */
    registered: registered.map(({ id, ...numbers }) => ({ applicationId: id, ...numbers })),
    /** Registrations that were cleared: their numbers are free. */
    cleared: unused
      .filter(({ applicationId }) => !after.has(applicationId))
      .map(({ registeredAt: _, ...range }) => range),
    /** Registrations that stay although their application has fewer numbers or does not exist. */
    kept: kept.map(({ registeredAt, ...range }) => ({
      ...range,
      registeredAt: isoTime(registeredAt),
      reason: reasonOf(range.applicationId),
    })),
    /** Pairs of applications that have numbers in common. */
    overlaps: findOverlaps(owned),
  };
}

/** Clears registrations that are old enough by D1's clock and have not changed since they were read. */
const clear = (homes: Homes, unused: Awaited<ReturnType<typeof listRegistrations>>): Promise<void> =>
  inChunks(
    homes.first.database,
    unused,
    (rows) => sql`
      DELETE FROM number_range
      WHERE registered_at <= (unixepoch() - ${sql.raw(String(UNUSED_REGISTRATION_HOURS))} * 3600) * 1000
        AND (application_id, registered_at) IN
          (SELECT value ->> 'applicationId', value ->> 'registeredAt' FROM json_each(${rows}))`,
  );

/** Each application whose range overlaps one that starts lower, paired with that one. */
function findOverlaps(owned: readonly OwnedRange[]): [ApplicationId, ApplicationId][] {
  const overlaps: [ApplicationId, ApplicationId][] = [];
  let furthest: OwnedRange | undefined;
  for (const range of owned.toSorted((one, other) => one.firstNumber - other.firstNumber)) {
    if (furthest !== undefined && range.firstNumber <= furthest.lastNumber) overlaps.push([furthest.id, range.id]);
    if (furthest === undefined || range.lastNumber > furthest.lastNumber) furthest = range;
  }
  return overlaps;
}
