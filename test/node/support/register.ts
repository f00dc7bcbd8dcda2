import { DatabaseSync } from "node:sqlite";
import { and, asc, eq, isNull } from "drizzle-orm";
import type { Homes } from "../../../src/admin/platform/homes.ts";
import type { Wake } from "../../../src/admin/platform/wake.ts";
import { numberRange, scriptCommand } from "../../../src/shared/schema.ts";
import { HOME_RECIPIENT, homeRequest } from "../../../src/shared/script-commands.ts";
import { NumberRegister, type RegisterCopy } from "../../../src/worker/scheduling/number-register.ts";

/** Home 1's scheduler as far as it keeps the register, in this process: the Worker's own decisions on a SQLite in memory. */
export class RegisterInProcess {
  readonly #homes: Homes;
  readonly #sql = new DatabaseSync(":memory:");
  readonly #register: NumberRegister;
  /** By which registrations are dated, in milliseconds. */
  now: () => number = Date.now;
  #last: Promise<unknown> = Promise.resolve();

  constructor(homes: Homes) {
    this.#homes = homes;
    const exec = (query: string, ...values: (string | number)[]) => {
      const rows = this.#sql.prepare(query).all(...values);
      return { toArray: () => rows };
    };
    this.#register = new NumberRegister({ exec }, () => this.now());
  }

  /** Carries out the script's commands for home 1's scheduler, as the object does when it is woken. */
  readonly wake: Wake = () => {
    // One work begins when the one before has ended, as in the object.
    const done = this.#last.then(() => this.#carryOut());
    this.#last = done.catch(() => {});
    return done;
  };

  async #carryOut(): Promise<void> {
    const { database } = this.#homes.first;
    const isOpen = and(eq(scriptCommand.recipient, HOME_RECIPIENT), isNull(scriptCommand.result));
    const rows = await database.run((orm) =>
      orm.select().from(scriptCommand).where(isOpen).orderBy(asc(scriptCommand.createdAt)),
    );
    if (rows.length > 0) await this.#register.compare(this.#copy);
    for (const { id, command } of rows) {
      const result = await this.#register.execute(this.#copy, homeRequest.parse(JSON.parse(command)).command);
      const set = { result: JSON.stringify(result) };
      await database.run((orm) => orm.update(scriptCommand).set(set).where(eq(scriptCommand.id, id)));
    }
  }

  /** Forgets everything, as when the object loses its storage. */
  lose(): void {
    for (const table of ["registration", "register_copied"]) this.#sql.exec(`DELETE FROM ${table}`);
  }

  get #copy(): RegisterCopy {
    const { database } = this.#homes.first;
    return {
      list: () => database.run((orm) => orm.select().from(numberRange)),
      async put(registrations) {
        for (const row of registrations) {
          const conflict = { target: numberRange.applicationId, set: row };
          await database.run((orm) => orm.insert(numberRange).values(row).onConflictDoUpdate(conflict));
        }
      },
      async delete(id) {
        await database.run((orm) => orm.delete(numberRange).where(eq(numberRange.applicationId, id)));
      },
    };
  }
}
