import { once } from "node:events";
import { mkdirSync, mkdtempSync, readdirSync, rmSync } from "node:fs";
import { Agent, createServer, type Server } from "node:http";
import { tmpdir } from "node:os";
import { join } from "node:path";
import { performance } from "node:perf_hooks";
import { setTimeout as wait } from "node:timers/promises";
import { Command, InvalidArgumentError } from "commander";
import { z } from "zod";
import { MIGRATIONS } from "../../../src/admin/platform/paths.ts";
import { generateSealingKey, importSealingPublicKey, seal } from "../../../src/shared/sealing.ts";
import { serviceApplications } from "./applications.ts";
import { send } from "./send.ts";
import { build, start } from "./side.ts";
import { median, percentile } from "./statistics.ts";

const DESCRIPTION = `Measures what a webhook receiver that hangs costs another application's
receiver (contract section 8: a slow or dead receiver delays nobody else's
events).

An application whose receiver answers at once gets 100 badges:

  alone          nothing else happens
  behind a good  right after another application, whose receiver answers
  one            at once too, got 500 badges: their webhooks are being sent
  behind a       right after an application whose receiver hangs for 15 s
  hanging one    got 500 badges
  while it hangs all of those 500 webhooks have been sent, and none is answered

What is shown is the time from the answer of a badge to the arrival of its
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

interface Figures {
  p50: number;
  p99: number;
}

/** A receiver and when each badge's first webhook came to it. */
interface Receiver {
  server: Server;
  url: string;
  arrivals: Map<string, number>;
}

const MOMENTS = ["alone", "behind a good one", "behind a hanging one", "while it hangs"] as const;
type Moment = (typeof MOMENTS)[number];

const event = z.object({ data: z.object({ id: z.string() }) });
const issued = z.object({ badgeId: z.string() });

async function startReceiver(answersAfterMilliseconds: number): Promise<Receiver> {
  const arrivals = new Map<string, number>();
  const server = createServer(async (request, response) => {
    const text = Buffer.concat(await request.toArray()).toString();
    const { id } = event.parse(JSON.parse(text)).data;
    if (!arrivals.has(id)) arrivals.set(id, performance.now());
    setTimeout(() => response.writeHead(204).end(), answersAfterMilliseconds).unref();
  }).listen(0, "127.0.0.1");
  await once(server, "listening");
  const address = server.address();
  if (address === null || typeof address === "string") throw new Error("the receiver has no port");
  return { server, url: `http://127.0.0.1:${address.port}/`, arrivals };
}

interface Subject {
  applicationId: string;
  receiver: Receiver;
}

let devices = 0;

/** Gives an application badges. @returns when each was answered */
async function issue(port: number, { applicationId }: Subject, badges: number): Promise<Map<string, number>> {
  const agent = new Agent({ keepAlive: true, maxSockets: CLIENTS });
  const answered = new Map<string, number>();
  const one = async () => {
    const headers = { applicationid: applicationId, udid: `device-${++devices}` };
    const answer = await send(agent, port, { method: "POST", path: "/v1/badge", headers, body: '{"userId":"user"}' });
    if (answer.status !== 201) throw new Error(`a badge was answered ${answer.status} ${answer.body}`);
    answered.set(issued.parse(JSON.parse(answer.body)).badgeId, performance.now());
  };
  await Promise.all(Array.from({ length: badges }, one));
  agent.destroy();
  return answered;
}

async function arrived({ receiver }: Subject, answered: Map<string, number>): Promise<void> {
  while ([...answered.keys()].some((id) => !receiver.arrivals.has(id))) await wait(5);
}

/** Gives an application badges and waits for their webhooks. @returns from a badge's answer to its arrival */
async function deliver(port: number, subject: Subject, badges: number): Promise<Figures> {
  const { arrivals } = subject.receiver;
  const answered = await issue(port, subject, badges);
  await arrived(subject, answered);
  const delays = Float64Array.from([...answered], ([id, at]) => (arrivals.get(id) ?? Number.NaN) - at);
  return { p50: percentile(delays, 0.5), p99: percentile(delays, 0.99) };
}

interface Subjects {
  healthy: Subject;
  other: Subject;
  hanging: Subject;
}

async function measure(port: number, { healthy, other, hanging }: Subjects): Promise<Record<Moment, Figures>> {
  const alone = await deliver(port, healthy, HEALTHY_BADGES);
  await wait(PAUSE_MILLISECONDS);
  const others = await issue(port, other, OTHER_BADGES);
  const behindGood = await deliver(port, healthy, HEALTHY_BADGES);
  await arrived(other, others);
  await wait(PAUSE_MILLISECONDS);
  const held = await issue(port, hanging, OTHER_BADGES);
  const behindHanging = await deliver(port, healthy, HEALTHY_BADGES);
  await arrived(hanging, held);
  const whileHanging = await deliver(port, healthy, HEALTHY_BADGES);
  await wait(HANG_MILLISECONDS + PAUSE_MILLISECONDS);
  return {
    alone,
    "behind a good one": behindGood,
    "behind a hanging one": behindHanging,
    "while it hangs": whileHanging,
  };
}

/** The Worker as it is deployed, in a workerd of its own, with its queue. */
async function startService(directory: string) {
  mkdirSync(join(directory, "service"));
  await build("service", directory);
  const { publicKey, privateKey } = await generateSealingKey();
  const key = await importSealingPublicKey(publicKey);
  const migrations = readdirSync(MIGRATIONS).filter((name) => name.endsWith(".sql"));
  const tables = migrations.sort().map((name) => join(MIGRATIONS, name));
  const how = { inspects: false, consumes: true };
  const side = await start("service", directory, { SEALING_KEY_1: privateKey }, tables, how);
  const makeApplication = serviceApplications(side.database, {
    version: 1,
    seal: (label, plaintext) => seal(key, label, plaintext),
  });
  return { port: side.port, makeApplication, stop: () => side.stop() };
}

async function main(rounds: number): Promise<void> {
  const directory = mkdtempSync(join(tmpdir(), "badge-isolation-"));
  const service = await startService(directory);
  const receivers = [await startReceiver(0), await startReceiver(0), await startReceiver(HANG_MILLISECONDS)];
  try {
    const [healthy, other, hanging] = await Promise.all(
      receivers.map(async (receiver, place) => {
        const { id } = await service.makeApplication(place, receiver.url);
        return { receiver, applicationId: id };
      }),
    );
    if (!healthy || !other || !hanging) throw new Error("no applications");
    await deliver(service.port, healthy, HEALTHY_BADGES);
    const measured = [];
    for (let round = 1; round <= rounds; round++) {
      process.stderr.write(`round ${round} of ${rounds} …\n`);
      measured.push(await measure(service.port, { healthy, other, hanging }));
    }
    report(measured);
  } finally {
    for (const { server } of receivers) server.close().closeAllConnections();
    await service.stop();
    rmSync(directory, { recursive: true, force: true });
  }
}

function report(measured: readonly Record<Moment, Figures>[]): void {
  const of = (moment: Moment, which: keyof Figures) => median(measured.map((round) => round[moment][which]));
  for (const moment of MOMENTS) {
    const figures = [of(moment, "p50"), of(moment, "p99")].map((each) => `${each.toFixed(0)} ms`.padStart(8));
    process.stdout.write(`${moment.padEnd(22)} p50 ${figures[0]}   p99 ${figures[1]}\n`);
  }
  const times = (one: Moment, other: Moment) =>
    median(measured.map((round) => round[one].p99 / round[other].p99)).toFixed(2);
  process.stdout.write(
    `p99 while it hangs: ${times("while it hangs", "alone")} times that alone; ` +
      `behind a hanging one: ${times("behind a hanging one", "behind a good one")} times that behind a good one\n`,
  );
}

function parseRounds(text: string): number {
  const rounds = Number(text);
  if (!Number.isInteger(rounds) || rounds < 1) throw new InvalidArgumentError("a whole number from 1 on");
  return rounds;
}

const program = new Command("npm run bench:isolation --")
  .description(DESCRIPTION)
  .option("--rounds <number>", "how often everything is measured", parseRounds, 3);

try {
  await main(program.parse().opts<{ rounds: number }>().rounds);
} catch (error) {
  process.stderr.write(`${error instanceof Error ? error.message : String(error)}\n`);
  process.exitCode = 1;
}
