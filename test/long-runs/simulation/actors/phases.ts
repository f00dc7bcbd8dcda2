import { homeOf } from "../../../../src/shared/homes.ts";
import type { Dice } from "../../dice.ts";
import { isGranted, isUntold, userDeviceOf } from "../invariants/book.ts";
import { CLOSED } from "../invariants/replica.ts";
import { type ApplicationPlan, HOUR, MINUTE, type Plan } from "../plan.ts";
import type { World } from "../world.ts";
import type { Actors, Party } from "./actors.ts";
import { attack } from "./attacker.ts";

/** More than any call tries again. */
const OUTAGE_MILLISECONDS = 2000;
/** A request that meets no delay is decided by then. */
const MAX_MILLISECONDS_TO_DECIDE = 25;
const ATTACKS_AT_ONCE = 8;
const NEW_USERS = ["dave", "erin"] as const;
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

async function askAsNewUsers(
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

/** About as long as a call of a new user takes. */
const MILLISECONDS_OF_CALL = 50;
/** How long it may take until everything is there again, in milliseconds: it is noticed within two minutes. */
const NOTICED_MILLISECONDS = 3 * MINUTE;

/**
 * Everybody goes on while things fail, and meanwhile the D1 of a home is restored to any earlier moment, forward again, twice, or
 * an object is restored or lost. Nobody runs `reconcile`, and in the end nothing is lost (contract section 21). What both sides
 * forget before they compare is, so a round has restorations of one kind.
 */
export async function liveThroughRestorations(world: World, actors: Actors, round: number): Promise<void> {
  const { faults, timeline, isolates, trace, plan } = world;
  const dice = world.dice.of(`restorations ${round}`);
  const kind = kindOfRound(dice, plan);
  if (kind === "ancient") return restoreAncient(world, dice);
  const isOfObjects = kind === "lost";
  // What was on its way to D1 when an object lost what it knew of it has arrived.
  await isolates.sweep();
  faults.isOn = true;
  const done = actors.act();
  const span = dice.oneOf([50, plan.thinkMilliseconds, plan.acts * plan.thinkMilliseconds, 3 * MINUTE]);
  for (let count = dice.between(1, 3); count > 0; count--) {
    await timeline.sleep(dice.below(span));
    if (isOfObjects) await loseOne(world, dice);
    else restoreOne(world, dice);
  }
  await done;
  trace.add("seed", "from here on nothing fails again");
  faults.isOn = false;
  if (!isOfObjects && dice.chance(0.5)) await restoreUnseen(world, dice);
  for (let waited = 0; waited < NOTICED_MILLISECONDS; waited += MINUTE) {
    await timeline.sleep(MINUTE);
    await isolates.sweep();
  }
  if (isOfObjects) await compareAll(world);
}

function kindOfRound(dice: Dice, { forgetful }: Plan): "ancient" | "lost" | "restored" {
  if (dice.chance(0.15)) return "ancient";
  return forgetful && dice.chance(0.6) ? "lost" : "restored";
}

/** An object loses its storage, also while users who are new ask for badges: their calls are repeated at the object that copies. */
async function loseOne(world: World, dice: Dice): Promise<void> {
  const application = dice.pick(world.plan.applications);
  if (!application) return;
  if (dice.chance(0.7)) void askAsNewUsers(world, application, [`newcomer at ${world.timeline.now}`]);
  await world.timeline.sleep(dice.below(MILLISECONDS_OF_CALL));
  world.objects.lose(application.id);
}

/** Time Travel goes back for 30 days, and the log one day more. */
const KEPT_MILLISECONDS = 30 * 24 * HOUR;

/** To one of the last moments, or to any; since objects forgot something, not to one before that. */
function restoreOne(world: World, dice: Dice): void {
  const { plan, timeline, d1 } = world;
  const application = dice.pick(plan.applications);
  if (!application) return;
  const server = d1.of(application.id);
  const moments = server.position - server.earliestSince(timeline.now - KEPT_MILLISECONDS);
  const position = server.position - dice.below(dice.chance(0.5) ? Math.min(moments, 10) : moments);
  restoreTo(world, application, position);
}

/**
 * @param position if a republication was under way at it, D1 is restored to before that, if it is kept: only an administrator
 * could resume it
 */
function restoreTo(world: World, { id }: ApplicationPlan, position: number): void {
  const { d1, trace, faults, replica, timeline } = world;
  const home = homeOf(id);
  const server = d1.at(home);
  faults.struck++;
  const earliest = Math.min(position, server.earliestSince(timeline.now - KEPT_MILLISECONDS));
  for (let at = position; at >= earliest; at--) {
    trace.add("seed", `D1 of home ${home} is restored to commit ${at} of ${server.position}`);
    server.restore(at);
    if (server.look("SELECT 1 FROM application_head WHERE readable_from = ?", CLOSED).length === 0) break;
  }
  replica.restored(home);
}

/**
 * D1 is restored to a moment after the last tick's heartbeat, so no tick can notice, and nobody calls. A command that the tick had
 * carried out may look open again.
 */
async function restoreUnseen(world: World, dice: Dice): Promise<void> {
  const { plan, timeline, isolates, d1, administrator, clients } = world;
  const application = dice.pick(plan.applications);
  if (!application) return;
  await timeline.sleep(MINUTE);
  await isolates.sweep();
  administrator.command(application);
  const server = d1.of(application.id);
  const before = server.position;
  await isolates.sweep();
  for (const name of dice.shuffled(["block", "unblock", "erase"] as const)) {
    await clients.call(name, { ...administrator.credentialsOf(application), userId: "erin" });
  }
  restoreTo(world, application, dice.between(before + 1, server.position - 1));
  if (dice.chance(0.5)) return;
  // Before the alarm comes.
  await timeline.sleep(dice.between(MINUTE / 6, MINUTE / 2));
  administrator.wake(application);
}

/** Until then a restoration of D1 could make both sides forget the same. */
async function compareAll({ plan, isolates, d1 }: World): Promise<void> {
  await isolates.enter(async (contextOf) => {
    for (const { id } of plan.applications) await contextOf(homeOf(id)).allocator.wake(id, true);
  });
  for (const { id } of plan.applications) d1.of(id).keepFrom();
}

/** How old what the log has no more is then: commands that old are not carried out again. */
const ANCIENT_MILLISECONDS = 2 * HOUR;
/** More than an alarm, a comparison and a tick take. */
const NOTICED_BY_ALL_MILLISECONDS = 5 * MINUTE;

/**
 * D1 is restored to a moment before the log begins. Nobody overwrites anything until an administrator has it republished (contract
 * section 21); meanwhile everybody goes on in vain.
 */
async function restoreAncient(world: World, dice: Dice): Promise<void> {
  const { timeline, plan, objects, d1, trace, faults, isolates, administrator } = world;
  const application = dice.pick(plan.applications);
  const stored = application && objects.get(application.id);
  if (!application || !stored) return;
  await timeline.sleep(ANCIENT_MILLISECONDS);
  await isolates.sweep();
  objects.evict(application.id);
  stored.sqlite.run("DELETE FROM entry WHERE sequence < (SELECT max(sequence) FROM entry)");
  trace.add("seed", `the log of ${application.id} begins anew`);
  const server = d1.of(application.id);
  const position = server.position - 1 - dice.below(server.position - server.earliest);
  restoreTo(world, application, Math.max(server.earliest, position));
  faults.isOn = dice.chance(0.5);
  await timeline.sleep(NOTICED_BY_ALL_MILLISECONDS);
  // The other allocators of this home have what D1 lacks. While things fail, nobody waits for a tick.
  void isolates.sweep();
  await timeline.sleep(NOTICED_BY_ALL_MILLISECONDS);
  if (!faults.isOn) checkClosed(world, application);
  administrator.republish(application);
  for (let waited = 0; waited < NOTICED_BY_ALL_MILLISECONDS; waited += MINUTE) {
    void isolates.sweep();
    await timeline.sleep(MINUTE);
  }
  faults.isOn = false;
  // What was interrupted is asked for again. D1 may be older than another log, too, which began with a later copy.
  for (const each of plan.applications) administrator.republish(each);
  await isolates.sweep();
  await timeline.sleep(MINUTE);
  for (const { id } of plan.applications) d1.of(id).keepFrom();
}

/** Nobody reads what only an administrator can decide about. */
function checkClosed({ d1, verdict, objects }: World, { id }: ApplicationPlan): void {
  const head = d1.headOf(id);
  const known = objects.get(id)?.sqlite.run("SELECT id FROM entry WHERE id = ?", [head?.entry ?? null]).rows ?? [];
  const isClosed = Number(head?.readable_from) > Number(head?.sequence);
  verdict.expect(isClosed || known.length > 0, "nobody reads a D1 that is unknown", head);
}

const DAY = 24 * HOUR;

/**
 * When nothing is under way, everybody repeats their calls and must get the same results: each user device its number, and the
 * server its list.
 */
export async function askEverythingAgain(world: World, party: Party): Promise<void> {
  const { administrator, timeline, book, clients, history } = world;
  const { application, devices, server } = party;
  const credentials = administrator.credentialsOf(application);
  const dice = world.dice.of(`reunion of ${application.id}`);
  administrator.set(application, "require_proof", false);
  await timeline.sleep(MINUTE);
  if (dice.chance(0.3)) {
    const rebind = (number: number) => clients.call("rebind", { ...credentials, number });
    await Promise.all(book.numbersOf(application.id).map(rebind));
    // By then no badge can be bound to another key any more.
    await timeline.sleep(DAY + MINUTE);
    for (let tries = 0; tries < 4; tries++) await attack(world, party.attackersDice, application);
  }
  await askForBadges(world, party);
  await server.walk(null);
  // Every secret that there ever was, retired ones too.
  for (const { row } of history.during("application_secret", { application_id: application.id })) {
    await clients.call("page", { ...credentials, secret: String(row.sealed), userId: null, cursor: null, perPage: 1 });
  }
  for (const device of devices) await device.sign();
}

async function askForBadges({ book, clients, verdict, history, erased }: World, { application }: Party): Promise<void> {
  const all = book.of("badge", { applicationId: application.id });
  for (const attempts of Map.groupBy(all, ({ request }) => `${request.udid} ${request.userId}`).values()) {
    const told = attempts.findLast((attempt) => isGranted(attempt, "badge"));
    const last = told ?? attempts[0];
    if (!last) continue;
    const metadata = JSON.stringify({ os: "last" });
    const outcome = await clients.call("badge", { ...last.request, token: null, metadata });
    const granted = outcome.kind === "granted" ? outcome.granted : null;
    const isRefused =
      outcome.kind === "refused" && /_BADGE$|^BLOCKED_USER$|^INVALID_(PROOF|USERTOKEN)$/.test(outcome.reason);
    const mayBeNew = !told || erased.has(last.request.applicationId, last.request.userId);
    const isKept = granted?.kind === "existing" || isRefused || mayBeNew;
    verdict.expect(isKept, "whoever was answered a badge is answered it again", last.request, outcome);
    const isStored = !granted || history.during("badge", { number: granted.number, metadata }).length > 0;
    verdict.expect(isStored, "the newest metadata is stored", last.request, outcome);
  }
}
