import { grantedNumber } from "../invariants/book.ts";
import type { World } from "../world.ts";
import type { Party } from "./actors.ts";
import type { Device } from "./device.ts";

/** Ranges up to this are used up in the end, to count their numbers. */
const SMALL_RANGE_NUMBERS = 20;
/** Not for every seed: it takes as long as all the rest. */
const USE_UP_CHANCE = 0.4;

/**
 * When all is quiet, everybody asks once more and gets what they were told before: each user device its number, the
 * server its list, and every number of a small range is still there for somebody.
 */
export async function askEverythingAgain(world: World, party: Party): Promise<void> {
  await world.timeline.sleep(60_000);
  await askForBadges(world, party);
  await readList(world, party);
  await party.server.trySecrets();
  await useUpRange(world, party);
}

async function askForBadges({ book, clients, verdict }: World, { application, devices }: Party): Promise<void> {
  for (const attempts of book.badgeAttempts.values()) {
    const request = attempts[0]?.request;
    if (!request || request.applicationId !== application.id) continue;
    const isTold = attempts.some((attempt) => grantedNumber(attempt) !== null);
    const outcome = await clients.call("badge", { ...request, token: null, metadata: JSON.stringify({ os: "last" }) });
    const isExisting = outcome.kind === "granted" && outcome.granted.kind === "existing";
    // For which state `life.ts` has checked.
    const isRefused = outcome.kind === "refused" && /_BADGE$|^BLOCKED_USER$/.test(outcome.reason);
    verdict.expect(
      isExisting || isRefused || !isTold,
      "whoever was answered a badge is answered it again",
      request,
      outcome,
    );
  }
  const [device] = devices;
  await device?.sign();
}

async function readList({ rows, verdict, timeline }: World, { application, server }: Party): Promise<void> {
  await timeline.sleep(1);
  const listed = await server.walk(null);
  const live = rows.liveDuring(application.id, timeline.now, timeline.now, "some");
  verdict.expect(listed?.length === live.length, "pages give exactly the live badges", listed, live);
  const old = listed?.filter(({ metadata, state }) => metadata?.os !== "last" && state !== "suspended") ?? [];
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
