import type { Command } from "commander";
import { METADATA_FIELDS, type MetadataField } from "../../shared/metadata-fields.ts";
import type { ShownBadge } from "../operations/badges.ts";
import type { Statistics } from "../operations/statistics.ts";
import { barLines, bold, fieldLines } from "../output.ts";
import { withSession } from "../session.ts";

/** `badge show` */
export async function show(number: number, command: Command): Promise<void> {
  await withSession(command, async ({ database, output }) => {
    const { showBadge } = await import("../operations/badges.ts");
    const badge = await showBadge(database, number);
    output.result(badge, () => badgeText(badge));
  });
}

/** `stats` */
export async function stats(id: string, command: Command): Promise<void> {
  await withSession(command, async ({ database, output }) => {
    const { readStatistics } = await import("../operations/statistics.ts");
    const statistics = await readStatistics(database, id);
    output.result(statistics, () => statisticsText(statistics));
  });
}

const STATES: Readonly<Record<ShownBadge["state"], string>> = {
  issued: "issued",
  reserved: "reserved by an invitation",
  retired: "retired: an invitation's number took its place",
  free: "free: nobody has it",
  outside: "in no application's range",
};

function badgeText({ number, state, invitation, metadata, ...badge }: ShownBadge): string {
  return fieldLines({
    "Badge number": number,
    State: STATES[state],
    Application: badge.applicationId ?? undefined,
    User: badge.userId ?? undefined,
    Metadata: metadata === null ? undefined : JSON.stringify(metadata),
    Issued: badge.issuedAt ?? undefined,
    Retired: badge.retiredAt ?? undefined,
    "Key ID": badge.keyId ?? undefined,
    "Event ID": badge.eventId ?? undefined,
    Invitation: invitation === null ? undefined : `${invitation.state}, expires ${invitation.expiresAt}`,
  });
}

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
