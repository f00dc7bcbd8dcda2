import { setTimeout as wait } from "node:timers/promises";
import { Command } from "commander";
import { and, eq, like } from "drizzle-orm";
import { badge, webhookEvent } from "../../../src/shared/schema.ts";
import { type Exchange, faultsOf, type Pace, send } from "../bench/load.ts";
import { Clients, existing, newBadgeOne, sign } from "../bench/operations.ts";
import { percentile } from "../bench/rounds.ts";
import { makeApplication, type Side, withSides } from "../bench/sides.ts";
import { positiveNumber, runCommand, say } from "../command-line.ts";

const DESCRIPTION = `Offers the service ten times what it sustains, and looks whether it keeps its
promises meanwhile and its speed afterwards. It fails (exit code 1) when a response is neither right nor 429 or 503 with
Retry-After; when within ten seconds the p99 of the light load is not 1.5 times what
it was and 20 ms, or less; and when D1 then has not exactly one badge for each phone,
with the number that it was answered, and one event for each badge.`;

const WARM_UP_CALLS = 600;
const TRIAL_CALLS = 1200;
const FACTOR = 10;
const TIMEOUT_MILLISECONDS = 10_000;
/** Few enough calls that they do not wait for each other. */
const LIGHT = { clients: 64, rate: 50, timeoutMilliseconds: 20_000 };
const LIGHT_SECONDS = 8;
const WINDOW_SECONDS = 2;
const RECOVERY_SECONDS = 10;

const { seconds, connections } = new Command("npm run overload --")
  .description(DESCRIPTION)
  .option("--seconds <n>", "how long the overload lasts", positiveNumber, 60)
  .option("--connections <n>", "connections of the overload, at most", positiveNumber, 500)
  .parse()
  .opts<{ seconds: number; connections: number }>();

/** @returns what the service did that it must not, in sentences; empty when all is well */
async function overload(side: Side): Promise<string[]> {
  // An event is recorded for every badge; no consumer runs, so none is sent.
  const application = await makeApplication(side, "https://hooks.example/");
  const { id } = application;
  const clients = new Clients([application]);
  const wrong: string[] = [];

  /** Half of the phones are new; of the others most sign, and the rest ask for their badge once more. */
  function next() {
    if (clients.devices.length === 0 || Math.random() < 0.5) return newBadgeOne.next(clients);
    return (Math.random() < 0.8 ? sign : existing).next(clients);
  }

  const load = (count: number, pace: Omit<Pace, "port">) =>
    send({ port: side.port, ...pace }, Array.from({ length: Math.round(count) }, next));

  /** Checks the responses, and says how the load went. @returns its p99; NaN if not all calls were granted */
  async function judge(name: string, { exchanges, busy }: Awaited<ReturnType<typeof load>>): Promise<number> {
    wrong.push(...(await faultsOf(exchanges.filter((exchange) => !isExcused(exchange)))));
    const outcomes = Map.groupBy(exchanges, outcomeOf);
    const granted = (outcomes.get("2xx") ?? []).map(({ milliseconds }) => milliseconds);
    const [p50, p99] = [percentile(granted, 0.5), percentile(granted, 0.99)];
    const counted = [...outcomes].map(([outcome, { length }]) => `${length} × ${outcome}`).join(", ");
    const times = `p50 ${Math.round(p50)} ms, p99 ${Math.round(p99)} ms of 2xx`;
    say(`${name}: ${counted}; ${times}; load generator busy ${Math.round(busy * 100)} %`);
    return granted.length === exchanges.length ? p99 : Number.NaN;
  }

  await judge("warm-up", await load(WARM_UP_CALLS, { clients: LIGHT.clients }));
  const trial = await load(TRIAL_CALLS, { clients: LIGHT.clients });
  await judge(`${LIGHT.clients} connections`, trial);
  const before = await judge("light load before", await load(LIGHT_SECONDS * LIGHT.rate, LIGHT));
  const sustainable = TRIAL_CALLS / trial.seconds;
  const rate = sustainable * FACTOR;

  say(`sustainable: ${Math.round(sustainable)}/s; offered for ${seconds} s: ${Math.round(rate)}/s`);
  const overloading = load(rate * seconds, { clients: connections, rate, timeoutMilliseconds: TIMEOUT_MILLISECONDS });
  await wait(seconds * 1000);

  const endedAt = performance.now();
  const elapsedSeconds = () => (performance.now() - endedAt) / 1000;
  let isAsFast = false;
  while (!isAsFast && elapsedSeconds() + WINDOW_SECONDS <= RECOVERY_SECONDS) {
    const after = await load(WINDOW_SECONDS * LIGHT.rate, LIGHT);
    const p99 = await judge(`light load ${elapsedSeconds().toFixed(1)} s after the end`, after);
    isAsFast = p99 <= before * 1.5 + 20;
  }
  if (!isAsFast) wrong.push("It was not as fast as before within the time.");
  await judge("overload", await overloading);

  // One badge a phone, with the number that it was answered, and one event a badge.
  const ofPhones = and(eq(badge.applicationId, id), like(badge.userId, "user-%"));
  const { database } = side.homes.first;
  const badges = await database.run((orm) => orm.select().from(badge).where(ofPhones));
  const events = await database.run((orm) => orm.$count(webhookEvent, eq(webhookEvent.applicationId, id)));
  const numbers = new Map(badges.map(({ number, userId }) => [userId, String(number)]));
  say(`${clients.devices.length} phones with a badge; ${badges.length} badges and ${events} events in D1`);
  if (numbers.size !== badges.length) wrong.push(`${numbers.size} phones have ${badges.length} badges.`);
  if (events !== badges.length) wrong.push(`${badges.length} badges have ${events} events.`);
  for (const { userId, badgeId } of clients.devices) {
    const number = numbers.get(userId);
    if (number !== badgeId) wrong.push(`${userId} was answered ${badgeId}, D1 has ${number}.`);
  }
  return wrong;
}

/** "2xx", another status, or why there was no response. */
function outcomeOf({ response: { status, body } }: Exchange): string {
  if (status === 0) return /\bE[A-Z]{4,}\b|socket hang up/.exec(body)?.[0] ?? body;
  return status >= 200 && status <= 299 ? "2xx" : String(status);
}

/** An overloaded service may keep silent, or refuse if it says when to come again (contract section 6). */
const isExcused = ({ response: { status, retryAfter } }: Exchange): boolean =>
  status === 0 || ((status === 429 || status === 503) && /^\d+$/.test(retryAfter ?? ""));

await runCommand(() =>
  withSides(["service"], {}, async (sides) => {
    const faults = (await Promise.all(sides.map(overload))).flat();
    say(faults.length === 0 ? "Every promise held." : faults.slice(0, 20).join("\n"));
    if (faults.length > 0) process.exitCode = 1;
  }),
);
