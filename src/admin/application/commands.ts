import type { Command } from "commander";
import { and, count, eq, exists, isNotNull, isNull } from "drizzle-orm";
import type { ApplicationId } from "../../shared/identifiers.ts";
import { application, webhookEvent } from "../../shared/schema.ts";
import { shorten, tableLines } from "../command-line/output.ts";
import { inSession, type Session } from "../command-line/session.ts";
import { examples } from "../command-line/shell.ts";
import { administrator } from "../history/administrator.ts";
import { insertNote, newNote } from "../history/note.ts";
import { listSigningKeys, signingKeyTable } from "../key/commands.ts";
import type { Database } from "../platform/database.ts";
import type { Homes } from "../platform/homes.ts";
import { listSecrets, secretTable } from "../secret/list.ts";
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
  addList(group);
  addShow(group);
  addUpdateCommand(group);
  addSwitch(
    group,
    "disable",
    true,
    "refuse an application's requests",
    "Refuses all requests of an application within half a minute. Its badges and numbers are kept.",
  );
  addSwitch(
    group,
    "enable",
    false,
    "accept its requests again",
    "Accepts the requests of a disabled application again.",
  );
}

function addList(group: Command): void {
  group
    .command("list")
    .summary("list all applications")
    .description(
      "Lists the applications of all homes in the order of their badge numbers. EVENTS: how many kinds of events each subscribes to; " +
        "--json names them, as application show does.",
    )
    .addHelpText("after", examples("application list", "application list --env production --json"))
    .action(
      inSession(async ({ homes, output }) => {
        const applications = await listApplications(homes);
        output.result(applications, () => applicationTable(applications));
      }),
    );
}

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

function addShow(group: Command): void {
  group
    .command("show")
    .argument("<id>", "the application's ID", applicationIdArgument)
    .summary("show one application")
    .description("Shows an application, its secrets (not their values) and its signing keys.")
    .addHelpText("after", examples("application show app_…"))
    .action(
      inSession(async ({ homes, output }, id: ApplicationId) => {
        const database = homes.of(id);
        const application = shownApplication(await findApplication(database, id));
        const [heldEvents, secrets, signingKeys] = await Promise.all([
          countHeldEvents(database, id),
          listSecrets(database, id),
          listSigningKeys(database, id),
        ]);
        output.result({ ...application, heldEvents, secrets, signingKeys }, () =>
          [applicationText(application), secretTable(secrets), signingKeyTable(signingKeys)].join("\n\n"),
        );
      }),
    );
}

/** Events of an application that are on hold because its endpoint failed. */
async function countHeldEvents(database: Database, id: ApplicationId): Promise<number> {
  const [row] = await database.run((orm) =>
    orm
      .select({ held: count() })
      .from(webhookEvent)
      .where(and(eq(webhookEvent.applicationId, id), eq(webhookEvent.state, "held"))),
  );
  return row?.held ?? 0;
}

/** Adds `application disable` or `application enable`. */
function addSwitch(group: Command, name: string, disabled: boolean, summary: string, description: string): void {
  group
    .command(name)
    .argument("<id>", "the application's ID", applicationIdArgument)
    .summary(summary)
    .description(description)
    .addHelpText("after", examples(`application ${name} app_…`))
    .action(inSession((session, id: ApplicationId) => printDisabled(session, id, disabled)));
}

async function printDisabled({ homes, output, actor }: Session, id: ApplicationId, disabled: boolean): Promise<void> {
  const application = await setDisabled(homes.of(id), id, disabled, actor);
  output.result(application, () => `Application ${id} is ${shownState(application)}.`);
}

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
