import { grantedNumber } from "../invariants/book.ts";
import type { World } from "../world.ts";
import type { Party } from "./actors.ts";
import { attack } from "./attacker.ts";
import type { Device } from "./device.ts";

/** Ranges up to this are used up in the end, to count their numbers. */
const SMALL_RANGE_NUMBERS = 20;
/** Not for every seed: it takes as long as all the rest. */
const USE_UP_CHANCE = 0.4;
const DAY = 24 * 3_600_000;
const DAY_LATER_CHANCE = 0.3;
const LATE_ATTACKS = 4;

/**
 * When all is quiet, everybody asks once more and gets what they were told before: each user device its number, the
 * server its list, and every number of a small range is still there for somebody.
 */
export async function askEverythingAgain(world: World, party: Party): Promise<void> {
  await world.timeline.sleep(60_000);
  await tryKeysADayLater(world, party);
  const granted = await askForBadges(world, party);
  await readList(world, party, granted);
  await party.server.trySecrets();
  await useUpRange(world, party);
}

/** By then no badge can be bound to another key any more, unless somebody lets it. */
async function tryKeysADayLater(world: World, { application, attackersDice }: Party): Promise<void> {
  const dice = world.dice.of(`day after ${application.id}`);
  if (!dice.chance(DAY_LATER_CHANCE)) return;
  await world.timeline.sleep(DAY);
  for (let tries = 0; tries < LATE_ATTACKS; tries++) await attack(world, attackersDice, application);
}

/** @returns the numbers that were answered, as text */
async function askForBadges({ book, clients, verdict }: World, { application, devices }: Party): Promise<Set<string>> {
  const granted = new Set<string>();
  for (const attempts of book.badgeAttempts.values()) {
    const request = (attempts.findLast((attempt) => grantedNumber(attempt) !== null) ?? attempts[0])?.request;
    if (!request || request.applicationId !== application.id) continue;
    const isTold = attempts.some((attempt) => grantedNumber(attempt) !== null);
    const outcome = await clients.call("badge", { ...request, token: null, metadata: JSON.stringify({ os: "last" }) });
    const isExisting = outcome.kind === "granted" && outcome.granted.kind === "existing";
    // For which state `life.ts` has checked, for which key `bindings.ts`.
    const isRefused = outcome.kind === "refused" && /_BADGE$|^BLOCKED_USER$|^INVALID_PROOF$/.test(outcome.reason);
    if (isExisting) granted.add(String(outcome.granted.number));
    verdict.expect(
      isExisting || isRefused || !isTold,
      "whoever was answered a badge is answered it again",
      request,
      outcome,
    );
  }
  const [device] = devices;
  await device?.sign();
  return granted;
}

async function readList(
  { rows, verdict, timeline }: World,
  { application, server }: Party,
  granted: ReadonlySet<string>,
): Promise<void> {
  await timeline.sleep(1);
  const listed = await server.walk(null);
  const live = rows.liveDuring(application.id, timeline.now, timeline.now, "some");
  verdict.expect(listed?.length === live.length, "pages give exactly the live badges", listed, live);
  const old = listed?.filter(({ id, metadata }) => metadata?.os !== "last" && granted.has(id)) ?? [];
  verdict.expect(old.length === 0, "the newest metadata is listed", old);
}

async function useUpRange(world: World, { application, devices }: Party): Promise<void> {
  const { rows, verdict, timeline } = world;
  const { firstNumber, lastNumber, numbersAtFirst, reuseAfterSeconds } = application;
  const [device] = devices;
  if (!device) return;
  if (numbersAtFirst > SMALL_RANGE_NUMBERS || !world.dice.of(`end of ${application.id}`).chance(USE_UP_CHANCE)) {
    await device.requestAs("newcomer");
    return;
  }
  const size = lastNumber - firstNumber + 1;
  // First before the freed numbers have rested, then once more when all have, and alarms have reclaimed old leases.
  await useUp(device, "hasty", size);
  await timeline.sleep(reuseAfterSeconds * 1000 + 1000);
  await timeline.rest();
  const isUsedUp = await useUp(device, "patient", size);
  verdict.expect(isUsedUp, "a range has no more numbers than it has", size);
  const issued = [...rows.issued.keys()].filter((number) => number >= firstNumber && number <= lastNumber);
  const known = new Set([...issued, ...rows.mayBeLost(application)]);
  verdict.expect(known.size === size, "no number is ever lost", `${issued.length} of ${size} were issued`);
}

/** New users come until one gets no number. @returns whether one got none */
async function useUp(device: Device, name: string, size: number): Promise<boolean> {
  for (let newcomer = 0; newcomer <= size; newcomer++) {
    const outcome = await device.requestAs(`${name}-${newcomer}`);
    if (outcome.kind !== "granted") return true;
  }
  return false;
}
