import { and, desc, gte, lte } from "drizzle-orm";
import { databaseBindingOf, homeOf } from "../../shared/homes.ts";
import { application, numberRange } from "../../shared/schema.ts";
import { UserError } from "../command-line/errors.ts";
import type { Database } from "../platform/database.ts";
import type { Homes } from "../platform/homes.ts";
import type { OwnedRange } from "./range.ts";

const RANGE = { id: application.id, firstNumber: application.firstNumber, lastNumber: application.lastNumber };

/** The application whose range has a number. */
export async function ownerOfNumber(database: Database, number: number): Promise<OwnedRange | undefined> {
  const hasNumber = and(lte(application.firstNumber, number), gte(application.lastNumber, number));
  const [owner] = await database.run((orm) =>
    orm.select(RANGE).from(application).where(hasNumber).orderBy(desc(application.firstNumber)).limit(1),
  );
  return owner;
}

/** The database of the home with the application that has a number; home 1's when none has it. */
export const databaseOfNumber = (homes: Homes, number: number): Promise<Database> =>
  homes.find(async (database) => (await ownerOfNumber(database, number)) !== undefined);

/** The ranges of all applications in all homes. */
export async function listOwnedRanges(homes: Homes): Promise<OwnedRange[]> {
  const found = await homes.map(({ database }) => database.run((orm) => orm.select(RANGE).from(application)));
  return found.flat();
}

/** D1's copy of the register. */
export const listRegistrations = (homes: Homes) =>
  homes.first.database.run((orm) => orm.select().from(numberRange).orderBy(numberRange.firstNumber));

/**
 * Checks that every home with registered numbers is bound: another computer's wrangler.toml may be older than a home.
 *
 * @param consequence the beginning of the error's message
 * @throws UserError when one is not bound
 */
export async function assertHomesBound(homes: Homes, consequence: string): Promise<void> {
  const bound = homes.all.map(({ number }) => number);
  const registered = (await listRegistrations(homes)).map(({ applicationId: id }) => homeOf(id));
  const unbound = registered.find((number) => !bound.includes(number));
  if (unbound === undefined) return;
  throw new UserError(
    `${consequence}: home ${unbound} has applications, but this wrangler.toml does not bind ${databaseBindingOf(unbound)}. Bind it first.`,
  );
}
