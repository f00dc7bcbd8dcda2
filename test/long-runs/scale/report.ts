import { BYTES } from "./bytes.ts";
import { COSTS, type Cost, MANY } from "./cost.ts";
import { type Load, model, type Parameters, usesOf } from "./model.ts";
import { billOf, D1_GIGABYTES, OBJECT_GIGABYTES, PLAN_DOLLARS, total } from "./prices.ts";

/** All that the model says, as text: the prices, what is stored, and two months. */
export const report = (parameters: Parameters): string =>
  [...prices(), "", ...storage(), "", ...months(parameters)].join("\n");

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

function prices(): string[] {
  const rows = PRICED.map(([name, cost, operations = 1]) => {
    const bill = billOf([[cost, 1e6 / operations]], false);
    const { worker, d1, object, queue, logs } = bill;
    return [name, ...[worker, d1, object, queue, logs, total(bill)].map((part) => part.toFixed(2))];
  });
  return table(["dollars a million", "Worker", "D1", "object", "queue", "logs", "all"], rows);
}

function storage(): string[] {
  const { badge, event, invitation, lease } = BYTES;
  const rows: [name: string, bytes: number, gigabytes: number][] = [
    ["badge", badge, D1_GIGABYTES],
    ["badge and its event", badge + event, D1_GIGABYTES],
    ["invitation, besides its badge", invitation, D1_GIGABYTES],
    ["lease, in the object", lease, OBJECT_GIGABYTES],
  ];
  return table(
    ["bytes stored, with indexes", "", "a D1 or an object of 10 GB holds"],
    rows.map(([name, bytes, gigabytes]) => [name, String(bytes), `${((gigabytes * 1000) / bytes).toFixed(1)} million`]),
  );
}

/** A usual month, and one in which every device gets its badge. */
function months(parameters: Parameters): string[] {
  const both = [model(parameters), model({ ...parameters, newShare: 1 })];
  const row = (name: string, tell: (month: ReturnType<typeof model>) => string) => [name, ...both.map(tell)];
  const use = (load: Load, place: 0 | 1) => {
    const [limit, used] = usesOf(load)[place];
    return `${limit} ${used.toFixed(2)}x`;
  };
  const { devices, applications, skew } = parameters;
  return [
    `${whole(devices)} devices in ${whole(applications)} applications, Zipf ${skew}. The busiest second:`,
    "",
    ...table(
      ["", "usual month", "roll-out month"],
      [
        row("requests/s", ({ all }) => whole(all.requests)),
        row("D1 reads/s, writes/s", ({ all }) => `${whole(all.d1Reads)}, ${whole(all.d1Writes)}`),
        row("object calls/s", ({ all }) => whole(all.objectCalls)),
        row("queue messages/s", ({ all }) => whole(all.queueMessages)),
        row("D1 GB, object GB", ({ all }) => `${whole(all.d1Gigabytes)}, ${whole(all.objectGigabytes)}`),
        row("one D1 for all: first limit", ({ all }) => use(all, 0)),
        row("  second", ({ all }) => use(all, 1)),
        row("largest application, devices", ({ largest }) => whole(largest.devices)),
        row("  alone in a D1: first limit", ({ largest }) => use(largest.load, 0)),
        row("  second", ({ largest }) => use(largest.load, 1)),
        row("  its object: calls/s", ({ largest }) => whole(largest.load.objectCalls)),
        row("one D1 and one object hold", ({ devicesOfOne }) => `${whole(devicesOfOne.devices)} devices`),
        row("  and what ends it", ({ devicesOfOne }) => devicesOfOne.limit),
        row("applications past a default range", ({ beyondDefaultRange }) => whole(beyondDefaultRange)),
        row("dollars a month", ({ bill, d1StorageDollars, objectStorageDollars }) =>
          whole(PLAN_DOLLARS + total(bill) + d1StorageDollars + objectStorageDollars),
        ),
        row("  logs", ({ bill }) => whole(bill.logs)),
        row("  requests and CPU", ({ bill }) => whole(bill.worker)),
        row("  D1 rows", ({ bill }) => whole(bill.d1)),
        row("  D1 storage", ({ d1StorageDollars }) => whole(d1StorageDollars)),
        row("  objects", ({ bill, objectStorageDollars }) => whole(bill.object + objectStorageDollars)),
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
