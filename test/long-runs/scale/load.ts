import { BYTES } from "./bytes.ts";
import { COSTS, type Cost } from "./cost.ts";

/** What is asked of the model. Everything else it knows is in cost.ts, bytes.ts and platform.ts. */
export interface Parameters {
  devices: number;
  applications: number;
  /** Exponent of Zipf's law: the n-th largest application has 1 / n^skew of the devices of the largest. */
  skew: number;
  /** Of the devices, those that get a new badge in the month. */
  newShare: number;
  /** Of a device on a working day. */
  loginsPerDay: number;
  signaturesPerDay: number;
  /** Of a device in the month; each is claimed. */
  invitationsPerMonth: number;
  /** Of a day's requests, those of its busiest hour; all applications have it at once. */
  peakShare: number;
  /** The busiest second of that hour, as a multiple of its average. */
  burst: number;
}

export const DEFAULTS: Parameters = {
  devices: 100_000_000,
  applications: 1000,
  skew: 1,
  newShare: 0.05,
  loginsPerDay: 1,
  signaturesPerDay: 4,
  invitationsPerMonth: 0.02,
  peakShare: 0.3,
  burst: 2,
};

const WORKING_DAYS = 22;
/** Months whose badges, events and invitations are still there: nothing deletes them. */
const MONTHS_KEPT = 12;
/** An application reads its whole list once a day. */
const BADGES_A_PAGE = 100;

/** What an operation asks of D1 at its busiest second, in round trips that read and that write. */
export interface Kind {
  cost: Cost;
  reads: number;
  writes: number;
  perMonth: (devices: number, parameters: Parameters) => number;
  messages?: number;
}

/** Webhooks are counted one a batch, and writes one a transaction: batches and group commit make it less. */
export const KINDS: readonly Kind[] = [
  {
    cost: COSTS.newBadgeWithWebhook,
    reads: 1,
    writes: 1,
    messages: 1,
    perMonth: (devices, { newShare }) => devices * newShare,
  },
  {
    cost: COSTS.delivery,
    reads: 0,
    writes: 2,
    perMonth: (devices, { newShare, invitationsPerMonth }) => devices * (newShare + invitationsPerMonth),
  },
  {
    cost: COSTS.existingBadge,
    reads: 1,
    writes: 0,
    perMonth: (devices, { loginsPerDay }) => devices * loginsPerDay * WORKING_DAYS,
  },
  {
    cost: COSTS.signature,
    reads: 1,
    writes: 0,
    perMonth: (devices, { signaturesPerDay }) => devices * signaturesPerDay * WORKING_DAYS,
  },
  { cost: COSTS.pageOf100, reads: 1, writes: 0, perMonth: (devices) => (devices / BADGES_A_PAGE) * WORKING_DAYS },
  {
    cost: COSTS.createInvitation,
    reads: 0,
    writes: 1,
    perMonth: (devices, { invitationsPerMonth }) => devices * invitationsPerMonth,
  },
  {
    cost: COSTS.claimInvitation,
    reads: 1,
    writes: 1,
    messages: 1,
    perMonth: (devices, { invitationsPerMonth }) => devices * invitationsPerMonth,
  },
];

/** Load at the busiest second, and what is stored. It adds up: of two applications it is the sum. */
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

/** Devices of each application, the largest first. */
export function zipf({ devices, applications, skew }: Parameters): number[] {
  const weights = Array.from({ length: applications }, (_, place) => (place + 1) ** -skew);
  const whole = weights.reduce((all, weight) => all + weight, 0);
  return weights.map((weight) => (devices * weight) / whole);
}

/** What so many devices of one application ask at their busiest second, and have stored. */
export function loadOf(devices: number, parameters: Parameters): Load {
  const { peakShare, burst, newShare, invitationsPerMonth } = parameters;
  const load = { requests: 0, d1Reads: 0, d1Writes: 0, objectCalls: 0, queueMessages: 0 };
  for (const { cost, reads, writes, perMonth, messages = 0 } of KINDS) {
    const perSecond = ((perMonth(devices, parameters) / WORKING_DAYS) * peakShare * burst) / 3600;
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
