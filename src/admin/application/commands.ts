import type { Command } from "commander";
import { and, eq, exists, isNotNull, isNull, sql } from "drizzle-orm";
import type { ApplicationId } from "../../shared/identifiers.ts";
import { application } from "../../shared/schema.ts";
import { shorten, tableLines } from "../command-line/output.ts";
import { printing, type Session } from "../command-line/session.ts";
import { examples } from "../command-line/shell.ts";
import { administrator, insertNote, newNote } from "../history/note.ts";
import { listSigningKeys, signingKeyTable } from "../key/commands.ts";
import type { Database } from "../platform/database.ts";
import type { Homes } from "../platform/homes.ts";
import { secretTable } from "../secret/commands.ts";
import { listSecrets } from "../secret/secrets.ts";
import { idsOfEvents } from "../webhook/event.ts";
import { addCreateCommand } from "./create.ts";
import {
  applicationIdArgument,
  applicationText,
  findApplication,
  type ShownApplication,
  selectApplication,
  shownApplication,
  shownState,
  unknownApplication,
} from "./record.ts";
import { addUpdateCommand } from "./update.ts";

/** Adds `application …`. */
export function addApplicationCommands(program: Command): void {
  const group = program
    .command("application")
    .summary("create, show and change applications")
    .description("Creates, shows and changes applications.");
  addCreateCommand(group);
  group
    .command("list")
    .summary("list all applications")
    .description(
      "Lists the applications of all homes in the order of their badge numbers. EVENTS: how many kinds of events each subscribes to; " +
        "--json names them, as application show does.",
    )
    .addHelpText("after", examples("application list", "application list --env production --json"))
    .action(printing(({ homes }) => listApplications(homes), applicationTable));
  group
    .command("show")
    .argument("<id>", "the application's ID", applicationIdArgument)
    .summary("show one application")
    .description("Shows an application, its secrets (not their values) and its signing keys.")
    .addHelpText("after", examples("application show app_…"))
    .action(printing(showApplication, shownText));
  addUpdateCommand(group);
  for (const { name, isDisabled, summary, description } of SWITCHES) {
    group
      .command(name)
      .argument("<id>", "the application's ID", applicationIdArgument)
      .summary(summary)
      .description(description)
      .addHelpText("after", examples(`application ${name} app_…`))
      .action(
        printing(
          ({ homes, actor }, id: ApplicationId) => setDisabled(homes.of(id), id, isDisabled, actor),
          (application) => `Application ${application.applicationId} is ${shownState(application)}.`,
        ),
      );
  }
}

const SWITCHES = [
  {
    name: "disable",
    isDisabled: true,
    summary: "refuse an application's requests",
    description: "Refuses all requests of an application within half a minute. Its badges and numbers are kept.",
  },
  {
    name: "enable",
    isDisabled: false,
    summary: "accept its requests again",
    description: "Accepts the requests of a disabled application again.",
  },
] as const;

/** The applications of all homes, in the order of their numbers. */
export async function listApplications(homes: Homes): Promise<ShownApplication[]> {
  const rows = await homes.everywhere(({ database }) => database.run((orm) => orm.select().from(application)));
  return rows
    .flat()
    .toSorted((one, other) => one.firstNumber - other.firstNumber)
    .map(shownApplication);
}

function applicationTable(applications: readonly ShownApplication[]): string {
  const rows = applications.map((each) => [
    each.applicationId,
    `${each.firstNumber}-${each.lastNumber}`,
    shownState(each),
    each.events.length,
    shorten(each.name, 13),
  ]);
  return tableLines(["APPLICATION ID", "NUMBERS", "STATE", "EVENTS", "NAME"], rows, "There are no applications yet.");
}

async function showApplication({ homes }: Session, id: ApplicationId) {
  const database = homes.of(id);
  const application = shownApplication(await findApplication(database, id));
  const [heldEvents, secrets, signingKeys] = await Promise.all([
    database.run((orm) => orm.$count(sql`(${idsOfEvents(id, "held")})`)),
    listSecrets(database, id),
    listSigningKeys(database, id),
  ]);
  return { ...application, heldEvents, secrets, signingKeys };
}

const shownText = (shown: Awaited<ReturnType<typeof showApplication>>): string =>
  [applicationText(shown), secretTable(shown.secrets), signingKeyTable(shown.signingKeys)].join("\n\n");

/** Makes the service refuse an application's requests, or accept them again. Repeating it changes nothing. */
export async function setDisabled(
  database: Database,
  id: ApplicationId,
  disabled: boolean,
  actor = administrator(),
): Promise<ShownApplication> {
  const isOtherwise = and(
    eq(application.id, id),
    disabled ? isNull(application.disabledAt) : isNotNull(application.disabledAt),
  );
  const action = disabled ? "application:disabled" : "application:enabled";
  const note = await newNote(database, id, actor, { action });
  const [, , [row]] = await database.run((orm) =>
    orm.batch([
      insertNote(orm, note, exists(orm.select().from(application).where(isOtherwise))),
      orm
        .update(application)
        .set({ disabledAt: disabled ? Date.now() : null })
        .where(isOtherwise),
      selectApplication(orm, id),
    ]),
  );
  if (row === undefined) throw unknownApplication(id);
  return shownApplication(row);
}
