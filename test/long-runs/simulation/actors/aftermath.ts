import type { Dice } from "../../dice.ts";
import { isUntold, userDeviceOf } from "../invariants/book.ts";
import { type ApplicationPlan, MINUTE } from "../plan.ts";
import type { World } from "../world.ts";
import { attack } from "./attacker.ts";

/** More than any call tries again. */
const OUTAGE_MILLISECONDS = 2000;
/** A request that meets no delay is decided by then. */
const MAX_MILLISECONDS_TO_DECIDE = 25;
const ATTACKS_AT_ONCE = 8;
const NEW_USERS = ["dave", "erin"] as const;
/** Alarms of one object that are waited for. */
const MAX_ALARMS = 2;
/** How long before and after an alarm requests leave their clients, in milliseconds: they arrive while it is at work. */
const AROUND_ALARM_MILLISECONDS = 25;

/**
 * What goes on after everybody has acted, while things still fail. In some seeds minutes pass, in which webhooks are
 * attempted again, and somebody attacks; in some an hour, after which phones repeat what was never answered just when the
 * objects compare themselves with D1.
 */
export async function liveOn(world: World): Promise<void> {
  const dice = world.dice.of("aftermath");
  const what = dice.below(4);
  if (what === 0) await passMinutes(world, dice);
  if (what !== 1) return;
  await Promise.all(
    world.plan.applications.map(async (application) => {
      await askWhileD1Leaves(world, dice, application);
      for (let count = 0; count < MAX_ALARMS; count++) await repeatAtAlarm(world, dice, application);
    }),
  );
}

/** Badges are suspended, of which a copy of D1 may not know for long: the attacker finds out. */
async function passMinutes(world: World, dice: Dice): Promise<void> {
  const { timeline, isolates, plan, book, clients, administrator } = world;
  for (const application of plan.applications) {
    const request = { ...administrator.credentialsOf(application), step: { kind: "suspend" } } as const;
    const numbers = book.numbersOf(application.id);
    await Promise.all(numbers.map((number) => clients.call("step", { ...request, number })));
  }
  for (let rounds = dice.between(2, 6); rounds > 0; rounds--) {
    await timeline.sleep(dice.between(MINUTE / 3, MINUTE));
    void isolates.sweep();
    const attacked = Array.from({ length: ATTACKS_AT_ONCE }, () => plan.applications).flat();
    await Promise.all(attacked.map((application) => attack(world, dice, application)));
  }
}

/** Each device asks for a badge of each user. */
export async function askAsNewUsers(
  { clients }: World,
  { id: applicationId, devices }: ApplicationPlan,
  userIds: readonly string[],
): Promise<void> {
  const requests = devices.flatMap(({ udid, key }) => {
    const more = { token: null, metadata: null, key, bookmark: null };
    return userIds.map((userId) => ({ applicationId, udid, userId, user: userId, ...more }));
  });
  await Promise.all(requests.map((request) => clients.call("badge", request)));
}

/** New users ask, and D1 goes away while their badges are decided and written. */
async function askWhileD1Leaves(world: World, dice: Dice, application: ApplicationPlan): Promise<void> {
  const { timeline, faults } = world;
  const asked = askAsNewUsers(world, application, NEW_USERS);
  await timeline.sleep(dice.below(MAX_MILLISECONDS_TO_DECIDE));
  faults.away.add("d1");
  await timeline.sleep(OUTAGE_MILLISECONDS);
  faults.away.delete("d1");
  await asked;
}

async function repeatAtAlarm(
  { timeline, objects, book, clients }: World,
  dice: Dice,
  { id: applicationId }: ApplicationPlan,
): Promise<void> {
  const alarm = objects.get(applicationId)?.alarm ?? null;
  if (alarm === null) return;
  await timeline.sleep(alarm - timeline.now - AROUND_ALARM_MILLISECONDS);
  const unanswered = book
    .of("badge", { applicationId })
    .filter((attempt) => book.of("badge", userDeviceOf(attempt.request)).every(isUntold));
  await Promise.all(
    unanswered.map(async ({ request }) => {
      await timeline.sleep(dice.below(2 * AROUND_ALARM_MILLISECONDS));
      await clients.call("badge", request);
    }),
  );
  await timeline.sleep(2 * AROUND_ALARM_MILLISECONDS);
}
