import { SUBSCRIBABLE_EVENTS } from "../../../src/shared/events.ts";
import { applicationId } from "../../../src/shared/identifiers.ts";
import type { Dice } from "../dice.ts";

export type Plan = ReturnType<typeof makePlan>;
export type ApplicationPlan = ReturnType<typeof planApplication>;
export type DevicePlan = ReturnType<typeof planDevice>;

export const MINUTE = 60_000;
export const HOUR = 60 * MINUTE;

const ALL_EVENTS: readonly string[] = SUBSCRIBABLE_EVENTS;

/** Numbers of different applications are far apart, so a range can grow. */
const RANGE_DISTANCE = 1_000_000;

/** What a seed chooses before anything happens; times are milliseconds. */
export function makePlan(dice: Dice) {
  const thinkMilliseconds = dice.oneOf([30, 30, 30, 2000, 2000, 60_000, 7_200_000]);
  const length = dice.chance(0.2) ? 2 : 1;
  const applications = Array.from({ length }, (_, place) => planApplication(dice, place));
  const restorations = dice.of("restorations");
  const rounds = restorations.chance(0.4) ? restorations.between(1, 3) : 0;
  return {
    applications,
    /** Longest time between two acts of one actor. */
    thinkMilliseconds,
    /** How often an actor does nothing for hours. */
    napChance: dice.oneOf([0, 0.05]),
    /** Of each device and of each server. */
    acts: dice.between(2, 4),
    /** How far a machine's clock may be off. */
    clockErrorMilliseconds: dice.oneOf([0, 0, 400]),
    restorations: rounds,
    /** Whether objects are restored, or lose their storage. */
    forgetful: restorations.chance(0.5),
    /**
     * How often another application's row comes under a number that is about to be drawn, when somebody acts. After a restoration the
     * number may have been returned already, of which nobody can promise anything.
     */
    plantChance: rounds === 0 && dice.of("planted").chance(0.3) ? 0.15 : 0,
    /** How often D1 goes away for a while when somebody acts. */
    outageChance: dice.of("outages").chance(0.2) ? 0.1 : 0,
    /** Between two sweeps, at most; the real cron trigger comes every minute, when it comes. */
    sweepMilliseconds: Math.max(1000, dice.oneOf([1, 3]) * thinkMilliseconds),
  };
}

function planApplication(dice: Dice, place: number) {
  // Small ranges meet exhaustion and numbers that come back; large ones do not.
  const size = dice.chance(0.5) ? dice.between(3, 7) : 10_000;
  const firstNumber = 1_000_000_000 + place * RANGE_DISTANCE;
  return {
    id: applicationId.parse(`app${dice.oneOf(["", "2"])}_${String(place).padStart(20, "0")}`),
    firstNumber,
    /** Grows when the administrator lets it. */
    numbersAtFirst: size,
    webhookUrl: dice.chance(0.85) ? `https://receiver-${place}.example.com/hook` : null,
    events: dice.chance(0.7) ? ALL_EVENTS : ["badge:created"],
    /** Whether an identity provider says who has logged in (contract section 22). */
    verifiesUsers: dice.of(`users of ${place}`).chance(0.3),
    reuseAfterSeconds: dice.chance(0.3) ? dice.between(1, 600) : 0,
    devices: Array.from({ length: dice.between(1, 3) }, (_, device) => planDevice(dice, device)),
  };
}

const planDevice = (dice: Dice, device: number) => ({
  udid: `device-${device}`,
  userIds: dice.oneOf<readonly [string, ...string[]]>([["alice"], ["alice", "bob"], ["alice", "bob", "carol"]]),
  /** Names the key that it proves at first (contract section 15); null: none. */
  key: dice.chance(0.4) ? `key 0 of device-${device}` : null,
});
