import { isGranted } from "../invariants/book.ts";
import { HOUR, MINUTE } from "../plan.ts";
import type { World } from "../world.ts";
import type { Party } from "./actors.ts";
import { attack } from "./attacker.ts";

const DAY = 24 * HOUR;
/** Ranges up to this are used up in the end. */
const SMALL_RANGE_NUMBERS = 20;

/**
 * When all is quiet, everybody asks once more and gets what they were told before: each user device its number, the
 * server its list, and every number of a small range is still there for somebody.
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
  // Not in every seed: it takes as long as all the rest.
  if (application.numbersAtFirst <= SMALL_RANGE_NUMBERS && dice.chance(0.4)) await useUpRange(world, party);
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

/** New users come until one gets no number: by then every number of the range is somebody's. */
async function useUpRange(world: World, { application, devices: [device] }: Party): Promise<void> {
  const { history, verdict, timeline, administrator, replica } = world;
  const { firstNumber, numbersAtFirst, reuseAfterSeconds } = application;
  const lastNumber = administrator.lastNumberOf(application);
  // Freed numbers have rested by then.
  await timeline.sleep(reuseAfterSeconds * 1000 + 1000);
  await timeline.rest();
  for (let number = firstNumber; number <= lastNumber; number++) await device?.requestAs(`newcomer ${number}`);
  const numbers = Array.from({ length: lastNumber - firstNumber + 1 }, (_, place) => firstNumber + place);
  const lost = numbers.filter((number) => history.issuedAt(number) === Infinity);
  // Of those by which the range grew, callers that do not know them yet skip some.
  verdict.expect(
    lost.length <= numbers.length - numbersAtFirst + replica.countBurned(application.id),
    "no number is ever lost",
    lost,
  );
}
