import { DEFAULT_RANGE_SIZE } from "../../../src/shared/limits.ts";
import { BYTES } from "./bytes.ts";
import { COSTS, type Cost, MANY } from "./cost.ts";
import * as prices from "./prices.ts";

/** What the model can be asked, each with its default and its description. */
export const PARAMETERS = {
  devices: [100_000_000, "devices of all applications"],
  applications: [1000, "applications"],
  skew: [1, "exponent of Zipf's law for the sizes of applications: 0 makes all equal"],
  newShare: [0.05, "share of the devices that get a new badge in a usual month"],
  loginsPerDay: [1, "logins of a device on a working day"],
  signaturesPerDay: [4, "signatures of a device on a working day"],
  invitationsPerMonth: [0.02, "invitations for each device in a month; each is claimed"],
  peakShare: [0.3, "share of a day's requests in its busiest hour, which all applications have at once"],
  burst: [2, "busiest second of that hour, as a multiple of its average"],
} as const;

export type Parameters = Record<keyof typeof PARAMETERS, number>;

const WORKING_DAYS = 22;
const MINUTES_A_MONTH = 30 * 24 * 60;
/** Months whose badges, events and invitations are stored: nothing deletes them. */
const MONTHS_KEPT = 12;
const BADGES_A_PAGE = 100;

/** An operation, how often a device causes it in a month, and its round trips to D1 and messages to the queue. */
type Kind = [cost: Cost, perDevice: number, reads: number, writes: number, messages: number];

/** Webhooks are counted one a batch, and writes one a transaction: batches and group commit make it less. */
function kindsOf({ newShare, loginsPerDay, signaturesPerDay, invitationsPerMonth }: Parameters): Kind[] {
  return [
    [COSTS.newBadgeWithWebhook, newShare, 1, 1, 1],
    [COSTS.delivery, newShare + invitationsPerMonth, 0, 2, 0],
    [COSTS.existingBadge, loginsPerDay * WORKING_DAYS, 1, 0, 0],
    [COSTS.signature, signaturesPerDay * WORKING_DAYS, 1, 0, 0],
    // An application reads its whole list once a day.
    [COSTS.pageOf100, WORKING_DAYS / BADGES_A_PAGE, 1, 0, 0],
    [COSTS.createInvitation, invitationsPerMonth, 0, 1, 0],
    [COSTS.claimInvitation, invitationsPerMonth, 1, 1, 1],
  ];
}

/** Load at the busiest second, and what is stored. */
export interface Load {
  requests: number;
  d1Reads: number;
  d1Writes: number;
  objectCalls: number;
  queueMessages: number;
  badges: number;
  d1Gigabytes: number;
  objectGigabytes: number;
}

export function loadOf(devices: number, parameters: Parameters): Load {
  const { peakShare, burst, newShare, invitationsPerMonth } = parameters;
  const load = { requests: 0, d1Reads: 0, d1Writes: 0, objectCalls: 0, queueMessages: 0 };
  for (const [cost, perDevice, reads, writes, messages] of kindsOf(parameters)) {
    const perSecond = (((devices * perDevice) / WORKING_DAYS) * peakShare * burst) / 3600;
    if (cost !== COSTS.delivery) load.requests += perSecond;
    load.d1Reads += perSecond * reads;
    load.d1Writes += perSecond * writes;
    load.objectCalls += perSecond * cost.objectCalls;
    load.queueMessages += perSecond * messages;
  }
  const invitations = devices * invitationsPerMonth * MONTHS_KEPT;
  // A month of roll-out is the first: its badges are those of the devices.
  const badges = devices * (newShare >= 1 ? newShare : 1 + newShare * MONTHS_KEPT) + invitations;
  return {
    ...load,
    badges,
    d1Gigabytes: (badges * (BYTES.badge + BYTES.event) + invitations * BYTES.invitation) / 1e9,
    objectGigabytes: (badges * BYTES.lease) / 1e9,
  };
}

/** A limit of the platform and how much of it is used: 1 is all. */
export type Use = readonly [limit: string, used: number];

/** How much of each limit a load uses, the fullest first. */
export function usesOf(load: Load): [Use, Use, ...Use[]] {
  const d1Milliseconds = load.d1Reads * prices.D1_READ_MILLISECONDS + load.d1Writes * prices.D1_WRITE_MILLISECONDS;
  const uses: [Use, Use, ...Use[]] = [
    ["D1 time", d1Milliseconds / 1000],
    ["D1 storage", load.d1Gigabytes / prices.D1_GIGABYTES],
    ["object calls", load.objectCalls / prices.OBJECT_CALLS_PER_SECOND],
    ["object storage", load.objectGigabytes / prices.OBJECT_GIGABYTES],
    ["queue messages", load.queueMessages / prices.QUEUE_MESSAGES_PER_SECOND],
  ];
  uses.sort(([, one], [, other]) => other - one);
  return uses;
}

/** Devices of each application, the largest first. */
export function zipf({ devices, applications, skew }: Parameters): number[] {
  const weights = Array.from({ length: applications }, (_, place) => (place + 1) ** -skew);
  const whole = weights.reduce((all, weight) => all + weight, 0);
  return weights.map((weight) => (devices * weight) / whole);
}

/** A month of all applications, and what its busiest second asks of the platform. */
export function model(parameters: Parameters) {
  const sizes = zipf(parameters);
  const [largestDevices = 0] = sizes;
  const all = loadOf(parameters.devices, parameters);
  const largest = loadOf(largestDevices, parameters);
  const [[firstLimit, used]] = usesOf(largest);
  const stored = (gigabytes: number, { dollarsPerGigabyte, includedGigabytes }: typeof prices.D1_STORAGE) =>
    Math.max(0, gigabytes - includedGigabytes) * dollarsPerGigabyte;
  return {
    all,
    largest: { devices: largestDevices, load: largest },
    /** Devices of one application at which the first limit is met. */
    devicesOfOne: { devices: Math.floor(largestDevices / used), limit: firstLimit },
    beyondDefaultRange: sizes.filter((devices) => loadOf(devices, parameters).badges > DEFAULT_RANGE_SIZE).length,
    bill: monthlyBill(parameters),
    d1StorageDollars: stored(all.d1Gigabytes, prices.D1_STORAGE),
    objectStorageDollars: stored(all.objectGigabytes, prices.OBJECT_STORAGE),
  };
}

function monthlyBill(parameters: Parameters): prices.Bill {
  const { devices, applications, newShare, invitationsPerMonth } = parameters;
  const operations = kindsOf(parameters).map(([cost, perDevice]): [Cost, number] => [cost, devices * perDevice]);
  // The sweep, and the alarm of the object that looks at each lease.
  const others: [Cost, number][] = [
    [COSTS.idleSweep, MINUTES_A_MONTH],
    [COSTS.idleSweepOfApplication, MINUTES_A_MONTH * applications],
    [COSTS.alarm, (devices * (newShare + invitationsPerMonth)) / MANY],
  ];
  return prices.billOf([...operations, ...others], true);
}
