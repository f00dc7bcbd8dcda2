import { eq, type SQL, sql } from "drizzle-orm";
import { homeOf } from "../../shared/homes.ts";
import type { ApplicationId } from "../../shared/identifiers.ts";
import type { NumberRange } from "../../shared/number-range.ts";
import { numberRange } from "../../shared/schema.ts";
import { UserError } from "../command-line/errors.ts";
import type { Orm } from "../platform/database.ts";
import type { Home, Homes } from "../platform/homes.ts";
import type { WantedNumbers } from "./card-range.ts";
import { explainTaken, findOverlapping, registerMissing } from "./owners.ts";
import { defaultRange, explicitRange, OF_APPLICATIONS, type OwnedRange, overlapLine, REGISTERED } from "./range.ts";

/**
 * The register of number ranges (contract section 17): a table of home 1, in which an application's numbers are registered
 * before it gets them. Home 1 decides which of two administrators is first. After home 1 alone was restored the register
 * lacks applications of other homes, so those are asked as well before anybody uses a registration.
 */

type Registration = typeof numberRange.$inferSelect;

/** Times are D1's: this computer's clock may be wrong by hours. */
const NOW = sql`unixepoch() * 1000`;

/** A query that returns the numbers that a new application wants, if home 1 knows of no other that has them. */
export const freeNumbers = ({ range, highestDefault }: WantedNumbers, id: ApplicationId): SQL =>
  range ? explicitRange(REGISTERED, range, id) : defaultRange(REGISTERED, id, highestDefault);

/** Registers what a query returns. @param conflict what happens to numbers that are registered already */
const register = (orm: Orm, id: ApplicationId, numbers: SQL, conflict: SQL) =>
  orm.insert(numberRange).select(sql`
    SELECT ${id}, range.first_number, range.last_number, ${NOW} FROM (${numbers}) AS range WHERE true
    ON CONFLICT (application_id) DO UPDATE SET ${conflict}`);

/** They grow. */
const GROWTH = sql`last_number = max(last_number, excluded.last_number)`;

/** They stay, and their 24 hours start again. */
const RENEWAL = sql`registered_at = excluded.registered_at`;

/** Registers the numbers that an application of home 1 has. */
export const registerOwned = (orm: Orm, id: ApplicationId) =>
  register(orm, id, sql`SELECT first_number, last_number FROM application WHERE id = ${id}`, GROWTH);

/** Registers other numbers for an application that was not created yet, since `before` turned out not to be free. */
const registerAgain = (orm: Orm, id: ApplicationId, wanted: WantedNumbers, before: Registration) =>
  orm.run(sql`
    UPDATE number_range SET first_number = range.first_number, last_number = range.last_number, registered_at = ${NOW}
    FROM (${freeNumbers(wanted, id)}) AS range
    WHERE application_id = ${id} AND number_range.first_number = ${before.firstNumber}`);

export const selectRegistration = (orm: Orm, id: ApplicationId) =>
  orm.select().from(numberRange).where(eq(numberRange.applicationId, id));

/** A query that returns the numbers registered for an application: in home 1 the row itself, which may be gone by then. */
const registeredNumbers = ({ applicationId: id, firstNumber, lastNumber }: Registration): SQL =>
  homeOf(id) === 1
    ? sql`SELECT first_number, last_number FROM number_range WHERE application_id = ${id}`
    : sql`SELECT ${firstNumber} AS first_number, ${lastNumber} AS last_number`;

/**
 * Registers the numbers of a new application, disjoint from those of every home.
 *
 * @returns a query for its home that returns the numbers
 * @throws UserError when they are not free
 */
export async function claimNumbers(homes: Homes, id: ApplicationId, wanted: WantedNumbers): Promise<SQL> {
  // Check before registering: the numbers of a registration that is then refused could not be used for a day.
  if (wanted.range) await assertFreeElsewhere(homes, wanted.range, id);
  let registration: Registration | undefined;
  for (;;) {
    const before: Registration | undefined = registration;
    if (before !== undefined) await homes.first.database.run((orm) => registerAgain(orm, id, wanted, before));
    [, [registration]] = await homes.first.database.run((orm) =>
      orm.batch([register(orm, id, freeNumbers(wanted, id), RENEWAL), selectRegistration(orm, id)]),
    );
    if (registration === undefined || registration.firstNumber === before?.firstNumber) {
      throw await explainTaken(homes, wanted, id);
    }
    const { firstNumber: first, lastNumber: last } = registration;
    if ((await findElsewhere(homes, { first, last }, id)) === undefined) return registeredNumbers(registration);
    await registerMissing(homes);
  }
}

/**
 * Registers that an application's range grows, disjoint from those of every home.
 *
 * @throws UserError when the numbers are not free
 */
export async function claimGrowth(homes: Homes, id: ApplicationId, range: NumberRange): Promise<void> {
  await assertFreeElsewhere(homes, range, id);
  const [, [registration]] = await homes.first.database.run((orm) =>
    orm.batch([register(orm, id, explicitRange(REGISTERED, range, id), GROWTH), selectRegistration(orm, id)]),
  );
  if (registration === undefined || registration.lastNumber < range.last) {
    throw await explainTaken(homes, { range }, id);
  }
  await assertFreeElsewhere(homes, range, id);
}

/**
 * Makes sure that an application has only numbers that are registered for it. They are not if home 1 was restored, or they
 * were cleared, after they were claimed: then somebody else may have them. Nor are they while home 1 cannot be asked.
 *
 * @param undo takes the numbers away from it again
 * @throws UserError when they are not registered, and whatever keeps home 1 from being asked
 */
export async function confirmNumbers(
  homes: Homes,
  { id, lastNumber }: { id: ApplicationId; lastNumber: number },
  undo: () => Promise<unknown>,
): Promise<void> {
  const [registration] = await homes.first.database
    .run((orm) => selectRegistration(orm, id))
    .catch(async (error: unknown) => {
      await undo();
      throw error;
    });
  if (registration !== undefined && registration.lastNumber >= lastNumber) return;
  await undo();
  throw new UserError(
    "The numbers are no longer registered in home 1, which was restored or cleared of them meanwhile: run the command again.",
  );
}

/** @throws UserError when an application of another home than home 1 has one of the numbers; then all are registered */
async function assertFreeElsewhere(homes: Homes, range: NumberRange, except: ApplicationId): Promise<void> {
  const owner = await findElsewhere(homes, range, except);
  if (owner === undefined) return;
  await registerMissing(homes);
  throw new UserError(overlapLine(range, owner));
}

/** An application of another home than home 1 whose range overlaps. */
async function findElsewhere(homes: Homes, range: NumberRange, except: ApplicationId): Promise<OwnedRange | undefined> {
  const ask = ({ database }: Home) => findOverlapping(database, OF_APPLICATIONS, range, except);
  const found = await homes.everywhere(ask, homes.others);
  return found.find((owner) => owner !== undefined);
}
