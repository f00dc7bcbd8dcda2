import { expectKind } from "../../shared/expect-kind.ts";
import { homeOf } from "../../shared/homes.ts";
import type { ApplicationId } from "../../shared/identifiers.ts";
import { UNUSED_REGISTRATION_HOURS } from "../../shared/limits/platform-limits.ts";
import type { Registration } from "../../shared/script-commands.ts";
import { HOUR_MILLISECONDS, isoTime } from "../../shared/time.ts";
import { listOwnedRanges, listRegistrations } from "../number-range/owners.ts";
import { type OwnedRange, rangeOf } from "../number-range/range.ts";
import type { Homes } from "../platform/homes.ts";
import type { HomeSubmitter } from "../script-command/submit.ts";

export type CheckedHomes = Awaited<ReturnType<typeof checkHomes>>;

/**
 * Compares the register of number ranges with the applications of all homes, and registers numbers that it lacks. It clears
 * nothing.
 */
export async function checkHomes(homes: Homes, submit: HomeSubmitter) {
  // Read before the register, so that an application created in between is not missing there.
  const owned = await listOwnedRanges(homes);
  const existing = new Map(owned.map((range) => [range.id, range]));
  const before = await listRegistrations(homes);
  const { registered, refused } = await registerMissing(submit, owned, before);
  const unusedSince = (await homes.first.database.readClock()) - UNUSED_REGISTRATION_HOURS * HOUR_MILLISECONDS;
  const bound = new Set(homes.all.map(({ number }) => number));
  /** Undefined if the registration matches the application's range. */
  const mismatchOf = (registration: Registration): RegistrationMismatch | undefined => {
    const range = existing.get(registration.applicationId);
    if (range) return range.lastNumber < registration.lastNumber ? "growing" : undefined;
    if (!bound.has(homeOf(registration.applicationId))) return "home-not-bound";
    return registration.registeredAt > unusedSince ? "recent" : "unused";
  };
  const found = before.flatMap((registration) => {
    const reason = mismatchOf(registration);
    return reason === undefined ? [] : [{ ...registration, registeredAt: isoTime(registration.registeredAt), reason }];
  });
  return {
    homes: homes.all.length,
    applications: owned.length,
    /** Numbers of applications that the register lacked. */
    registered: registered.map(({ id, ...numbers }) => ({ applicationId: id, ...numbers })),
    /** Registrations over a day old whose home has no such application. Only `--release` clears one. */
    unused: found.filter(({ reason }) => reason === "unused").map(({ reason: _, ...registration }) => registration),
    /** Other registrations whose application has fewer numbers or is not found. */
    kept: found.flatMap(({ reason, ...registration }) => (reason === "unused" ? [] : [{ ...registration, reason }])),
    /** Pairs of applications that have numbers in common. */
    overlaps: [...findOverlaps(owned), ...refused],
  };
}

/**
 * `unused`: over a day old, and its home has no such application. `recent`: the same, but younger. `home-not-bound`: it is
 * unknown whether the application exists. `growing`: an `application update` that adds numbers did not finish, or its home was
 * restored.
 */
export type RegistrationMismatch = "unused" | "recent" | "home-not-bound" | "growing";

/** @returns `registered`: applications; `refused`: pairs of an application that has the numbers and the one refused them */
async function registerMissing(
  submit: HomeSubmitter,
  owned: readonly OwnedRange[],
  registrations: readonly Registration[],
): Promise<{ registered: OwnedRange[]; refused: [ApplicationId, ApplicationId][] }> {
  const known = new Map(registrations.map((each) => [each.applicationId, each]));
  const registered: OwnedRange[] = [];
  const refused: [ApplicationId, ApplicationId][] = [];
  for (const range of owned) {
    const registration = known.get(range.id);
    if (registration && registration.lastNumber >= range.lastNumber) continue;
    const command = { kind: "register", applicationId: range.id } as const;
    const outcome = expectKind(await submit({ ...command, range: rangeOf(range) }), "registered", "taken");
    if (outcome.kind === "registered") registered.push(range);
    else if (outcome.owner) refused.push([outcome.owner.applicationId, range.id]);
  }
  return { registered, refused };
}

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
