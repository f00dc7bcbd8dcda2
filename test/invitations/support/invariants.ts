import { expect } from "vitest";
import type { TestApplication } from "../../support/application.ts";
import {
  type ApplicationRows,
  type BadgeRow,
  type InvitationRow,
  type LedgerRows,
  readLedger,
  readPayload,
  readRows,
} from "./storage.ts";

/**
 * Whatever happened and in whatever order, when nothing is under way D1 and the application's object agree (contract
 * sections 1 and 5). The application must record its events.
 */
export async function expectConsistent(
  application: TestApplication,
): Promise<ApplicationRows & { ledger: LedgerRows }> {
  const [rows, ledger] = await Promise.all([readRows(application), readLedger(application)]);
  expect([...rowFaults(rows), ...ledgerFaults(rows, ledger)]).toEqual([]);
  return { ...rows, ledger };
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
export const isLive = ({ position, retiredAt }: BadgeRow): boolean => position !== null && retiredAt === null;
export const isReserved = ({ position }: BadgeRow): boolean => position === null;

function badgeFaults(row: BadgeRow): string[] {
  const { number, device, userId, signingKeyId, issuedAt, eventId, change, changedAt } = row;
  const parts = [device, userId, signingKeyId, issuedAt, eventId, change, changedAt];
  const isSound = isReserved(row)
    ? [...parts, row.retiredAt, row.endedAt].every((part) => part === null) && row.state === "active"
    : parts.every((part) => part !== null) && isEndSound(row);
  return isSound ? [] : [`${number} is neither reserved, issued nor retired`];
}

/** A badge that another one has replaced has ended at that moment. */
function isEndSound({ state, endedAt, retiredAt }: BadgeRow): boolean {
  return retiredAt === null ? state !== "replaced" : endedAt !== null && (state === "replaced" || state === "revoked");
}

function ownerFaults(badges: readonly BadgeRow[]): string[] {
  const owners = badges.filter(isLive).map(({ device, userId }) => `${device} of ${userId}`);
  return repeated(owners).map((owner) => `${owner} has more than one live badge`);
}

/** Positions and change numbers belong to one badge each, for ever. */
function numberingFaults(badges: readonly BadgeRow[]): string[] {
  const issued = badges.filter((row) => !isReserved(row));
  return [
    ...repeated(issued.map(({ position }) => `position ${position}`)),
    ...repeated(issued.map(({ change }) => `change ${change}`)),
  ].map((numbering) => `${numbering} twice`);
}

function invitationFaults(invitation: InvitationRow, badges: readonly BadgeRow[]): string[] {
  const { state, digest, number, endedAt, claimDevice, claimUserId, claimEventId } = invitation;
  const row = badges.find((badge) => badge.invitation === digest);
  const isClaimed = state === "claimed";
  const faults: string[] = [];
  if ((endedAt === null) !== (state === "pending")) faults.push("has an end or has none");
  if (row?.number !== (state === "pending" || isClaimed ? number : undefined)) faults.push("holds another number");
  const claim = JSON.stringify([claimDevice, claimUserId, claimEventId]);
  const badge = JSON.stringify(isClaimed ? [row?.device, row?.userId, row?.eventId] : [null, null, null]);
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

function ledgerFaults({ badges, invitations }: ApplicationRows, { leases, free, used }: LedgerRows): string[] {
  const holderOf = ({ invitation, device, userId }: BadgeRow): string =>
    invitation === null ? `device:${device}:${userId}` : `invitation:${invitation}`;
  const unreleased = invitations.filter(
    ({ state, releasedAt }) => (state === "revoked" || state === "expired") && releasedAt === null,
  );
  const mayHold = new Set(unreleased.map(({ digest, number }) => `${number} by invitation:${digest}`));
  const held = leases.map(({ holder, number }) => `${number} by ${holder}`).filter((lease) => !mayHold.has(lease));
  const owed = badges.map((row) => `${row.number} by ${holderOf(row)}`);
  const handedOut = [...leases.map(({ number }) => number), ...free].map(String);
  return [
    ...differences("lease", held, owed),
    ...repeated(handedOut).map((number) => `${number} is leased or free twice`),
    ...(handedOut.length === used ? [] : [`of ${used} numbers handed out ${handedOut.length} are leased or free`]),
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
