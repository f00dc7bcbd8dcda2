import type { ApplicationId } from "../../shared/identifiers.ts";
import { METADATA_FIELDS, type MetadataField } from "../../shared/metadata-fields.ts";
import {
  countDeliveries,
  countMetadata,
  eventsCounted,
  type Statistics,
  sampledAfter,
  selectCounted,
  selectDeliveries,
  selectMetadata,
  viewStatistics,
} from "../../shared/statistics.ts";
import { command } from "../command-line/command.ts";
import { barLines, bold, formatNumber } from "../command-line/output.ts";
import type { Database } from "../platform/database.ts";
import { APPLICATION, unknownApplication } from "./record.ts";

export const statsCommand = command("stats", {
  arguments: [APPLICATION],
  summary: "count an application's badges, invitations and deliveries",
  description:
    "Counts an application's numbers, its badges by state, device model, operating system, OS version and SDK version, " +
    "its invitations by state, and its deliveries by outcome. With --observe, it also counts the last day's logins by " +
    "user token. --json prints the response of GET /v1/stats, which also has the badges issued on each of the last 90 days.",
  examples: ["", "--json"],
  work: ({ homes }, id) => readStatistics(homes.databaseFor(id), id),
  text: statisticsText,
});

/** The response of `GET /v1/stats`, as of now by D1's clock. */
export async function readStatistics(database: Database, applicationId: ApplicationId): Promise<Statistics> {
  const now = await database.readClock();
  const [application] = await database.run((orm) => selectCounted(orm, applicationId, now));
  if (!application) throw unknownApplication(applicationId);
  const after = sampledAfter(application.lastOrdinal);
  const [metadata, deliveries] = await database.run((orm) =>
    orm.batch([
      selectMetadata(orm, applicationId, after),
      selectDeliveries(orm, applicationId, eventsCounted(application.coolingDown)),
    ]),
  );
  const { withToken, withoutToken, withWrongToken, ...counted } = application;
  const logins = { withToken, withoutToken, withWrongToken };
  return viewStatistics(
    { ...counted, applicationId, logins },
    countMetadata(metadata),
    countDeliveries(deliveries),
    now,
  );
}

const TITLES: Readonly<Record<MetadataField, string>> = {
  deviceModel: "Badges by device model",
  os: "Badges by operating system",
  osVersion: "Badges by version of the operating system",
  sdkVersion: "Badges by version of the SDK",
};

function statisticsText({ name, applicationId, numbers, badges, sampled, ...statistics }: Statistics): string {
  const fields = METADATA_FIELDS.map((field) => {
    const { values, others } = badges[field];
    const counts = values.map(({ value, badges: count }) => ({ label: value ?? "(not sent)", count }));
    return section(TITLES[field], others > 0 ? [...counts, { label: "(others)", count: others }] : counts);
  });
  const { usedPercent, ...counts } = numbers;
  return [
    `${bold(name)}  ${applicationId}`,
    section(
      `Badge numbers: ${usedPercent} % of the range is used`,
      Object.entries(counts).map(([label, count]) => ({ label: label === "size" ? "in the range" : label, count })),
    ),
    section("Badges by state", byLabel(statistics.badgesByState)),
    ...(sampled < numbers.issued ? [`Devices are those of the newest ${formatNumber(sampled)} badges.`] : []),
    ...fields,
    section("Invitations", byLabel(statistics.invitations)),
    section("Logins of the last day, by user token", loginCounts(statistics.logins)),
    section(
      "Deliveries by state and last outcome",
      statistics.deliveries.map(({ state, outcome, events }) => ({
        label: outcome === null ? state : `${state}, ${outcome}`,
        count: events,
      })),
    ),
  ].join("\n\n");
}

/** Empty when no logins were observed. */
function loginCounts({ withToken, withoutToken, withWrongToken }: Statistics["logins"]) {
  if (withToken + withoutToken + withWrongToken === 0) return [];
  return byLabel({ "with a token": withToken, "without a token": withoutToken, "with a wrong token": withWrongToken });
}

const byLabel = (counts: Readonly<Record<string, number>>) =>
  Object.entries(counts).map(([label, count]) => ({ label, count }));

function section(title: string, counts: { label: string; count: number }[]): string {
  return `${bold(title)}\n${counts.length === 0 ? "  none" : barLines(counts)}`;
}
