import { eq, sql } from "drizzle-orm";
import * as z from "zod";
import { databaseBindingOf, homeOf } from "../../shared/homes.ts";
import { type ApplicationId, applicationId } from "../../shared/identifiers.ts";
import { UNUSED_REGISTRATION_HOURS } from "../../shared/limits.ts";
import type { NumberRange } from "../../shared/number-range.ts";
import { application, numberRange } from "../../shared/schema.ts";
import { UserError } from "../command-line/errors.ts";
import { ADMIN } from "../command-line/shell.ts";
import { type Database, inChunks } from "../platform/database.ts";
import type { Homes } from "../platform/homes.ts";
import type { WantedNumbers } from "./card-range.ts";
import { OF_APPLICATIONS, type OwnedRange, overlapLine, REGISTERED, rangeOf, shownRange, type Taken } from "./range.ts";

const ownedRanges = z.array(z.object({ id: applicationId, firstNumber: z.number(), lastNumber: z.number() }));

/** Of the ranges that are taken, one that overlaps. @param except application whose own range is left out */
export async function findOverlapping(
  database: Database,
  taken: Taken,
  { first, last }: NumberRange,
  except: ApplicationId | "" = "",
): Promise<OwnedRange | undefined> {
  const rows = await database.run((orm) =>
    orm.all(sql`SELECT id, first_number AS firstNumber, last_number AS lastNumber FROM (${taken})
      WHERE first_number <= ${last} AND last_number >= ${first} AND id <> ${except}
      ORDER BY first_number DESC LIMIT 1`),
  );
  return ownedRanges.parse(rows)[0];
}

/** The application of a home whose range has a number. */
export const ownerOfNumber = (database: Database, number: number): Promise<OwnedRange | undefined> =>
  findOverlapping(database, OF_APPLICATIONS, { first: number, last: number });

/** The database of the home whose applications have a number; home 1's when no application has it. */
export const databaseOfNumber = (homes: Homes, number: number): Promise<Database> =>
  homes.find(async (database) => (await ownerOfNumber(database, number)) !== undefined);

/** Why home 1 did not register numbers. It is read after the fact, so the reason may be gone by now. */
export async function explainTaken(
  homes: Homes,
  { range, highestDefault }: WantedNumbers,
  id: ApplicationId,
): Promise<UserError> {
  if (range === undefined) {
    const limit = highestDefault === undefined ? "" : ` up to ${highestDefault}`;
    return new UserError(`No block of numbers${limit} is free: choose a range with --first and --last.`);
  }
  const owner = await findOverlapping(homes.first.database, REGISTERED, range, id);
  if (owner === undefined) return new UserError("The range was taken meanwhile: run the command again.");
  const overlap = `Numbers ${shownRange(range)} overlap those registered for ${owner.id} (${shownRange(rangeOf(owner))}), whose `;
  const home = homes.all.find(({ number }) => number === homeOf(owner.id));
  if (home === undefined) return new UserError(`${overlap}home wrangler.toml does not bind: choose others.`);
  const isOwner = eq(application.id, owner.id);
  if ((await home.database.run((orm) => orm.$count(application, isOwner))) > 0) {
    return new UserError(overlapLine(range, owner));
  }
  return new UserError(
    `${overlap}creation has not finished: choose others, or, ${UNUSED_REGISTRATION_HOURS} hours after it began, clear it with ${ADMIN} home check.`,
  );
}

/** The numbers of the applications of all homes. */
export async function listOwnedRanges(homes: Homes): Promise<OwnedRange[]> {
  const { id, firstNumber, lastNumber } = application;
  const found = await homes.everywhere(({ database }) =>
    database.run((orm) => orm.select({ id, firstNumber, lastNumber }).from(application)),
  );
  return found.flat();
}

export const listRegistrations = (homes: Homes) =>
  homes.first.database.run((orm) => orm.select().from(numberRange).orderBy(numberRange.firstNumber));

/**
 * The wrangler.toml of another computer may be older than a home.
 *
 * @param consequence what the refusal begins with
 * @throws UserError when numbers are registered for an application of a home that is not bound
 */
export async function assertHomesBound(homes: Homes, consequence: string): Promise<void> {
  const bound = homes.all.map(({ number }) => number);
  const registered = (await listRegistrations(homes)).map(({ applicationId: id }) => homeOf(id));
  const unbound = registered.find((number) => !bound.includes(number));
  if (unbound === undefined) return;
  throw new UserError(
    `${consequence}: home ${unbound} has applications, and wrangler.toml binds no ${databaseBindingOf(unbound)} here. Bind it first.`,
  );
}

/** Registers the numbers of every application that lacks them in the register. @returns those it registered */
export async function registerMissing(homes: Homes): Promise<OwnedRange[]> {
  const [owned, registrations] = await Promise.all([listOwnedRanges(homes), listRegistrations(homes)]);
  const registered = new Map(registrations.map((each) => [each.applicationId, each]));
  const missing = owned.filter(({ id, firstNumber, lastNumber }) => {
    const registration = registered.get(id);
    return registration === undefined || registration.firstNumber > firstNumber || registration.lastNumber < lastNumber;
  });
  await inChunks(
    homes.first.database,
    missing,
    (rows) => sql`
      INSERT INTO number_range (application_id, first_number, last_number, registered_at)
      SELECT value ->> 'id', value ->> 'firstNumber', value ->> 'lastNumber', unixepoch() * 1000
      FROM json_each(${rows}) WHERE true
      ON CONFLICT (application_id) DO UPDATE SET first_number = min(first_number, excluded.first_number),
        last_number = max(last_number, excluded.last_number)`,
  );
  return missing;
}
