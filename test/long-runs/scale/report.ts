import { table } from "../command-line.ts";
import { BYTES } from "./bytes.ts";
import { COSTS, MANY } from "./cost.ts";
import { doorsTable } from "./doors.ts";
import { floodReport } from "./flood.ts";
import { limitsOf, month, type Parameters, USUAL, whole } from "./model.ts";
import { billOf, GIGABYTES, total } from "./prices.ts";

const STORED = {
  badge: BYTES.badge,
  "badge and its event": BYTES.badge + BYTES.event,
  "invitation, besides its badge": BYTES.invitation,
  "in the allocator: badge": BYTES.ownBadge,
  "  a new badge's entry": BYTES.entry,
  "  invitation": BYTES.ownInvitation,
};

const regions = (places: number): string => (places === 1 ? "1 region" : `${places} regions`);
const percent = (share: number): number => Math.round(share * 100);

/** The model's results as text: prices, stored bytes, devices per home, and two months. */
export function report(): string {
  const priced = Object.entries(COSTS).map(([name, cost]) => {
    const bill = billOf([[cost, 1e6 / (name.includes(`, ${MANY} a`) ? MANY : 1)]], false);
    const { worker, d1, object, queue, logs } = bill;
    return [name, ...[worker, d1, object, queue, logs, total(bill)].map((part) => part.toFixed(2))];
  });
  const million = (bytes: number) => `${((GIGABYTES * 1000) / bytes).toFixed(1)} million`;
  const stored = Object.entries(STORED).map(([name, bytes]) => [name, String(bytes), million(bytes)]);
  const usual = month(USUAL);
  // Every device gets its badge.
  const rollOut = { ...USUAL, newShare: 1 };
  const rollOutMonth = month(rollOut);
  const limit = (name: keyof ReturnType<typeof limitsOf>, more: Partial<Parameters> = {}) =>
    [USUAL, rollOut].map((each) => whole(limitsOf({ ...each, ...more })[name]));
  const { devices, applications, skew, nearShare, places, fill, logSample } = USUAL;
  return [
    table(["dollars a million", "Worker", "D1", "alloc.", "queue", "logs", "all"], priced),
    table(["bytes stored, with indexes", "", "10 GB hold"], stored),
    table(
      ["devices per home", "usual month", "roll-out month"],
      [
        ["reads, all at the primary", ...limit("primary time", { nearShare: 0 })],
        [`reads, ${percent(nearShare)} % at replicas: primary`, ...limit("primary time")],
        ...[1, 3, 6].map((places) => [
          `  replicas, callers in ${regions(places)}`,
          ...limit("replica time", { places }),
        ]),
        ["writes", ...limit("writes")],
        ["storage, after 1 year", ...limit("storage", { years: 1 })],
        ...[3, 5].map((years) => [`  after ${years} years`, ...limit("storage", { years })]),
      ],
    ),
    `${whole(devices)} devices in ${whole(applications)} applications, Zipf ${skew}. Replicas serve ${percent(nearShare)} % of
logins and signatures, callers are in ${regions(places)}, homes use ${percent(fill)} % of their first limit.
The busiest second:`,
    table(
      ["", "usual month", "roll-out month"],
      [...usual].map(([name, figure]) => [name, figure, rollOutMonth.get(name) ?? ""]),
    ),
    `Connected doors of one application in a month with LOG_SAMPLE ${logSample}, before the plan's allowance:`,
    table(["doors", "calls", "object requests", "hours awake", "dollars"], doorsTable([100, 1000, 5000], logSample)),
    floodReport(),
  ].join("\n\n");
}
