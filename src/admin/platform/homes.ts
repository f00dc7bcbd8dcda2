import { databaseBindingOf, homeOf } from "../../shared/homes.ts";
import type { ApplicationId } from "../../shared/identifiers.ts";
import { describeError, UserError } from "../command-line/errors.ts";
import { ADMIN } from "../command-line/shell.ts";
import type { Database } from "./database.ts";

/** One D1 database with the applications in it. */
export interface Home {
  number: number;
  database: Database;
  /** `location=weur` or `jurisdiction=eu`; null when wrangler.toml has none. */
  place: string | null;
}

/** The homes of an environment. */
export class Homes {
  /** In ascending order; the first is home 1. */
  readonly all: readonly Home[];
  /** Home 1, which has the register of number ranges. */
  readonly first: Home;
  readonly others: readonly Home[];

  constructor([first, ...others]: readonly [Home, ...Home[]]) {
    this.all = [first, ...others];
    this.first = first;
    this.others = others;
  }

  /** The database of an application. @throws UserError when its home is not bound */
  databaseFor(applicationId: ApplicationId): Database {
    return this.get(homeOf(applicationId)).database;
  }

  /** @throws UserError when it is not bound */
  get(number: number): Home {
    const home = this.all.find((each) => each.number === number);
    if (home !== undefined) return home;
    throw new UserError(
      `There is no home ${number}: wrangler.toml binds no ${databaseBindingOf(number)} here. See ${ADMIN} home list, and ${ADMIN} init --help for a new home.`,
    );
  }

  /**
   * Runs `ask` for all homes at once, or for some of them.
   *
   * @returns the results in the order of the homes
   * @throws UserError that names a home that fails
   */
  map<T>(ask: (home: Home) => Promise<T>, homes = this.all): Promise<T[]> {
    return Promise.all(
      homes.map(async (home) => {
        try {
          return await ask(home);
        } catch (error) {
          if (this.others.length === 0) throw error;
          throw new UserError(`Home ${home.number}: ${describeError(error)}`, { cause: error });
        }
      }),
    );
  }

  /**
   * The database of the home for which `has` is true; home 1's if there is none, where the command then finds nothing. With
   * one home, `has` is not called.
   */
  async find(has: (database: Database) => Promise<boolean>): Promise<Database> {
    if (this.others.length === 0) return this.first.database;
    const found = await this.map(({ database }) => has(database));
    return (this.all[found.indexOf(true)] ?? this.first).database;
  }
}
