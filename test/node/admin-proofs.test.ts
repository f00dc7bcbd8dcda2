import { describe, expect, it } from "vitest";
import * as z from "zod";
import { commandsIn, openedHomes, stateFolder } from "./support/script.ts";

const folder = stateFolder();

const KEY = "0ZcOCORZNYy-DWpqq30jZyJGHTN0d2HglBV3uiguA4I";
const TIME = "2099-01-31T18:00:00+01:00";

const { admin, json } = commandsIn(folder);

const created = z.object({ applicationId: z.string(), firstNumber: z.number() });
const create = async (...words: string[]) =>
  created.parse(await json("application", "create", "--name", "App", ...words));

/** Badges as the service stores them, one for each key; null: not bound. */
async function addBadges(
  { applicationId, firstNumber }: z.infer<typeof created>,
  keys: readonly (string | null)[],
): Promise<void> {
  const insert = `INSERT INTO badge (number, application_id, device, user_id, position, turn, issued_at, key_thumbprint)
    VALUES (?, ?, 'device', ?, ?, 1, 1000, ?)`;
  const { database } = await openedHomes(folder);
  await database.run((_, d1) =>
    d1.batch(
      keys.map((key, place) =>
        d1.prepare(insert).bind(firstNumber + place, applicationId, `user-${place}`, place + 1, key),
      ),
    ),
  );
}

describe("proofs in the administration script (contract section 15)", () => {
  it("are not required and bind nothing unless that is asked for; application show and list say so", async () => {
    const plain = await create();
    const without = await create("--no-require-proof", "--bind-until", "never");
    const strict = await create("--require-proof", "--bind-until", TIME);
    const bindUntil = "2099-01-31T17:00:00.000Z";
    expect(await json("application", "list")).toMatchObject([
      { applicationId: plain.applicationId, requireProof: false, bindUntil: null },
      { applicationId: without.applicationId, requireProof: false, bindUntil: null },
      { applicationId: strict.applicationId, requireProof: true, bindUntil },
    ]);
    const shown = await admin("application", "show", strict.applicationId);
    expect(shown.stdout).toMatch(/^ {2}Device calls need a proof +yes$/m);
    expect(shown.stdout).toContain(bindUntil);
    expect((await admin("application", "show", plain.applicationId)).stdout).toMatch(
      /^ {2}Device calls need a proof +no$/m,
    );
  });

  it("are turned on, off and on again by application update, which leaves the other alone", async () => {
    const { applicationId } = await create();
    const update = (...words: string[]) => json("application", "update", applicationId, ...words);
    expect(await update("--bind-until", TIME)).toMatchObject({ requireProof: false });
    expect(await update("--require-proof")).toMatchObject({ requireProof: true, bindUntil: expect.any(String) });
    expect(await update("--bind-until", "never")).toMatchObject({ requireProof: true, bindUntil: null });
    expect(await update("--no-require-proof")).toMatchObject({ requireProof: false, bindUntil: null });
    const wrong = await admin("application", "update", applicationId, "--bind-until", "tomorrow");
    expect(wrong.code).not.toBe(0);
    expect(wrong.stderr).toContain("Give a date-time with a zone");
  });

  it("explain what requiring them does to badges that are not bound: how many, what happens, how to bind them", async () => {
    const application = await create();
    const { applicationId } = application;
    await addBadges(application, [null, KEY, null]);
    const strict = await admin("application", "update", applicationId, "--require-proof");
    expect(strict.stdout).toContain("2 badges are not bound to a key.");
    expect(strict.stdout).toContain("401 INVALID_PROOF");
    expect(strict.stdout).toContain(`application update ${applicationId} --bind-until TIME`);
    expect(strict.stdout).toContain("badge rebind NUMBER");
    expect(await json("application", "update", applicationId, "--require-proof")).toMatchObject({ unboundBadges: 2 });
    const migrating = await admin("application", "update", applicationId, "--require-proof", "--bind-until", TIME);
    expect(migrating.stdout).toContain("--bind-until allows that until 2099-01-31T17:00:00.000Z");
    const bound = await create();
    await addBadges(bound, [KEY]);
    const done = await admin("application", "update", bound.applicationId, "--require-proof");
    expect(done.stdout).toContain("Every badge of the application is bound to a key.");
  });

  it("bind a badge to a key, which badge show tells, and until when another may take its place", async () => {
    const application = await create();
    await addBadges(application, [KEY, null]);
    const [bound, unbound] = [application.firstNumber, application.firstNumber + 1];
    expect(await json("badge", "show", String(bound))).toMatchObject({ keyThumbprint: KEY, rebindUntil: null });
    expect(await json("badge", "show", String(unbound))).toMatchObject({ keyThumbprint: null });
    const { database } = await openedHomes(folder);
    const open = "UPDATE badge SET rebind_until = ? WHERE number = ?";
    await database.run((_, d1) => d1.prepare(open).bind(Date.parse(TIME), bound).run());
    expect(await json("badge", "show", String(bound))).toMatchObject({ rebindUntil: "2099-01-31T17:00:00.000Z" });
    expect((await admin("badge", "show", String(bound))).stdout).toMatch(/^ {2}May be rebound until +2099/m);
  });
});

describe("new badges an hour in the administration script (contract section 7)", () => {
  it("have no limit unless one is given; update changes it and takes it away", async () => {
    const plain = await create();
    const limited = await create("--new-badges-per-hour", "250");
    const shown = async (id: string) => z.looseObject({}).parse(await json("application", "show", id));
    expect(await shown(plain.applicationId)).toMatchObject({ newBadgesPerHour: null });
    expect(await shown(limited.applicationId)).toMatchObject({ newBadgesPerHour: 250 });
    expect((await admin("application", "show", limited.applicationId)).stdout).toMatch(
      /^ {2}New badges an hour +at most 250$/m,
    );
    const update = (...words: string[]) => json("application", "update", limited.applicationId, ...words);
    expect(await update("--new-badges-per-hour", "7")).toMatchObject({ newBadgesPerHour: 7 });
    expect(await update("--name", "App")).toMatchObject({ newBadgesPerHour: 7 });
    expect(await update("--no-new-badges-per-hour")).toMatchObject({ newBadgesPerHour: null });
    for (const wrong of ["0", "-1", "1.5", "many"]) {
      const refused = await admin("application", "create", "--name", "A", "--new-badges-per-hour", wrong);
      expect([refused.code, refused.stdout]).toEqual([1, ""]);
      expect(refused.stderr).toContain("Give a whole number from 1");
    }
  });
});
