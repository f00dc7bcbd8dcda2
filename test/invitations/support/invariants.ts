import { expect } from "vitest";
import type { TestApplication } from "../../support/application.ts";
import {
  type ApplicationRows,
  type BadgeRow,
  freedNumbers,
  type InvitationRow,
  readPayload,
  readRows,
  usedNumbers,
} from "./storage.ts";

/**
 * Whatever happened and in whatever order, when nothing is under way D1's rows fit together (contract sections 1 and 5). The
 * application must record its events.
 */
export async function expectConsistent(application: TestApplication): Promise<ApplicationRows & { freed: number[] }> {
  const [rows, freed, used] = await Promise.all([
    readRows(application),
    freedNumbers(application),
    usedNumbers(application),
  ]);
  expect([...rowFaults(rows), ...numberFaults(rows, freed, used)]).toEqual([]);
  return { ...rows, freed };
}

/** What is wrong with D1's rows alone. */
export function rowFaults(rows: ApplicationRows): string[] {
  return [
    ...rows.badges.flatMap(badgeFaults),
    ...ownerFaults(rows.badges),
    ...numberingFaults(rows.badges),
    ...rows.invitations.flatMap((invitation) => invitationFaults(invitation, rows.badges)),
    ...reservationFaults(rows),
    ...eventFaults(rows),
  ];
}

/** Neither reserved nor replaced. */
export const isLive = ({ ordinal, supersededAt }: BadgeRow): boolean => ordinal !== null && supersededAt === null;
export const isReserved = ({ ordinal }: BadgeRow): boolean => ordinal === null;

function badgeFaults(row: BadgeRow): string[] {
  const { number, device, userId, signingKeyId, issuedAt, eventId, change, changedAt } = row;
  const parts = [device, userId, signingKeyId, issuedAt, eventId, change, changedAt];
  const isSound = isReserved(row)
    ? [...parts, row.supersededAt, row.endedAt].every((part) => part === null) && row.state === "active"
    : parts.every((part) => part !== null) && isEndSound(row);
  return isSound ? [] : [`${number} is neither reserved, issued nor retired`];
}

/** A badge that another one has replaced has ended at that moment. */
function isEndSound({ state, endedAt, supersededAt }: BadgeRow): boolean {
  return supersededAt === null
    ? state !== "replaced"
    : endedAt !== null && (state === "replaced" || state === "revoked");
}

function ownerFaults(badges: readonly BadgeRow[]): string[] {
  const owners = badges.filter(isLive).map(({ device, userId }) => `${device} of ${userId}`);
  return repeated(owners).map((owner) => `${owner} has more than one live badge`);
}

/** Positions and change numbers belong to one badge each, for ever. */
function numberingFaults(badges: readonly BadgeRow[]): string[] {
  const issued = badges.filter((row) => !isReserved(row));
  return [
    ...repeated(issued.map(({ ordinal }) => `ordinal ${ordinal}`)),
    ...repeated(issued.map(({ change }) => `change ${change}`)),
  ].map((numbering) => `${numbering} twice`);
}

function invitationFaults(invitation: InvitationRow, badges: readonly BadgeRow[]): string[] {
  const { state, digest, number, endedAt, claimDevice, claimUserId } = invitation;
  const row = badges.find((badge) => badge.invitation === digest);
  const isClaimed = state === "claimed";
  const faults: string[] = [];
  if ((endedAt === null) !== (state === "pending")) faults.push("has an end or has none");
  if (row?.number !== (state === "pending" || isClaimed ? number : undefined)) faults.push("holds another number");
  const claim = JSON.stringify([claimDevice, claimUserId]);
  const badge = JSON.stringify(isClaimed ? [row?.device, row?.userId] : [null, null]);
  if (claim !== badge) faults.push("has another claim than its badge");
  return faults.map((fault) => `the ${state} invitation of ${number} ${fault}`);
}

function reservationFaults({ badges, invitations }: ApplicationRows): string[] {
  const pending = new Set(invitations.filter(({ state }) => state === "pending").map(({ digest }) => digest));
  return badges
    .filter((row) => isReserved(row) && (row.invitation === null || !pending.has(row.invitation)))
    .map(({ number }) => `${number} is reserved without an invitation`);
}

function eventFaults({ badges, events }: ApplicationRows): string[] {
  const issued = badges.filter((row) => !isReserved(row)).map(({ eventId, number }) => `${eventId} of ${number}`);
  const told = events.map((event) => `${event.id} of ${readPayload(event).data.id}`);
  return differences("event", told, issued);
}

/** Every number that was used is somebody's or free. */
function numberFaults({ badges }: ApplicationRows, freed: readonly number[], used: number): string[] {
  const known = [...badges.map(({ number }) => number), ...freed].map(String);
  return [
    ...repeated(known).map((number) => `${number} is owned or free twice`),
    ...(known.length === used ? [] : [`of ${used} numbers used ${known.length} are owned or free`]),
  ];
}

function repeated(texts: readonly string[]): string[] {
  return texts.filter((text, place) => texts.indexOf(text) !== place);
}

function differences(what: string, found: readonly string[], expected: readonly string[]): string[] {
  return [
    ...repeated(found).map((text) => `${what} twice: ${text}`),
    ...found.filter((text) => !expected.includes(text)).map((text) => `${what} without a badge: ${text}`),
    ...expected.filter((text) => !found.includes(text)).map((text) => `badge without its ${what}: ${text}`),
  ];
}
