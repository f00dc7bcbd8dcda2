import { table } from "../command-line.ts";
import { BYTES } from "./bytes.ts";
import { COSTS, MANY } from "./cost.ts";
import { limitsOf, model, type Parameters } from "./model.ts";
import { billOf, GIGABYTES, PLAN_DOLLARS, storageDollars, total } from "./prices.ts";

const STORED: readonly [name: string, bytes: number][] = [
  ["badge", BYTES.badge],
  ["badge and its event", BYTES.badge + BYTES.event],
  ["invitation, besides its badge", BYTES.invitation],
  ["lease, in the object", BYTES.lease],
];

const whole = (...counts: number[]): string =>
  counts.map((count) => Math.round(count).toLocaleString("en-US")).join(", ");

/** All that the model says, as text: the prices, what is stored, what a home holds, and two months. */
export function report(parameters: Parameters): string {
  const priced = Object.entries(COSTS).map(([name, cost]) => {
    const bill = billOf([[cost, 1e6 / (name.includes(`, ${MANY} a`) ? MANY : 1)]], false);
    const { worker, d1, object, queue, logs } = bill;
    return [name, ...[worker, d1, object, queue, logs, total(bill)].map((part) => part.toFixed(2))];
  });
  const stored = STORED.map(([name, bytes]) => {
    return [name, String(bytes), `${((GIGABYTES * 1000) / bytes).toFixed(1)} million`];
  });
  // A usual month, and one in which every device gets its badge.
  const months: readonly Parameters[] = [parameters, { ...parameters, newShare: 1 }];
  const limit = (name: keyof ReturnType<typeof limitsOf>, more: Partial<Parameters> = {}) =>
    months.map((month) => whole(limitsOf({ ...month, ...more })[name]));
  const models = months.map(model);
  const row = (name: string, tell: (month: ReturnType<typeof model>) => string) => [name, ...models.map(tell)];
  const { devices, applications, skew, nearShare, places, fill } = parameters;
  return [
    table(["dollars a million", "Worker", "D1", "object", "queue", "logs", "all"], priced),
    table(["bytes stored, with indexes", "", "10 GB hold"], stored),
    table(
      ["devices that a full home holds", "usual month", "roll-out month"],
      [
        ["by reads, all at the primary", ...limit("primary's time", { nearShare: 0 })],
        [`by reads, ${nearShare} of them near: primary`, ...limit("primary's time")],
        ...[1, 3, 6].map((places) => [`  copies, callers in ${places}`, ...limit("a copy's time", { places })]),
        ["by writes alone", ...limit("writes alone")],
        ["by storage, after a year", ...limit("storage", { years: 1 })],
        ...[3, 5].map((years) => [`  after ${years} years`, ...limit("storage", { years })]),
      ],
    ),
    `${whole(devices)} devices in ${whole(applications)} applications, Zipf ${skew}; ${nearShare} of logins and
signatures near, callers in ${places} places; homes filled to ${fill} of a limit. The busiest second:`,
    table(
      ["", "usual month", "roll-out month"],
      [
        row("requests/s", ({ requests }) => whole(requests)),
        row("reads/s: copies, primaries", ({ near, reads }) => whole(near, reads)),
        row("writes/s, object calls/s", ({ writes, objectCalls }) => whole(writes, objectCalls)),
        row("queue messages/s", ({ messages }) => whole(messages)),
        row("D1 GB, object GB", ({ d1Gigabytes, objectGigabytes }) => whole(d1Gigabytes, objectGigabytes)),
        row("devices in a home", ({ capacity }) => whole(capacity)),
        row("  and what ends it", ({ limit }) => limit),
        row("homes", ({ homes }) => whole(homes)),
        row("largest application, devices", ({ largest }) => whole(largest)),
        row("  object of a part: calls/s, GB", ({ largestPart: { objectCalls, objectGigabytes } }) =>
          whole(objectCalls, objectGigabytes),
        ),
        row("applications to divide", ({ divided, parts }) => (divided === 0 ? "0" : `${divided} into ${parts}`)),
        row("applications past a default range", ({ beyondDefaultRange }) => whole(beyondDefaultRange)),
        row("dollars a month", (month) => whole(PLAN_DOLLARS + total(month.bill) + storageDollars(month))),
        row("  logs (one line in ten)", ({ bill }) => `${whole(bill.logs)} (${whole(bill.logs / 10)})`),
        row("  requests and CPU", ({ bill }) => whole(bill.worker)),
        row("  D1 and object rows", ({ bill }) => whole(bill.d1, bill.object)),
        row("  storage", (month) => whole(storageDollars(month))),
        row("  queues, plan", ({ bill }) => whole(bill.queue + PLAN_DOLLARS)),
      ],
    ),
  ].join("\n\n");
}
