import {
  COMPARE_AFTER_MILLISECONDS,
  LOG_DAYS,
  MAX_LOG_BYTES,
  MAX_STORED_BYTES,
} from "../../../src/shared/limits/allocator-limits.ts";
import { DEFAULT_RANGE_SIZE } from "../../../src/shared/limits/request-limits.ts";
import { EVENT_RETENTION_DAYS } from "../../../src/shared/limits/sweep-limits.ts";
import { BYTES } from "./bytes.ts";
import { BACKGROUND_COSTS, COSTS, type Cost } from "./cost.ts";
import * as prices from "./prices.ts";

/** What the model assumes. */
export const USUAL = {
  /** Of all applications. */
  devices: 100_000_000,
  applications: 1000,
  /** Exponent of Zipf's law for the sizes of applications: 0 makes all equal. */
  skew: 1,
  /** Of the devices, those that get a new badge in a month. */
  newShare: 0.05,
  /** Of a device on a working day. */
  loginsPerDay: 1,
  signaturesPerDay: 4,
  /** For each device; each is claimed. */
  invitationsPerMonth: 0.02,
  /** Of a day's requests, those in its busiest hour, which all applications have at once. */
  peakShare: 0.3,
  /** Busiest second of that hour, as a multiple of its average. */
  burst: 2,
  /** Of logins and signatures, those that a replica of D1 serves alone; the others also read the primary. */
  nearShare: 0.9,
  /** Regions of D1, each with one replica, over which an application's devices are spread evenly. */
  places: 3,
  /** Of badges that are stored, since badges are never deleted. */
  years: 3,
  /** LOG_SAMPLE in wrangler.toml: one of this many requests is logged. */
  logSample: 50,
  /** Of its first limit, what a home may use in its busiest second. */
  fill: 0.7,
};

export type Parameters = typeof USUAL;

const DAYS_A_MONTH = 30;
const MINUTES_A_MONTH = DAYS_A_MONTH * 24 * 60;
const WORKING_DAYS = 22;
const BADGES_A_PAGE = 100;

/** An operation, how often a device causes it in a month, and its load on D1's replicas, the primary and the queue. */
interface Kind extends Partial<Record<"near" | "reads" | "writes" | "messages", number>> {
  cost: Cost;
  perDevice: number;
}

/** Webhooks are counted one a batch, and writes one a transaction: batches and group commit make it less. */
function kindsOf({ newShare, loginsPerDay, signaturesPerDay, invitationsPerMonth, nearShare }: Parameters): Kind[] {
  const near = Math.ceil(nearShare);
  const reads = 1 - nearShare;
  return [
    { cost: COSTS["new badge, webhook URL set"], perDevice: newShare, near, writes: 1, messages: 1 },
    { cost: COSTS["delivery, alone in its batch"], perDevice: newShare + invitationsPerMonth, writes: 2 },
    { cost: COSTS["login (existing badge)"], perDevice: loginsPerDay * WORKING_DAYS, near, reads },
    { cost: COSTS.signature, perDevice: signaturesPerDay * WORKING_DAYS, near, reads },
    // An application reads its whole list once a day.
    { cost: COSTS["page of 100"], perDevice: WORKING_DAYS / BADGES_A_PAGE, reads: 1 },
    { cost: COSTS["invitation created"], perDevice: invitationsPerMonth, reads: 1, writes: 1 },
    { cost: COSTS["invitation claimed"], perDevice: invitationsPerMonth, near, reads: 1, writes: 1, messages: 1 },
  ];
}

const isRequest = (cost: Cost): boolean => cost !== COSTS["delivery, alone in its batch"];

/** The load of `devices` in their busiest second, and the bytes stored for them. */
function loadOf(devices: number, parameters: Parameters) {
  const { peakShare, burst, newShare, invitationsPerMonth, years } = parameters;
  const perSecond = ((devices / WORKING_DAYS) * peakShare * burst) / 3600;
  const sum = (amountOf: (kind: Kind) => number) =>
    kindsOf(parameters).reduce((all, kind) => all + perSecond * kind.perDevice * amountOf(kind), 0);
  // A month of roll-out is the first: its badges are those of the devices, and so are its events.
  const isRollOut = newShare >= 1;
  const invitations = devices * invitationsPerMonth * (isRollOut ? 1 : 12 * years);
  const badges = devices * (isRollOut ? newShare : 1 + newShare * 12 * years) + invitations;
  const events = (devices * (newShare + invitationsPerMonth) * EVENT_RETENTION_DAYS) / DAYS_A_MONTH;
  return {
    requests: sum(({ cost }) => (isRequest(cost) ? 1 : 0)),
    near: sum(({ near = 0 }) => near),
    reads: sum(({ reads = 0 }) => reads),
    writes: sum(({ writes = 0 }) => writes),
    messages: sum(({ messages = 0 }) => messages),
    objectCalls: sum(({ cost }) => cost.objectCalls),
    badges,
    d1Gigabytes: (badges * BYTES.badge + events * BYTES.event + invitations * BYTES.invitation) / 1e9,
    logGigabytes: (entriesOf(devices, parameters) * BYTES.entry * LOG_DAYS) / DAYS_A_MONTH / 1e9,
    ownGigabytes: (badges * BYTES.ownBadge + invitations * BYTES.ownInvitation) / 1e9,
  };
}

/** Entries of a month, if none of them has more than one call. */
const entriesOf = (devices: number, { newShare, invitationsPerMonth }: Parameters): number =>
  devices * (newShare + 2 * invitationsPerMonth);

/** Devices that each limit of a home allows. The load is proportional to the devices, so one calculation is enough. */
export function limitsOf(parameters: Parameters) {
  const devices = 1e6;
  const { near, reads, writes, d1Gigabytes } = loadOf(devices, parameters);
  // Every replica executes all writes as well.
  const secondsOf = (queries: number) =>
    (queries * prices.D1_READ_MILLISECONDS + writes * prices.D1_WRITE_MILLISECONDS) / 1000;
  return {
    "primary time": devices / secondsOf(reads),
    "replica time": devices / secondsOf(near / parameters.places),
    writes: devices / secondsOf(0),
    storage: (devices * prices.GIGABYTES) / d1Gigabytes,
  };
}

/** Devices of each application, the largest first. */
function zipf({ devices, applications, skew }: Parameters): number[] {
  const weights = Array.from({ length: applications }, (_, place) => (place + 1) ** -skew);
  const whole = weights.reduce((all, weight) => all + weight, 0);
  return weights.map((weight) => (devices * weight) / whole);
}

export const whole = (...counts: number[]): string =>
  counts.map((count) => Math.round(count).toLocaleString("en-US")).join(", ");

/** An allocator's rows and its log, which forgets its oldest entries when it is too large. */
const allocatorGigabytes = ({ logGigabytes, ownGigabytes }: ReturnType<typeof loadOf>): number =>
  Math.min(logGigabytes, MAX_LOG_BYTES / 1e9, Math.max(0, MAX_STORED_BYTES / 1e9 - ownGigabytes)) + ownGigabytes;

/** Everything that a month is billed for, but storage and the plan. All requests succeed; a delivery's log line is always written. */
function operationsOf(parameters: Parameters, homes: number, logSample: number): prices.Billed[] {
  const { devices, applications, newShare, invitationsPerMonth } = parameters;
  const calls = kindsOf(parameters).map(({ cost, perDevice }): prices.Billed => {
    const logLines = isRequest(cost) ? cost.logLines / logSample : cost.logLines;
    return [{ ...cost, logLines }, devices * perDevice];
  });
  // A month of roll-out is the first: nothing is old yet.
  const old = newShare >= 1 ? 0 : devices;
  const events = newShare + invitationsPerMonth;
  const entries = entriesOf(devices, parameters);
  const alarms = Math.min(entries, (applications * MINUTES_A_MONTH * 60_000) / COMPARE_AFTER_MILLISECONDS);
  return [
    ...calls,
    [BACKGROUND_COSTS.idleTick, MINUTES_A_MONTH * homes],
    [BACKGROUND_COSTS.idleTickOfApplication, MINUTES_A_MONTH * applications],
    [BACKGROUND_COSTS.alarm, alarms],
    [BACKGROUND_COSTS.setAlarm, alarms],
    // As many as are made: each entry is forgotten once.
    [BACKGROUND_COSTS.deletedEntry, entries],
    [BACKGROUND_COSTS.deletedEvent, old * events],
    [BACKGROUND_COSTS.deletedInvitation, old * invitationsPerMonth],
    [BACKGROUND_COSTS.deletedHistory, old * 2 * invitationsPerMonth],
    // The scan for old events reads each that D1 has, once a day.
    [BACKGROUND_COSTS.scannedRow, devices * events * EVENT_RETENTION_DAYS],
  ];
}

/**
 * A month of all applications, in as many homes as it takes: small applications fill what the large ones leave. Applications
 * that no home holds are divided into equal parts.
 *
 * @returns what docs/scale.md says of it, line by line
 */
export function month(parameters: Parameters): Map<string, string> {
  const { devices, fill, logSample } = parameters;
  const sizes = zipf(parameters);
  const largest = sizes[0] ?? 0;
  const limits = Object.entries(limitsOf(parameters)).sort(([, one], [, other]) => one - other);
  const [limit, allowed] = limits[0] ?? ["", 0];
  const capacity = allowed * fill;
  const tooLarge = sizes.filter((size) => size > capacity);
  const parts = tooLarge.reduce((sum, size) => sum + Math.ceil(size / capacity), 0);
  const homes = Math.ceil(devices / capacity);
  const all = loadOf(devices, parameters);
  const part = loadOf(Math.min(largest, capacity), parameters);
  const billWith = (sample: number) => prices.billOf(operationsOf(parameters, homes, sample), true);
  const [bill, billOfEveryLine] = [billWith(logSample), billWith(1)];
  const owned = sizes.reduce((sum, size) => sum + allocatorGigabytes(loadOf(size, parameters)), 0);
  const storage = prices.storageDollars({ ...all, objectGigabytes: owned });
  const beyondDefaultRange = sizes.filter((size) => loadOf(size, parameters).badges > DEFAULT_RANGE_SIZE);
  return new Map([
    ["requests/s", whole(all.requests)],
    ["reads/s: replicas, primaries", whole(all.near, all.reads)],
    ["writes/s, allocator calls/s", whole(all.writes, all.objectCalls)],
    ["queue messages/s", whole(all.messages)],
    ["D1 GB, allocator GB", whole(all.d1Gigabytes, owned)],
    ["devices in a home", whole(capacity)],
    ["  bottleneck", limit],
    ["homes", whole(homes)],
    ["largest application, devices", whole(largest)],
    ["  allocator of a part: calls/s, GB", whole(part.objectCalls, allocatorGigabytes(part))],
    ["applications to divide", tooLarge.length === 0 ? "0" : `${tooLarge.length} into ${parts}`],
    ["applications past a default range", whole(beyondDefaultRange.length)],
    [`dollars a month, LOG_SAMPLE ${logSample}`, whole(prices.PLAN_DOLLARS + prices.total(bill) + storage)],
    ["  the same, LOG_SAMPLE 1", whole(prices.PLAN_DOLLARS + prices.total(billOfEveryLine) + storage)],
    ["  logs: sampled, all lines", whole(bill.logs, billOfEveryLine.logs)],
    ["  requests and CPU", whole(bill.worker)],
    ["  D1 and allocator rows", whole(bill.d1, bill.object)],
    ["  storage", whole(storage)],
    ["  queues, plan", whole(bill.queue + prices.PLAN_DOLLARS)],
  ]);
}
