import { BYTES } from "./bytes.ts";
import { COSTS, type Cost, MANY } from "./cost.ts";
import { limitsOf, model, type Parameters } from "./model.ts";
import { billOf, GIGABYTES, PLAN_DOLLARS, total } from "./prices.ts";

/** All that the model says, as text: the prices, what is stored, what a home holds, and two months. */
export const report = (parameters: Parameters): string =>
  [pricesTable(), storage(), homes(parameters), ...months(parameters)].map((lines) => lines.join("\n")).join("\n\n");

/** `operations`: how many of them the cost is of. */
const PRICED: readonly [name: string, cost: Cost, operations?: number][] = [
  ["new badge, webhook URL set", COSTS.newBadgeWithWebhook],
  ["new badge, none set", COSTS.newBadge],
  ["login (existing badge)", COSTS.existingBadge],
  ["login with newer metadata", COSTS.newerMetadata],
  ["signature", COSTS.signature],
  ["page of 100", COSTS.pageOf100],
  ["invitation created", COSTS.createInvitation],
  ["invitation claimed", COSTS.claimInvitation],
  ["invitation revoked", COSTS.revokeInvitation],
  [`invitation expired, ${MANY} at once`, COSTS.manyExpiries, MANY],
  ["delivery, alone in its batch", COSTS.delivery],
  [`delivery, ${MANY} a batch`, COSTS.manyDeliveries, MANY],
  ["failed attempt, alone", COSTS.failedAttempt],
  [`failed attempt, ${MANY} a batch`, COSTS.manyFailedAttempts, MANY],
];

function pricesTable(): string[] {
  const rows = PRICED.map(([name, cost, operations = 1]) => {
    const bill = billOf([[cost, 1e6 / operations]], false);
    const { worker, d1, object, queue, logs } = bill;
    return [name, ...[worker, d1, object, queue, logs, total(bill)].map((part) => part.toFixed(2))];
  });
  return table(["dollars a million", "Worker", "D1", "object", "queue", "logs", "all"], rows);
}

function storage(): string[] {
  const { badge, event, invitation, lease } = BYTES;
  const rows: [name: string, bytes: number][] = [
    ["badge", badge],
    ["badge and its event", badge + event],
    ["invitation, besides its badge", invitation],
    ["lease, in the object", lease],
  ];
  return table(
    ["bytes stored, with indexes", "", "10 GB hold"],
    rows.map(([name, bytes]) => [name, String(bytes), `${((GIGABYTES * 1000) / bytes).toFixed(1)} million`]),
  );
}

/** A usual month, and one in which every device gets its badge. */
const monthsOf = (parameters: Parameters): [Parameters, Parameters] => [parameters, { ...parameters, newShare: 1 }];

function homes(parameters: Parameters): string[] {
  const limit = (name: string, more: Partial<Parameters> = {}) =>
    monthsOf({ ...parameters, ...more }).map((month) =>
      whole(limitsOf(month).find((one) => one.name === name)?.devices ?? 0),
    );
  const { nearShare } = parameters;
  return table(
    ["devices that a full home holds", "usual month", "roll-out month"],
    [
      ["by reads, all at the primary", ...limit("primary's time", { nearShare: 0 })],
      [`by reads, ${nearShare} of them near: primary`, ...limit("primary's time")],
      ...[1, 3, 6].map((places) => [`  copies, callers in ${places}`, ...limit("a copy's time", { places })]),
      ["by writes alone", ...limit("writes alone")],
      ["by storage, after a year", ...limit("storage", { years: 1 })],
      ...[3, 5].map((years) => [`  after ${years} years`, ...limit("storage", { years })]),
    ],
  );
}

function months(parameters: Parameters): string[][] {
  const both = monthsOf(parameters).map(model);
  const row = (name: string, tell: (month: ReturnType<typeof model>) => string) => [name, ...both.map(tell)];
  const { devices, applications, skew, nearShare, places, fill } = parameters;
  return [
    [
      `${whole(devices)} devices in ${whole(applications)} applications, Zipf ${skew}; ${nearShare} of logins and`,
      `signatures near, callers in ${places} places; homes filled to ${fill} of a limit. The busiest second:`,
    ],
    table(
      ["", "usual month", "roll-out month"],
      [
        row("requests/s", ({ all }) => whole(all.requests)),
        row("reads/s: copies, primaries", ({ all }) => `${whole(all.near)}, ${whole(all.reads)}`),
        row("writes/s, object calls/s", ({ all }) => `${whole(all.writes)}, ${whole(all.objectCalls)}`),
        row("queue messages/s", ({ all }) => whole(all.messages)),
        row("D1 GB, object GB", ({ all }) => `${whole(all.d1Gigabytes)}, ${whole(all.objectGigabytes)}`),
        row("devices in a home", ({ capacity }) => whole(capacity)),
        row("  and what ends it", ({ limit }) => limit),
        row("homes", ({ homes }) => whole(homes)),
        row("largest application, devices", ({ largest }) => whole(largest.devices)),
        row("  object of a part: calls/s, GB", ({ largest }) => {
          return `${whole(largest.objectCalls)}, ${whole(largest.objectGigabytes)}`;
        }),
        row("applications to divide", ({ divided, parts }) => (divided === 0 ? "0" : `${divided} into ${parts}`)),
        row("applications past a default range", ({ beyondDefaultRange }) => whole(beyondDefaultRange)),
        row("dollars a month", ({ bill, storageDollars }) => whole(PLAN_DOLLARS + total(bill) + storageDollars)),
        row("  logs (one line in ten)", ({ bill }) => `${whole(bill.logs)} (${whole(bill.logs / 10)})`),
        row("  requests and CPU", ({ bill }) => whole(bill.worker)),
        row("  D1 and object rows", ({ bill }) => `${whole(bill.d1)}, ${whole(bill.object)}`),
        row("  storage", ({ storageDollars }) => whole(storageDollars)),
        row("  queues, plan", ({ bill }) => whole(bill.queue + PLAN_DOLLARS)),
      ],
    ),
  ];
}

const whole = (count: number): string => Math.round(count).toLocaleString("en-US");

function table(head: readonly string[], rows: readonly (readonly string[])[]): string[] {
  const all = [head, ...rows];
  const widths = head.map((_, column) => Math.max(...all.map((row) => row[column]?.length ?? 0)));
  const padded = (cell: string, column: number) =>
    column === 0 ? cell.padEnd(widths[0] ?? 0) : cell.padStart(widths[column] ?? 0);
  return all.map((row) => row.map(padded).join("  ").trimEnd());
}
