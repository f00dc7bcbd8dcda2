import { eq } from "drizzle-orm";
import { describe, expect, it } from "vitest";
import { createApplication } from "../../src/admin/application/create.ts";
import { UserError } from "../../src/admin/command-line/errors.ts";
import type { Session } from "../../src/admin/command-line/session.ts";
import { administrator } from "../../src/admin/history/note.ts";
import { carryOut } from "../../src/admin/inbox/carry-out.ts";
import type { Database } from "../../src/admin/platform/database.ts";
import { Homes } from "../../src/admin/platform/homes.ts";
import type { ApplicationId } from "../../src/shared/identifiers.ts";
import { inbox } from "../../src/shared/schema.ts";
import { localHomes } from "./support/script.ts";

const { homes, database } = await localHomes();

const AWAY = new UserError("The database is busy: try again in a moment.");

/** A database of which only these steps work, counted from 0. */
function working(isWorking: (step: number) => boolean): Database {
  let steps = 0;
  const run: Database["run"] = async (step) => {
    if (!isWorking(steps++)) throw AWAY;
    return database.run(step);
  };
  return new Proxy(database, { get: (target, name) => (name === "run" ? run : Reflect.get(target, name)) });
}

const homesOf = (one: Database) => new Homes([{ number: 1, place: null, database: one }]);

/** @param reopened the database when it is opened once more */
const sessionOf = (one: Database, reopened: Database): Session => ({
  homes: homesOf(one),
  output: { result() {}, note() {} },
  place: { environment: "production" },
  actor: administrator("ann"),
  reopen: async () => ({
    ...{ homes: homesOf(reopened), database: reopened, place: { environment: "production" } },
    async close() {},
  }),
});

let first = 1;
async function create(): Promise<ApplicationId> {
  const range = { first, last: first + 9 };
  first += 10;
  return (await createApplication(homes, { name: "App", range })).applicationId;
}

describe("a command that the service carries out, when D1 goes away meanwhile (contract section 21)", () => {
  const suspend = { kind: "suspend", number: 1 } as const;
  const waiting = () => database.run((orm) => orm.select().from(inbox));

  it("is withdrawn, so that what was reported as failed does not happen later", async () => {
    const asked = carryOut(
      sessionOf(
        working((step) => step === 0),
        database,
      ),
      await create(),
      suspend,
    );
    await expect(asked).rejects.toBe(AWAY);
    expect(await waiting()).toEqual([]);
  });

  it("says that it may still be carried out if it cannot be withdrawn", async () => {
    const one = working((step) => step === 0);
    const asked = carryOut(sessionOf(one, one), await create(), suspend);
    await expect(asked).rejects.toThrow(
      `${AWAY.message} The command waits for the service, which may still carry it out.`,
    );
    expect(await waiting()).toHaveLength(1);
    await database.run((orm) => orm.delete(inbox));
  });

  it("has its result if it was carried out by then", async () => {
    const result = { kind: "user", userId: "ada", numbers: [7] } as const;
    const one = working((step) => step < 2);
    const applicationId = await create();
    const asked = carryOut(sessionOf(one, database), applicationId, { kind: "block", userId: "ada" });
    for (let isStored = false; !isStored; ) {
      const set = { result: JSON.stringify(result) };
      const { meta } = await database.run((orm) =>
        orm.update(inbox).set(set).where(eq(inbox.applicationId, applicationId)),
      );
      isStored = meta.changes > 0;
    }
    expect(await asked).toEqual(result);
  });
});
