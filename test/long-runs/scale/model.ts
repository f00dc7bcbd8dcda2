import { DEFAULT_RANGE_SIZE } from "../../../src/shared/limits.ts";
import { COSTS, MANY } from "./cost.ts";
import { KINDS, type Load, loadOf, type Parameters, zipf } from "./load.ts";
import { type Amounts, amountsOf, dollarsOf, sum, total } from "./money.ts";
import { type Plan, planFor, type Use, usesOf } from "./plan.ts";
import { D1_STORAGE, OBJECT_STORAGE, PLAN_DOLLARS } from "./platform.ts";

const DAYS = 30;

export interface Answer {
  largest: { devices: number; share: number; load: Load; uses: Use[] };
  all: { load: Load; uses: Use[] };
  /** Devices of one application at which the first limit is met. */
  devicesOfOne: { devices: number; limit: Use["limit"] };
  /** The same, if logins, signatures and pages are read from replicas. */
  devicesOfReplicas: { devices: number; limit: Use["limit"] };
  /** Applications that need more numbers than a default range has. */
  beyondDefaultRange: number;
  plan: Plan;
  dollars: { parts: Amounts; d1Storage: number; objectStorage: number; total: number };
}

export function model(parameters: Parameters): Answer {
  const devices = zipf(parameters);
  const loads = devices.map((count) => loadOf(count, parameters));
  const [largestDevices = 0] = devices;
  const largest = loadOf(largestDevices, parameters);
  const all = loadOf(parameters.devices, parameters);
  const uses = usesOf(largest, "primary");
  const [first] = uses;
  const [firstOfReplicas] = usesOf(largest, "replicas");
  return {
    largest: { devices: largestDevices, share: largestDevices / parameters.devices, load: largest, uses },
    all: { load: all, uses: usesOf(all, "primary") },
    devicesOfOne: { devices: Math.floor(largestDevices / first.used), limit: first.limit },
    devicesOfReplicas: {
      devices: Math.floor(largestDevices / firstOfReplicas.used),
      limit: firstOfReplicas.limit,
    },
    beyondDefaultRange: loads.filter(({ badges }) => badges > DEFAULT_RANGE_SIZE).length,
    plan: planFor(loads),
    dollars: monthlyDollars(parameters, all),
  };
}

function monthlyDollars(parameters: Parameters, load: Load): Answer["dollars"] {
  const { devices, applications, invitationsPerMonth } = parameters;
  const sweeps = DAYS * 24 * 60;
  const amounts = [
    ...KINDS.map(({ cost, perMonth }) => amountsOf(cost, perMonth(devices, parameters))),
    amountsOf(COSTS.idleSweep, sweeps),
    amountsOf(COSTS.idleSweepOfApplication, sweeps * applications),
    // Each lease is looked at by an alarm of its object.
    amountsOf(COSTS.alarm, (devices * (parameters.newShare + invitationsPerMonth)) / MANY),
  ];
  const parts = dollarsOf(sum(amounts), true);
  const stored = (gigabytes: number, { dollarsPerGigabyte, includedGigabytes }: typeof D1_STORAGE) =>
    Math.max(0, gigabytes - includedGigabytes) * dollarsPerGigabyte;
  const d1Storage = stored(load.d1Gigabytes, D1_STORAGE);
  const objectStorage = stored(load.objectGigabytes, OBJECT_STORAGE);
  return { parts, d1Storage, objectStorage, total: PLAN_DOLLARS + total(parts) + d1Storage + objectStorage };
}
