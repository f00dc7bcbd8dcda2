import { eq } from "drizzle-orm";
import { expectKind } from "../../shared/expect-kind.ts";
import type { ApplicationId } from "../../shared/identifiers.ts";
import { UNUSED_REGISTRATION_HOURS } from "../../shared/limits/platform-limits.ts";
import { application } from "../../shared/schema.ts";
import type { Registration } from "../../shared/script-commands.ts";
import { HOUR_MILLISECONDS } from "../../shared/time.ts";
import { UserError } from "../command-line/errors.ts";
import { ADMIN } from "../command-line/shell.ts";
import { listRegistrations } from "../number-range/owners.ts";
import { formatRange, rangeOf } from "../number-range/range.ts";
import type { Homes } from "../platform/homes.ts";
import type { HomeSubmitter } from "../script-command/submit.ts";

/**
 * Clears the registration of an application that does not exist, which frees its numbers.
 *
 * @param warn gets a warning for the administrator
 * @throws UserError when the application exists, or has no registration, or one that is less than a day old
 */
export async function releaseNumbers(
  homes: Homes,
  submit: HomeSubmitter,
  id: ApplicationId,
  warn: (line: string) => void,
): Promise<Registration> {
  const existing = await homes.databaseFor(id).run((orm) => orm.$count(application, eq(application.id, id)));
  if (existing > 0) throw new UserError(`Application ${id} exists, so its numbers stay registered.`);
  const registration = (await listRegistrations(homes)).find(({ applicationId }) => applicationId === id);
  if (!registration) throw new UserError(`No numbers are registered for ${id}: see ${ADMIN} home check.`);
  const recent = new UserError(
    `The numbers of ${id} were registered less than ${UNUSED_REGISTRATION_HOURS} hours ago: its creation may still be running.`,
  );
  const usedUntil = registration.registeredAt + UNUSED_REGISTRATION_HOURS * HOUR_MILLISECONDS;
  if ((await homes.first.database.readClock()) < usedUntil) throw recent;
  warn(
    `Warning: phones and doors may still hold numbers ${formatRange(rangeOf(registration))}, and another application can get them now.`,
  );
  const outcome = expectKind(await submit({ kind: "release", applicationId: id }), "released", "kept");
  if (outcome.kind === "released") return registration;
  throw recent;
}
