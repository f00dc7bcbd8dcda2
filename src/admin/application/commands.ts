import { and, eq, exists, isNotNull, isNull, sql } from "drizzle-orm";
import type { ApplicationId } from "../../shared/identifiers.ts";
import { application } from "../../shared/schema.ts";
import { command, group } from "../command-line/command.ts";
import { shorten, tableLines } from "../command-line/output.ts";
import { administrator, insertHistoryRow, newHistoryRow } from "../history/note.ts";
import { listSigningKeys, signingKeyTable } from "../key/commands.ts";
import type { Database } from "../platform/database.ts";
import type { Homes } from "../platform/homes.ts";
import { secretTable } from "../secret/commands.ts";
import { listSecrets } from "../secret/secrets.ts";
import { stoppedEventIds } from "../webhook/event.ts";
import { createCommand } from "./create.ts";
import {
  APPLICATION,
  applicationText,
  findApplication,
  formatState,
  type ShownApplication,
  selectApplication,
  toApplicationView,
  unknownApplication,
} from "./record.ts";
import { updateCommand } from "./update.ts";

const switchCommand = (name: "disable" | "enable", summary: string, description: string) =>
  command(name, {
    arguments: [APPLICATION],
    summary,
    description,
    work: ({ homes, actor }, id) => setDisabled(homes.databaseFor(id), id, name === "disable", actor),
    text: (switched) => `Application ${switched.applicationId} is ${formatState(switched)}.`,
  });

export const applicationCommands = group("application", {
  summary: "create, show and change applications",
  description: "Creates, shows and changes applications.",
  commands: [
    createCommand,
    command("list", {
      summary: "list all applications",
      description:
        "Lists the applications of all homes in the order of their badge numbers. EVENTS is how many events each subscribes to; " +
        "--json and application show name them.",
      examples: ["", "--env production --json"],
      work: ({ homes }) => listApplications(homes),
      text: applicationTable,
    }),
    command("show", {
      arguments: [APPLICATION],
      summary: "show one application",
      description:
        "Shows an application, its signing keys, and the secrets of its server and people, without their values.",
      async work({ homes }, id) {
        const database = homes.databaseFor(id);
        const shown = toApplicationView(await findApplication(database, id));
        const [heldEvents, secrets, signingKeys] = await Promise.all([
          database.run((orm) => orm.$count(sql`(${stoppedEventIds(id, "held")})`)),
          listSecrets(database, id),
          listSigningKeys(database, id),
        ]);
        return { ...shown, heldEvents, secrets, signingKeys };
      },
      text: (shown) =>
        [applicationText(shown), secretTable(shown.secrets), signingKeyTable(shown.signingKeys)].join("\n\n"),
    }),
    updateCommand,
    switchCommand(
      "disable",
      "refuse an application's requests",
      "Refuses the calls of an application's phones, servers, people and doors within half a minute, and holds back " +
        "its webhook events. Its badges and numbers are kept. Doors still get its key set and status lists, so they " +
        "open for signatures that phones already have. Suspend or revoke badges to prevent that.",
    ),
    switchCommand(
      "enable",
      "accept an application's requests again",
      "Accepts the requests of a disabled application again.",
    ),
  ],
});

/** The applications of all homes, in the order of their numbers. */
export async function listApplications(homes: Homes): Promise<ShownApplication[]> {
  const rows = await homes.map(({ database }) => database.run((orm) => orm.select().from(application)));
  return rows
    .flat()
    .toSorted((one, other) => one.firstNumber - other.firstNumber)
    .map(toApplicationView);
}

function applicationTable(applications: readonly ShownApplication[]): string {
  const rows = applications.map((each) => [
    each.applicationId,
    `${each.firstNumber}-${each.lastNumber}`,
    formatState(each),
    each.events.length,
    shorten(each.name, 13),
  ]);
  return tableLines(["APPLICATION ID", "NUMBERS", "STATE", "EVENTS", "NAME"], rows, "There are no applications yet.");
}

/** Disables or enables an application. Idempotent. */
export async function setDisabled(
  database: Database,
  id: ApplicationId,
  disabled: boolean,
  actor = administrator(),
): Promise<ShownApplication> {
  const needsChange = and(
    eq(application.id, id),
    disabled ? isNull(application.disabledAt) : isNotNull(application.disabledAt),
  );
  const action = disabled ? "application:disabled" : "application:enabled";
  const historyRow = await newHistoryRow(database, id, actor, { action });
  const [, , [row]] = await database.run((orm) =>
    orm.batch([
      insertHistoryRow(orm, historyRow, exists(orm.select().from(application).where(needsChange))),
      orm
        .update(application)
        .set({ disabledAt: disabled ? Date.now() : null })
        .where(needsChange),
      selectApplication(orm, id),
    ]),
  );
  if (row === undefined) throw unknownApplication(id);
  return toApplicationView(row);
}
