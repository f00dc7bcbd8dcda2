import { Agent } from "node:http";
import { performance } from "node:perf_hooks";
import { setTimeout as wait } from "node:timers/promises";
import { Command } from "commander";
import { note, positiveNumber, runCommand, say } from "../command-line.ts";
import { type Receiver, startReceiver } from "./load.ts";
import { send } from "./load-thread.ts";
import { newBadgeOne, newClients } from "./operations.ts";
import { median, percentile } from "./results.ts";
import { type Side, withSides } from "./sides.ts";

const DESCRIPTION = `Measures what a webhook receiver that hangs costs another application's
receiver (contract section 8: a slow or dead receiver delays nobody else's
events).

An application whose receiver responds at once gets 100 badges:

  alone          nothing else happens
  behind a good  right after another application, whose receiver responds at
  one            once too, got 500 badges: their webhooks are being sent
  behind a       right after an application whose receiver hangs for 15 s got
  hanging one    500 badges
  while it hangs all of those 500 webhooks have been sent, and none is answered

What is shown is the time from the response of a badge to the arrival of its
webhook. Locally one thread does everything, D1, queue and Worker alike, so
500 events cost time whoever receives them; what hanging costs is the
difference between the second and the third, and between the first and the
last.`;

const HEALTHY_BADGES = 100;
const OTHER_BADGES = 500;
const CLIENTS = 64;
/** The longest that a delivery may take. */
const HANG_MILLISECONDS = 15_000;
const PAUSE_MILLISECONDS = 2000;

const MOMENTS = ["alone", "behind a good one", "behind a hanging one", "while it hangs"] as const;
type Moment = (typeof MOMENTS)[number];
type Figures = { p50: number; p99: number };

const { rounds } = new Command("npm run bench:isolation --")
  .description(DESCRIPTION)
  .option("--rounds <n>", "how often everything is measured", positiveNumber, 3)
  .parse()
  .opts<{ rounds: number }>();

await runCommand(() => withSides(["service"], { consumes: true }, (side) => run(side("service"))));

async function run(side: Side): Promise<void> {
  const receiver = await startReceiver({ hanging: HANG_MILLISECONDS });
  try {
    const healthy = await subjectOf(side, receiver, "healthy");
    const other = await subjectOf(side, receiver, "other");
    const hanging = await subjectOf(side, receiver, "hanging");
    await healthy.deliver();
    const measured: Record<Moment, Figures>[] = [];
    for (let round = 1; round <= rounds; round++) {
      note(`round ${round} of ${rounds} …`);
      const alone = await healthy.deliver();
      await wait(PAUSE_MILLISECONDS);
      const good = await other.issue(OTHER_BADGES);
      const behindGood = await healthy.deliver();
      await other.arrived(good);
      await wait(PAUSE_MILLISECONDS);
      const held = await hanging.issue(OTHER_BADGES);
      const behindHanging = await healthy.deliver();
      await hanging.arrived(held);
      const whileHanging = await healthy.deliver();
      await wait(HANG_MILLISECONDS + PAUSE_MILLISECONDS);
      measured.push({
        alone,
        "behind a good one": behindGood,
        "behind a hanging one": behindHanging,
        "while it hangs": whileHanging,
      });
    }
    report(measured);
  } finally {
    receiver.close();
  }
}

/** An application with its receiver. */
async function subjectOf(side: Side, receiver: Receiver, path: string) {
  const withWebhook = [await side.makeApplication(receiver.url(path))];
  const clients = newClients({ withWebhook, withoutWebhook: [] });
  const arrivals = receiver.arrivals(path);
  /** @returns when each badge was answered */
  const issue = async (badges: number) => {
    const agent = new Agent({ keepAlive: true, maxSockets: CLIENTS });
    const answered = new Map<string, number>();
    const calls = newBadgeOne.next(clients, badges).map(async ({ call, check }) => {
      const checked = check(await send(agent, side.port, call));
      answered.set(clients.devices.at(-1)?.badgeId ?? "", performance.now());
      await checked;
    });
    await Promise.all(calls);
    agent.destroy();
    return answered;
  };
  const arrived = async (answered: ReadonlyMap<string, number>) => {
    while ([...answered.keys()].some((id) => !arrivals.has(id))) await wait(5);
  };
  /** Issues badges and waits for their webhooks. @returns milliseconds from a badge's response to its webhook's arrival */
  const deliver = async (): Promise<Figures> => {
    const answered = await issue(HEALTHY_BADGES);
    await arrived(answered);
    const delays = Float64Array.from([...answered], ([id, at]) => (arrivals.get(id) ?? Number.NaN) - at);
    return { p50: percentile(delays, 0.5), p99: percentile(delays, 0.99) };
  };
  return { issue, arrived, deliver };
}

function report(measured: readonly Record<Moment, Figures>[]): void {
  for (const moment of MOMENTS) {
    const shown = (which: keyof Figures) =>
      `${median(measured.map((round) => round[moment][which])).toFixed(0)} ms`.padStart(8);
    say(`${moment.padEnd(22)} p50 ${shown("p50")}   p99 ${shown("p99")}`);
  }
  const times = (one: Moment, other: Moment) =>
    median(measured.map((round) => round[one].p99 / round[other].p99)).toFixed(2);
  say(
    `p99 while it hangs: ${times("while it hangs", "alone")} times that alone; ` +
      `behind a hanging one: ${times("behind a hanging one", "behind a good one")} times that behind a good one`,
  );
}
