import { once } from "node:events";
import { createServer } from "node:http";
import { setTimeout as wait } from "node:timers/promises";
import { type RunningService, startService } from "../../node/support/service.ts";
import { type Answered, ChaosClient, nothingAnswered } from "./client.ts";
import { Random } from "./random.ts";

export interface ChaosOptions {
  kills: number;
  seed: number;
  clients: number;
  /** Longest time between a start and its kill, in milliseconds. */
  maxLifeMilliseconds: number;
  /** Whether to wait until every event was delivered: a delivery that a kill broke off is made again after a minute. */
  drains: boolean;
  say(line: string): void;
}

export interface ChaosResult {
  /** Badges that had been answered at each kill. */
  badgesAtKills: number[];
  badges: number;
  listed: number;
  events: number;
  deliveries: number;
  counts: Answered["counts"];
}

/** What `webhook list` lists at most; a longer run is not counted. */
const MAX_LISTED_EVENTS = 10_000;

/** How long the queues get to drain after the last start: the lease of a delivery that was under way, and a sweep. */
const DRAIN_MILLISECONDS = 150_000;

/**
 * Kills the service with SIGKILL at random moments under traffic, starts it again on the same state, and checks at the
 * end that everything it ever answered still holds.
 *
 * @throws Error that says which promise was broken
 */
export async function runChaos(options: ChaosOptions): Promise<ChaosResult> {
  const random = new Random(options.seed);
  const receiver = await startReceiver(random);
  let service = await startService();
  try {
    const application = await createApplication(service, receiver.url);
    const answered = nothingAnswered();
    const clients = Array.from({ length: options.clients }, (_, place) => {
      const name = `client${place}`;
      return new ChaosClient(service.origin, application, new Random(random.below(2 ** 31)), name, answered);
    });
    const badgesAtKills: number[] = [];
    for (let kill = 1; kill <= options.kills; kill++) {
      const life = 200 + random.below(options.maxLifeMilliseconds);
      await traffic(clients, () => wait(life).then(() => service.kill()));
      badgesAtKills.push(answered.badges.size);
      options.say(`kill ${kill} of ${options.kills} after ${life} ms: ${progress(answered)}`);
      service = await service.restart();
    }
    await traffic(clients, () => wait(1000));
    const listed = await checkBadges(service, application, answered);
    const events = await countEvents(service, application);
    if (listed.size < MAX_LISTED_EVENTS && events !== listed.size)
      throw new Error(`${listed.size} badges are listed, but there are ${events} events`);
    if (options.drains) await waitForDeliveries(service, application, receiver.received, listed);
    const deliveries = [...receiver.received.values()].reduce((sum, count) => sum + count, 0);
    const { badges, counts } = answered;
    return { badgesAtKills, badges: badges.size, listed: listed.size, events, deliveries, counts };
  } finally {
    await service.stop();
    service.remove();
    receiver.close();
  }
}

const progress = ({ badges, counts }: Answered): string =>
  `${badges.size} badges, ${counts.answered} answers, ${counts.lost} lost`;

/** All clients at once, until `until` is over; then each finishes its step. */
async function traffic(clients: readonly ChaosClient[], until: () => Promise<unknown>): Promise<void> {
  let over = false;
  const end = until().then(() => {
    over = true;
  });
  const work = clients.map(async (client) => {
    while (!over) await client.step();
  });
  await Promise.all([end, ...work]);
}

type Credentials = { applicationId: string; applicationSecret: string };

async function createApplication(service: RunningService, url: string): Promise<Credentials> {
  const created = await service.admin("application", "create", "--name", "Chaos", "--webhook-url", url, "--json");
  if (created.code !== 0) throw new Error(created.stderr);
  return JSON.parse(created.stdout);
}

/** Every badge that was answered is listed under its number, and no number twice. @returns the listed numbers */
async function checkBadges(
  service: RunningService,
  { applicationId: applicationid, applicationSecret: applicationsecret }: Credentials,
  { badges }: Answered,
): Promise<Set<string>> {
  const listed = new Set<string>();
  for (let cursor: string | null = ""; cursor !== null; ) {
    const next = cursor === "" ? "" : `&cursor=${cursor}`;
    const page: Response = await fetch(`${service.origin}/v1/badges?per_page=1000${next}`, {
      headers: { applicationid, applicationsecret },
    });
    const body: { badges: { id: string }[] } = await page.json();
    for (const { id } of body.badges) {
      if (listed.has(id)) throw new Error(`number ${id} is listed twice`);
      listed.add(id);
    }
    cursor = page.headers.get("pagination-cursor");
  }
  const numbers = new Set(badges.values());
  if (numbers.size !== badges.size) throw new Error("two user devices were answered one number");
  for (const [key, number] of badges) {
    if (!listed.has(number)) throw new Error(`${key} was answered ${number}, which is not listed`);
  }
  return listed;
}

/** Events of the outbox, in any state: one a badge. */
async function countEvents(service: RunningService, { applicationId }: Credentials): Promise<number> {
  return (await listEvents(service, applicationId, "--limit", String(MAX_LISTED_EVENTS))).length;
}

/** Every listed badge is told to the receiver at least once, and nothing waits. */
async function waitForDeliveries(
  service: RunningService,
  { applicationId }: Credentials,
  received: ReadonlyMap<string, number>,
  listed: ReadonlySet<string>,
): Promise<void> {
  const deadline = Date.now() + DRAIN_MILLISECONDS;
  const missing = () => [...listed].filter((number) => !received.has(number));
  while (missing().length > 0) {
    if (Date.now() > deadline) throw new Error(`no event came for ${missing().join(", ")}`);
    await wait(500);
  }
  while ((await listEvents(service, applicationId, "--state", "pending")).length > 0) {
    if (Date.now() > deadline) throw new Error("events still wait");
    await wait(2000);
  }
}

async function listEvents(service: RunningService, applicationId: string, ...options: string[]): Promise<unknown[]> {
  const { code, stdout, stderr } = await service.admin("webhook", "list", applicationId, ...options, "--json");
  if (code !== 0) throw new Error(stderr);
  return JSON.parse(stdout);
}

/** Counts deliveries by badge number. A tenth of the events is refused once, so that retries are part of it. */
async function startReceiver(random: Random): Promise<{ url: string; received: Map<string, number>; close(): void }> {
  const received = new Map<string, number>();
  const refused = new Set<string>();
  const server = createServer((request, response) => {
    let body = "";
    request.on("data", (chunk) => (body += chunk));
    request.on("end", () => {
      const { id, data } = JSON.parse(body);
      const fails = random.below(10) === 0 && !refused.has(id);
      if (fails) refused.add(id);
      else received.set(data.id, (received.get(data.id) ?? 0) + 1);
      response.writeHead(fails ? 500 : 204).end();
    });
  }).listen(0, "127.0.0.1");
  await once(server, "listening");
  const address = server.address();
  if (address === null || typeof address === "string") throw new Error("no port");
  return { url: `http://localhost:${address.port}/`, received, close: () => server.close() };
}
