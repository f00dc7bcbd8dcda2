import { homeOf } from "../../../src/shared/homes.ts";
import { type ApplicationId, applicationId } from "../../../src/shared/identifiers.ts";
import { SUBSCRIBABLE_EVENTS } from "../../../src/shared/schema.ts";
import type { Dice } from "../dice.ts";

/** Each is a D1 of its own with the objects of its applications (contract section 17). */
export const HOMES = [1, 2] as const;

export interface ApplicationPlan {
  id: ApplicationId;
  firstNumber: number;
  /** Grows when the administrator lets it. */
  lastNumber: number;
  numbersAtFirst: number;
  webhookUrl: string | null;
  /** What it subscribes to. */
  events: readonly string[];
  reuseAfterSeconds: number;
  devices: DevicePlan[];
}

export interface DevicePlan {
  udid: string;
  userIds: readonly [string, ...string[]];
  /** Names the key that it proves at first (contract section 15); null: none. */
  key: string | null;
}

/** What a seed chooses before anything happens. */
export interface Plan {
  applications: ApplicationPlan[];
  /** Longest time between two acts of one actor, in milliseconds. */
  thinkMilliseconds: number;
  /** How often an actor does nothing for hours. */
  napChance: number;
  /** Acts of each device and of each server. */
  acts: number;
  /** How far a machine's clock may be off, in milliseconds. */
  clockErrorMilliseconds: number;
  /** The home whose D1 alone is restored to an older state when all is over, if any is. */
  restoredHome: number | null;
  /** Milliseconds between two sweeps, at most; the real cron trigger comes every minute, when it comes. */
  sweepMilliseconds: number;
}

const SECOND = 1000;
const MINUTE = 60 * SECOND;
const HOUR = 60 * MINUTE;

/** Numbers of different applications are far apart, so a range can grow. */
const RANGE_DISTANCE = 1_000_000;

export function makePlan(dice: Dice): Plan {
  const thinkMilliseconds = dice.oneOf([30, 30, 30, 2 * SECOND, 2 * SECOND, MINUTE, 2 * HOUR] as const);
  const length = dice.chance(0.2) ? 2 : 1;
  const applications = Array.from({ length }, (_, place) => planApplication(dice, place));
  const restored = dice.chance(0.3) ? dice.pick(applications) : undefined;
  return {
    applications,
    thinkMilliseconds,
    napChance: dice.oneOf([0, 0.05] as const),
    acts: dice.between(2, 4),
    clockErrorMilliseconds: dice.oneOf([0, 0, 400] as const),
    restoredHome: restored ? homeOf(restored.id) : null,
    sweepMilliseconds: Math.max(SECOND, dice.oneOf([1, 3] as const) * thinkMilliseconds),
  };
}

function planApplication(dice: Dice, place: number): ApplicationPlan {
  // Small ranges meet exhaustion and numbers that come back; large ones do not.
  const size = dice.chance(0.5) ? dice.between(3, 7) : 10_000;
  const firstNumber = 1_000_000_000 + place * RANGE_DISTANCE;
  return {
    id: applicationId.parse(`app${dice.oneOf(["", "2"])}_${String(place).padStart(20, "0")}`),
    firstNumber,
    lastNumber: firstNumber + size - 1,
    numbersAtFirst: size,
    webhookUrl: dice.chance(0.85) ? `https://receiver-${place}.example.com/hook` : null,
    events: dice.chance(0.7) ? SUBSCRIBABLE_EVENTS : ["badge:created"],
    reuseAfterSeconds: dice.chance(0.3) ? dice.between(1, 600) : 0,
    devices: Array.from({ length: dice.between(1, 3) }, (_unused, device) => ({
      udid: `device-${device}`,
      userIds: dice.oneOf<readonly [string, ...string[]]>([["alice"], ["alice", "bob"], ["alice", "bob", "carol"]]),
      key: dice.chance(0.4) ? `key 0 of device-${device}` : null,
    })),
  };
}
