import { eq } from "drizzle-orm";
import { expectKind } from "../../shared/expect-kind.ts";
import { homeOf } from "../../shared/homes.ts";
import type { ApplicationId } from "../../shared/identifiers.ts";
import { MAX_DEFAULT_NUMBER } from "../../shared/limits/request-limits.ts";
import { application } from "../../shared/schema.ts";
import type { Registration } from "../../shared/script-commands.ts";
import { UserError } from "../command-line/errors.ts";
import { ADMIN } from "../command-line/shell.ts";
import type { Homes } from "../platform/homes.ts";
import type { HomeSubmitter } from "../script-command/submit.ts";
import { formatRange, overlapLine, rangeOf } from "./range.ts";
import type { WantedNumbers } from "./range-options.ts";

/**
 * Makes home 1's scheduler register numbers for an application, which gets them only afterwards.
 *
 * @throws UserError when the numbers are not free
 */
export async function registerNumbers(
  homes: Homes,
  submit: HomeSubmitter,
  applicationId: ApplicationId,
  { range }: WantedNumbers,
): Promise<Registration> {
  const command = { kind: "register", applicationId, range: range ?? null } as const;
  const outcome = expectKind(await submit(command), "registered", "taken");
  if (outcome.kind === "registered") return outcome.registration;
  const { owner } = outcome;
  if (owner !== null && range !== undefined) throw await explainTaken(homes, formatRange(range), owner);
  throw new UserError(
    `No block of numbers up to ${MAX_DEFAULT_NUMBER} is free: choose a range with --first and --last.`,
  );
}

async function explainTaken(homes: Homes, wanted: string, registration: Registration): Promise<UserError> {
  const { applicationId: id, ...numbers } = registration;
  const overlap = `Numbers ${wanted} overlap those registered for ${id} (${formatRange(rangeOf(numbers))})`;
  const home = homes.all.find(({ number }) => number === homeOf(id));
  if (home === undefined) return new UserError(`${overlap}, whose home wrangler.toml does not bind: choose others.`);
  const existing = await home.database.run((orm) => orm.$count(application, eq(application.id, id)));
  if (existing > 0) return new UserError(overlapLine(wanted, { id, ...numbers }));
  return new UserError(
    `${overlap}, which does not exist in its home: its creation did not finish, or its home was restored. Choose others, or see ${ADMIN} home check.`,
  );
}
