import type { Command } from "commander";
import { and, between, count, desc, eq, isNotNull, type SQL, sql } from "drizzle-orm";
import { METADATA_FIELDS, type MetadataField } from "../shared/metadata-fields.ts";
import { badge, invitation } from "../shared/schema.ts";
import { findApplication } from "./application-record.ts";
import { barLines, bold } from "./output.ts";
import type { Database, Orm } from "./platform/database.ts";
import { inSession } from "./session.ts";
import { examples } from "./shell.ts";

/** Adds `stats`. */
export function addStatsCommand(program: Command): void {
  program
    .command("stats <id>")
    .summary("count an application's badges and invitations")
    .description(
      "Counts the badges of an application by device model, operating system, its version and the SDK's version, its " +
        "invitations by state, and its numbers.",
    )
    .addHelpText("after", examples("stats app_…", "stats app_… --json"))
    .action(
      inSession(async ({ database, output }, id: string) => {
        const statistics = await readStatistics(database, id);
        output.result(statistics, () => statisticsText(statistics));
      }),
    );
}

/** Rarer values are counted together: devices choose them, so there may be any number. */
const VALUES_SHOWN = 15;

export interface ValueCount {
  /** Null: the device did not send it. */
  value: string | null;
  badges: number;
}

export interface Statistics {
  applicationId: string;
  name: string;
  /**
   * `resting`: numbers of ended invitations that are not released or within the reuse delay. `used`: all numbers that
   * cannot be handed out now. `usedPercent` is rounded down to a tenth, so it is 100 only when nothing is left.
   */
  numbers: {
    size: number;
    issued: number;
    reserved: number;
    retired: number;
    resting: number;
    left: number;
    used: number;
    usedPercent: number;
  };
  badges: Record<MetadataField, { values: ValueCount[]; others: number }>;
  invitations: Record<"pending" | "claimed" | "revoked" | "expired", number>;
}

/** Counts the badges and invitations of an application. */
export async function readStatistics(database: Database, applicationId: string): Promise<Statistics> {
  const { name, firstNumber, lastNumber, reuseAfterSeconds } = await findApplication(database, applicationId);
  // By number, the table's primary key, so no other index is needed.
  const inRange = between(badge.number, firstNumber, lastNumber);
  const [numbers, invitations, deviceModel, os, osVersion, sdkVersion] = await database.run((orm) =>
    orm.batch([
      countNumbers(orm, inRange),
      orm
        .select({ state: invitation.state, invitations: count(), resting: countResting(reuseAfterSeconds) })
        .from(invitation)
        .where(eq(invitation.applicationId, applicationId))
        .groupBy(invitation.state),
      countField(orm, inRange, "deviceModel"),
      countField(orm, inRange, "os"),
      countField(orm, inRange, "osVersion"),
      countField(orm, inRange, "sdkVersion"),
    ]),
  );
  const { issued = 0, retired = 0, all = 0 } = numbers[0] ?? {};
  const size = lastNumber - firstNumber + 1;
  const resting = sum(invitations.map((each) => each.resting));
  const used = Math.min(size, all + resting);
  const top = (values: ValueCount[]) => ({ values, others: issued - sum(values.map(({ badges }) => badges)) });
  return {
    applicationId,
    name,
    numbers: {
      ...{ size, issued, reserved: all - issued - retired, retired, resting, left: size - used, used },
      usedPercent: Math.floor((used / size) * 1000) / 10,
    },
    badges: { deviceModel: top(deviceModel), os: top(os), osVersion: top(osVersion), sdkVersion: top(sdkVersion) },
    invitations: {
      ...{ pending: 0, claimed: 0, revoked: 0, expired: 0 },
      ...Object.fromEntries(invitations.map((each) => [each.state, each.invitations])),
    },
  };
}

const countNumbers = (orm: Orm, inRange: SQL) =>
  orm
    .select({ all: count(), issued: count(badge.position), retired: count(badge.retiredAt) })
    .from(badge)
    .where(inRange);

/** Counts ended invitations whose numbers cannot be handed out yet. */
function countResting(reuseAfterSeconds: number): SQL<number> {
  const restedBefore = Date.now() - reuseAfterSeconds * 1000;
  return sql<number>`count(*) FILTER (WHERE ${invitation.state} IN ('revoked', 'expired')
    AND (${invitation.releasedAt} IS NULL OR ${invitation.endedAt} > ${restedBefore}))`;
}

function countField(orm: Orm, inRange: SQL, field: MetadataField) {
  const value = sql<string | null>`json_extract(${badge.metadata}, ${sql.raw(`'$.${field}'`)})`;
  return orm
    .select({ value, badges: count() })
    .from(badge)
    .where(and(inRange, isNotNull(badge.position)))
    .groupBy(value)
    .orderBy(desc(count()), value)
    .limit(VALUES_SHOWN);
}

const sum = (numbers: number[]): number => numbers.reduce((total, each) => total + each, 0);

const TITLES: Readonly<Record<MetadataField, string>> = {
  deviceModel: "Badges by device model",
  os: "Badges by operating system",
  osVersion: "Badges by version of the operating system",
  sdkVersion: "Badges by version of the SDK",
};

function statisticsText({ name, applicationId, numbers, badges, invitations }: Statistics): string {
  const fields = METADATA_FIELDS.map((field) => {
    const { values, others } = badges[field];
    const counts = values.map(({ value, badges: count }) => ({ label: value ?? "(not told)", count }));
    return section(TITLES[field], others > 0 ? [...counts, { label: "(others)", count: others }] : counts);
  });
  const { usedPercent, ...counts } = numbers;
  return [
    `${bold(name)}  ${applicationId}`,
    section(
      `Badge numbers: ${usedPercent} % of the range is used`,
      Object.entries(counts).map(([label, count]) => ({ label: label === "size" ? "in the range" : label, count })),
    ),
    ...fields,
    section(
      "Invitations",
      Object.entries(invitations).map(([label, count]) => ({ label, count })),
    ),
  ].join("\n\n");
}

function section(title: string, counts: { label: string; count: number }[]): string {
  return `${bold(title)}\n${counts.length === 0 ? "  none" : barLines(counts)}`;
}
