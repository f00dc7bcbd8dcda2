import { BYTES } from "./bytes.ts";
import { COSTS, type Cost, MANY } from "./cost.ts";
import type { Parameters } from "./load.ts";
import { type Answer, model } from "./model.ts";
import { amountsOf, dollarsOf, total } from "./money.ts";
import { LIMITS, PLAN_DOLLARS } from "./platform.ts";
import { allocateOverShards } from "./shards.ts";

/** All that the model says, as text: the prices, what is stored, and two months. */
export function report(parameters: Parameters): string {
  return [...prices(), "", ...storage(), "", ...months(parameters), "", ...shards(parameters)].join("\n");
}

const share = (cost: Cost): Cost => ({
  ...cost,
  invocations: cost.invocations / MANY,
  d1RowsRead: cost.d1RowsRead / MANY,
  d1RowsWritten: cost.d1RowsWritten / MANY,
  queueOperations: cost.queueOperations / MANY,
  objectCalls: cost.objectCalls / MANY,
  objectRowsRead: cost.objectRowsRead / MANY,
  objectRowsWritten: cost.objectRowsWritten / MANY,
  logLines: cost.logLines / MANY,
});

const PRICED: readonly [string, Cost][] = [
  ["new badge, webhook URL set", COSTS.newBadgeWithWebhook],
  ["new badge, none set", COSTS.newBadge],
  ["login (existing badge)", COSTS.existingBadge],
  ["login with newer metadata", COSTS.newerMetadata],
  ["signature", COSTS.signature],
  ["page of 100", COSTS.pageOf100],
  ["invitation created", COSTS.createInvitation],
  ["invitation claimed", COSTS.claimInvitation],
  ["invitation revoked", COSTS.revokeInvitation],
  [`invitation expired, ${MANY} at once`, share(COSTS.manyExpiries)],
  ["delivery, alone in its batch", COSTS.delivery],
  [`delivery, ${MANY} a batch`, share(COSTS.manyDeliveries)],
  ["failed attempt, alone", COSTS.failedAttempt],
  [`failed attempt, ${MANY} a batch`, share(COSTS.manyFailedAttempts)],
];

function prices(): string[] {
  const rows = PRICED.map(([name, cost]) => {
    const dollars = dollarsOf(amountsOf(cost, 1e6), false);
    const object =
      dollars.objectCalls + dollars.objectGigabyteSeconds + dollars.objectRowsRead + dollars.objectRowsWritten;
    const worker = dollars.invocations + dollars.cpuMilliseconds;
    const d1 = dollars.d1RowsRead + dollars.d1RowsWritten;
    const parts = [worker, d1, object, dollars.queueOperations, dollars.logLines, total(dollars)];
    return [name, ...parts.map((part) => part.toFixed(2))];
  });
  return table(["dollars a million", "Worker", "D1", "object", "queue", "logs", "all"], rows);
}

function storage(): string[] {
  const { badge, event, invitation, lease } = BYTES;
  const millions = (gigabytes: number, bytes: number) => `${((gigabytes * 1000) / bytes).toFixed(1)} million`;
  return table(
    ["bytes stored, with indexes", "", "a D1 or an object of 10 GB holds"],
    [
      ["badge", String(badge), millions(LIMITS.D1_GIGABYTES, badge)],
      ["badge and its event", String(badge + event), millions(LIMITS.D1_GIGABYTES, badge + event)],
      ["invitation, besides its badge", String(invitation), millions(LIMITS.D1_GIGABYTES, invitation)],
      ["lease, in the object", String(lease), millions(LIMITS.OBJECT_GIGABYTES, lease)],
    ],
  );
}

/** A usual month, and one in which every device gets its badge. */
function months(parameters: Parameters): string[] {
  const answers = [model(parameters), model({ ...parameters, newShare: 1 })];
  const row = (name: string, tell: (answer: Answer) => string) => [name, ...answers.map(tell)];
  const { devices, applications, skew } = parameters;
  const use = (answer: Answer["all"], place: number) => {
    const used = answer.uses[place];
    return used ? `${used.limit} ${used.used.toFixed(2)}x` : "";
  };
  return [
    `${whole(devices)} devices in ${whole(applications)} applications, Zipf ${skew}. The busiest second:`,
    "",
    ...table(
      ["", "usual month", "roll-out month"],
      [
        row("requests/s", ({ all }) => whole(all.load.requests)),
        row("D1 reads/s, writes/s", ({ all }) => `${whole(all.load.d1Reads)}, ${whole(all.load.d1Writes)}`),
        row("object calls/s", ({ all }) => whole(all.load.objectCalls)),
        row("queue messages/s", ({ all }) => whole(all.load.queueMessages)),
        row("D1 GB, object GB", ({ all }) => `${whole(all.load.d1Gigabytes)}, ${whole(all.load.objectGigabytes)}`),
        row("one D1 for all: first limit", ({ all }) => use(all, 0)),
        row("  second", ({ all }) => use(all, 1)),
        row("largest application, devices", ({ largest }) => whole(largest.devices)),
        row("  alone in a D1: first limit", ({ largest }) => use(largest, 0)),
        row("  second", ({ largest }) => use(largest, 1)),
        row("  its object: calls/s", ({ largest }) => whole(largest.load.objectCalls)),
        row("one D1 and one object hold", ({ devicesOfOne }) => `${whole(devicesOfOne.devices)} devices`),
        row("  and what ends it", ({ devicesOfOne }) => devicesOfOne.limit),
        row("with reads from replicas", ({ devicesOfReplicas }) => `${whole(devicesOfReplicas.devices)} devices`),
        row("  and what ends it", ({ devicesOfReplicas }) => devicesOfReplicas.limit),
        row("applications past a default range", ({ beyondDefaultRange }) => whole(beyondDefaultRange)),
        row("plan: D1s", ({ plan }) => whole(plan.d1)),
        row("  with reads from replicas", ({ plan }) => whole(plan.d1WithReplicas)),
        row("  objects, queues", ({ plan }) => `${whole(plan.objects)}, ${whole(plan.queues)}`),
        row("  applications in shards, most", ({ plan }) => `${whole(plan.split)}, ${whole(plan.shardsOfLargest)}`),
        row("  fullest of all", ({ plan }) => `${(100 * plan.fullest).toFixed(0)} %`),
        row("dollars a month", ({ dollars }) => whole(dollars.total)),
        row("  logs", ({ dollars }) => whole(dollars.parts.logLines)),
        row("  requests and CPU", ({ dollars: { parts } }) => whole(parts.invocations + parts.cpuMilliseconds)),
        row("  D1 rows", ({ dollars: { parts } }) => whole(parts.d1RowsRead + parts.d1RowsWritten)),
        row("  D1 storage", ({ dollars }) => whole(dollars.d1Storage)),
        row("  objects", ({ dollars: { parts, objectStorage } }) => {
          const { objectCalls, objectGigabyteSeconds, objectRowsRead, objectRowsWritten } = parts;
          return whole(objectCalls + objectGigabyteSeconds + objectRowsRead + objectRowsWritten + objectStorage);
        }),
        row("  queues, plan", ({ dollars }) => whole(dollars.parts.queueOperations + PLAN_DOLLARS)),
      ],
    ),
  ];
}

const SIMULATED = { devices: 2000, range: { first: 1_000_000_000, last: 1_000_009_999 }, seed: 7 };

function shards(parameters: Parameters): string[] {
  const { plan } = model(parameters);
  const { devices, range, seed } = SIMULATED;
  const { issued, different, changed, outOfRange } = allocateOverShards(range, plan.shardsOfLargest, devices, seed);
  return [
    `${whole(devices)} devices over ${plan.shardsOfLargest} shards of 10,000 numbers: ${whole(issued)} issued,`,
    `${whole(different)} different, ${outOfRange} outside the range, ${changed} changed when asked again.`,
  ];
}

const whole = (count: number): string => Math.round(count).toLocaleString("en-US");

function table(head: readonly string[], rows: readonly (readonly string[])[]): string[] {
  const all = [head, ...rows];
  const widths = head.map((_, column) => Math.max(...all.map((row) => row[column]?.length ?? 0)));
  return all.map((row) =>
    row
      .map((cell, column) => (column === 0 ? cell.padEnd(widths[0] ?? 0) : cell.padStart(widths[column] ?? 0)))
      .join("  ")
      .trimEnd(),
  );
}
