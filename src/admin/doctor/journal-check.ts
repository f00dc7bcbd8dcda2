import { setTimeout as wait } from "node:timers/promises";
import * as z from "zod";
import { newRandomId } from "../../shared/identifiers.ts";
import { inboxResult } from "../../shared/inbox.ts";
import { JOURNAL_BYTES } from "../../shared/limits.ts";
import { counted, shownTime } from "../command-line/output.ts";
import { type Session, shownCommand } from "../command-line/session.ts";
import { commandJson } from "../inbox/carry-out.ts";
import type { Home } from "../platform/homes.ts";
import { broken, fine, look } from "./checks.ts";

/** Applications of a home that are asked: those with the most entries. */
const ASKED_APPLICATIONS = 100;
/** The platform's API takes 1,200 calls in five minutes. */
const POLL_MILLISECONDS = 1000;
const LIMIT_MILLISECONDS = 30_000;
/** A journal this full is about to forget entries that are younger than 31 days. */
const FULL_BYTES = 0.9 * JOURNAL_BYTES;

const ASK = `
  INSERT INTO inbox (id, application_id, command, created_at)
  SELECT ?1 || application.id, application.id, ?2, CAST(unixepoch('subsec') * 1000 AS INTEGER)
  FROM application JOIN position ON position.application_id = application.id
  WHERE disabled_at IS NULL ORDER BY sequence DESC LIMIT ?3`;
const READ = "SELECT application_id AS id, result FROM inbox WHERE id > ?1 AND id < ?1 || '~'";
const WITHDRAW = "DELETE FROM inbox WHERE id > ?1 AND id < ?1 || '~'";

const jsonResult = z
  .string()
  .transform((json): unknown => JSON.parse(json))
  .pipe(inboxResult);
const rows = z.array(z.object({ id: z.string(), result: jsonResult.nullable() }));

/** Has the objects compare themselves with D1, as `reconcile` does, and tell how far back their journals reach. */
export async function checkJournals(session: Session) {
  const asked = (await session.homes.everywhere((home) => askObjects(session, home))).flat();
  const missing = asked.find(({ result }) => result?.kind === "gap");
  if (missing !== undefined) {
    return broken(
      `D1 lacks more than the journal of ${missing.id} has`,
      `Restore D1 to a later state, or give up what is missing: ${shownCommand(session, `reconcile ${missing.id} --accept-loss`)}.`,
    );
  }
  const level = asked.flatMap(({ id, result }) => (result?.kind === "level" ? [{ id, ...result }] : []));
  if (level.length < asked.length) {
    return look(
      `${asked.length - level.length} of ${counted(asked.length, "application")} did not respond within 30 seconds`,
      "See the log: catching-up is waited for; object-left-to-next-tick says what failed.",
    );
  }
  const full = level.find(({ journalBytes }) => journalBytes > FULL_BYTES);
  if (full !== undefined) {
    return look(
      `that of ${full.id} is full: it reaches back to ${shownTime(full.journalSince)}`,
      "Restore D1 to no earlier moment: what it lacks from before that does not come back.",
    );
  }
  const since = level.flatMap(({ journalSince }) => journalSince ?? []);
  if (since.length === 0) return fine("no application has an entry yet");
  return fine(
    `the youngest reaches back to ${shownTime(Math.max(...since))}, the oldest to ${shownTime(Math.min(...since))}`,
  );
}

/** One statement asks every object of a home, each second one reads the results, and one withdraws what is left. */
async function askObjects({ actor }: Session, { database }: Home): Promise<z.output<typeof rows>> {
  const prefix = `doctor ${newRandomId()} `;
  const run = (sql: string, ...parameters: (string | number)[]) =>
    database.run(async (_, d1) => {
      const { results } = await d1
        .prepare(sql)
        .bind(prefix, ...parameters)
        .all();
      return rows.parse(results);
    });
  await run(ASK, commandJson({ kind: "reconcile", acceptLoss: false, skip: 0 }, actor), ASKED_APPLICATIONS);
  const end = performance.now() + LIMIT_MILLISECONDS;
  try {
    for (;;) {
      const asked = await run(READ);
      if (asked.every(({ result }) => result !== null) || performance.now() > end) return asked;
      await wait(POLL_MILLISECONDS);
    }
  } finally {
    await run(WITHDRAW);
  }
}
