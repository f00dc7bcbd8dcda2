import { setTimeout as wait } from "node:timers/promises";
import { z } from "zod";
import {
  BadgeServiceError,
  type BadgeState,
  DeviceClient,
  NoResponseError,
  ServerClient,
} from "../../../src/client/index.ts";
import { startService } from "../../node/support/service.ts";
import { startReceiver } from "../bench/load.ts";
import { Dice } from "../dice.ts";

export interface ChaosOptions {
  kills: number;
  seed: number;
  /** How many call at once in each home. */
  clients: number;
  /** Longest time between a start and its kill, in milliseconds. */
  maxLifeMilliseconds: number;
  say(line: string): void;
}

const created = z.object({
  ...{ applicationId: z.string(), applicationSecret: z.string() },
  ...{ firstNumber: z.number(), lastNumber: z.number() },
});

/** For the queue to drain after the last start: the lease of a delivery that was under way, and a sweep. */
const DRAIN_MILLISECONDS = 150_000;

/** Each has an application of its own, and clients of its own that call it. */
const HOMES = [1, 2];

/**
 * Kills the service with SIGKILL at random moments under traffic in two homes, restarts it on the same state, and checks at
 * the end that everything it ever answered still holds, in each home, and that the numbers of each are its own.
 *
 * @returns the smaller number of badges that had been answered in a home, at each kill; and of each home: badges that had
 *   been answered; those that are listed; those in the copy by the feed, which has ended ones too; events, deliveries, and
 *   calls by outcome
 * @throws Error that says which promise was broken
 */
export async function runChaos({ kills, seed, say, ...options }: ChaosOptions) {
  const dice = new Dice(seed);
  // A tenth of the events is refused once, so that retries are part of the run.
  const refused = new Set<string>();
  const refuses = (eventId: string) => dice.below(10) === 0 && refused.size < refused.add(eventId).size;
  const receiver = await startReceiver(refuses);
  let service = await startService();
  try {
    const traffics: Traffic[] = [];
    for (const home of HOMES) {
      const settings = ["--name", "Chaos", "--home", `${home}`, "--webhook-url", receiver.url(`home${home}`), "--json"];
      const { stdout, stderr } = await service.admin("application", "create", ...settings);
      if (stdout === "") throw new Error(stderr);
      traffics.push(new Traffic(home, service.origin, created.parse(JSON.parse(stdout)), dice, options.clients));
    }
    const until = (end: Promise<unknown>) => Promise.all(traffics.map((traffic) => traffic.until(end)));
    const badgesAtKills: number[] = [];
    for (let kill = 1; kill <= kills; kill++) {
      const life = 200 + dice.below(options.maxLifeMilliseconds);
      await until(wait(life).then(() => service.kill()));
      badgesAtKills.push(Math.min(...traffics.map(({ badges }) => badges.size)));
      const progress = traffics.map(({ home, badges, counts }) => {
        return `home ${home}: ${badges.size} badges, ${counts.answered} responses, ${counts.lost} lost`;
      });
      say(`kill ${kill} of ${kills} after ${life} ms; ${progress.join("; ")}`);
      service = await service.restart();
    }
    await until(wait(1000));
    const check = async (traffic: Traffic) => {
      const { home, badges, counts, server } = traffic;
      const listed = await traffic.checkList();
      const mirrored = await traffic.checkMirror(listed);
      const events = await count(server.listEvents({ perPage: 1000 }).events());
      if (events !== mirrored) throw new Error(`${mirrored} badges were issued, but there are ${events} events`);
      const arrivals = receiver.arrivals(`home${home}`);
      await drain(server, () => [...listed.keys()].filter((number) => !arrivals.has(number)));
      const deliveries = [...arrivals.values()].reduce((sum, times) => sum + times, 0);
      return { home, badges: badges.size, listed: listed.size, mirrored, events, deliveries, counts };
    };
    const homes = await Promise.all(traffics.map(check));
    const issued = traffics.map(({ numbers }) => numbers);
    for (const [index, { home, range }] of traffics.entries()) {
      const all = issued.flat().filter((number) => number >= range.firstNumber && number <= range.lastNumber);
      // Numbers are scattered over their range, so those of overlapping ranges would hardly ever meet by themselves.
      const isOwn = all.join() === issued[index]?.join();
      if (!isOwn) throw new Error(`home ${home} issued a number outside its range, or the other home one inside it`);
    }
    return { badgesAtKills, homes };
  } finally {
    await service.stop();
    service.remove();
    receiver.close();
  }
}

async function count(items: AsyncIterable<unknown>): Promise<number> {
  let length = 0;
  for await (const _ of items) length++;
  return length;
}

/** Waits until every listed badge has reached the receiver and no event is pending. */
async function drain(server: ServerClient, missing: () => string[]): Promise<void> {
  const deadline = Date.now() + DRAIN_MILLISECONDS;
  while (missing().length > 0 || (await count(server.listEvents({ state: "pending" }).events())) > 0) {
    if (Date.now() > deadline) throw new Error(`events are still pending; none came for: ${missing().join(", ")}`);
    await wait(1000);
  }
}

const SUSPEND = ["suspendBadge", "suspended"] as const;
const RESUME = ["resumeBadge", "active"] as const;
const REVOKE = ["revokeBadge", "revoked"] as const;

interface Client {
  name: string;
  dice: Dice;
  devices: number;
  /** Calls whose response was lost: repeated, as a phone does. */
  lost: [udid: string, userId: string, token: string | undefined][];
}

/** Clients that call at random and hold every response against the earlier ones. */
class Traffic {
  /** What the service answered, and must still say: number by user device, `udid/userId`. */
  readonly badges = new Map<string, string>();
  readonly counts = { answered: 0, lost: 0 };
  readonly home: number;
  readonly range: { firstNumber: number; lastNumber: number };
  readonly server: ServerClient;
  /** Tokens that nobody presented yet. */
  readonly #pending = new Set<string>();
  /** The last step of each badge; `unknown` when its response was lost. One that may be revoked takes no other. */
  readonly #steps = new Map<string, { state: BadgeState | "unknown"; mayBeRevoked: boolean }>();
  /** A copy of the badges, kept by the feed: state by number. */
  readonly #mirror = new Map<string, string>();
  #feed: { cursor: string | null; change: number } = { cursor: null, change: 0 };
  readonly #options: ConstructorParameters<typeof ServerClient>[0];
  readonly #clients: Client[];

  constructor(home: number, baseUrl: string, application: z.infer<typeof created>, dice: Dice, clients: number) {
    this.home = home;
    this.range = application;
    // What is lost is repeated here, later and beside other calls.
    const { applicationId, applicationSecret } = application;
    this.#options = { baseUrl, applicationId, applicationSecret, maxTries: 1, timeoutMilliseconds: 20_000 };
    this.server = new ServerClient(this.#options);
    this.#clients = Array.from({ length: clients }, (_, place) => {
      return { name: `client${place}`, dice: new Dice(dice.below(2 ** 31)), devices: 0, lost: [] };
    });
  }

  /** All clients call until `end`; then each finishes its step. @throws Error when a response contradicts an earlier one */
  async until(end: Promise<unknown>): Promise<void> {
    let isOver = false;
    const ended = end.then(() => {
      isOver = true;
    });
    const repeat = async (act: () => Promise<unknown>) => {
      while (!isOver) await act();
    };
    const follow = async () => {
      await this.#follow().catch(requireLost);
      await wait(50);
    };
    const work = this.#clients.map((client) => repeat(() => this.#act(client)));
    await Promise.all([ended, repeat(follow), ...work]);
  }

  /** Of all badges that the feed told of, ended ones too. */
  get numbers(): number[] {
    return [...this.#mirror.keys()].map(Number);
  }

  /** Every badge that was answered is listed under its number, and no number twice. @returns the listed states by number */
  async checkList(): Promise<Map<string, string>> {
    const listed = new Map<string, string>();
    for await (const { id, state } of this.server.listBadges({ perPage: 1000 }).badges()) {
      if (listed.has(id)) throw new Error(`number ${id} is listed twice`);
      listed.set(id, state ?? "active");
    }
    if (new Set(this.badges.values()).size !== this.badges.size)
      throw new Error("two user devices were answered one number");
    for (const [key, number] of this.badges) {
      const isMissing = !listed.has(number) && !this.#steps.get(number)?.mayBeRevoked;
      if (isMissing) throw new Error(`${key} was answered ${number}, which is not listed`);
    }
    return listed;
  }

  /** The copy is exactly what is listed, and has the state of each last step. @returns how many badges it has */
  async checkMirror(listed: ReadonlyMap<string, string>): Promise<number> {
    await this.#follow();
    const live = [...this.#mirror].filter(([, state]) => state !== "revoked");
    const isExact = live.length === listed.size && live.every(([id, state]) => listed.get(id) === state);
    if (!isExact)
      throw new Error(`the copy has ${live.length} live badges, ${listed.size} are listed, or states differ`);
    for (const [id, { state }] of this.#steps) {
      const copied = this.#mirror.get(id);
      if (state !== "unknown" && copied !== state)
        throw new Error(`${id} was answered ${state}, the copy has ${copied}`);
    }
    return this.#mirror.size;
  }

  /** Reads the feed from where the last page ended. */
  async #follow(): Promise<void> {
    for await (const { changes, cursor } of this.server.changes({ cursor: this.#feed.cursor, perPage: 50 })) {
      for (const { id, state, change } of changes) {
        if (change <= this.#feed.change) throw new Error(`change ${change} comes after ${this.#feed.change}`);
        this.#feed.change = change;
        this.#mirror.set(id, state);
      }
      this.#feed.cursor = cursor;
    }
  }

  async #act(client: Client): Promise<void> {
    const { dice, name } = client;
    const what = dice.next();
    const lost = client.lost.pop();
    const own = dice.pick([...this.badges].filter(([key]) => key.startsWith(name)));
    if (lost) return this.#login(client, ...lost);
    if (what < 0.12) return this.#takeStep(dice, own?.[1]);
    if (what < 0.5) return this.#login(client, `${name}-${client.devices++}`, "user", undefined);
    if (what < 0.65) {
      const [udid = "", userId = ""] = own?.[0].split("/") ?? [];
      return own === undefined ? undefined : this.#login(client, udid, userId, undefined);
    }
    const token = what < 0.8 ? undefined : dice.pick([...this.#pending]);
    if (token === undefined) return this.#invite(name);
    this.#pending.delete(token);
    if (what < 0.92) return this.#login(client, `${name}-${client.devices++}`, "guest", token);
    await this.#unlessLost(this.server.revokeInvitation(token));
  }

  /** Suspends, resumes or revokes a badge that was answered. */
  async #takeStep(dice: Dice, number: string | undefined): Promise<void> {
    if (number === undefined || this.#steps.get(number)?.mayBeRevoked) return;
    const [step, expected] = dice.oneOf([SUSPEND, SUSPEND, RESUME, RESUME, REVOKE]);
    const mayBeRevoked = step === "revokeBadge";
    this.#steps.set(number, { state: "unknown", mayBeRevoked });
    const badge = await this.#unlessLost(this.server[step](number));
    if (badge === null) return;
    if (badge.state !== expected) throw new Error(`${step} of ${number}: ${badge.state}`);
    this.#steps.set(number, { state: expected, mayBeRevoked });
  }

  async #login(client: Client, udid: string, userId: string, token: string | undefined): Promise<void> {
    const key = `${udid}/${userId}`;
    const device = new DeviceClient({ ...this.#options, udid });
    const request = device.requestBadge({ userId, invitationToken: token }).catch((error: unknown) => codeOf(error));
    const badge = await this.#unlessLost(request);
    if (badge === null) {
      client.lost.push([udid, userId, token]);
      return;
    }
    const known = this.badges.get(key);
    const { state } = this.#steps.get(known ?? "") ?? { state: "active" };
    // A step may have been taken whose response was lost.
    if (typeof badge === "string" && state !== "active") return;
    if (typeof badge === "string") throw new Error(`${key} had ${known} and was refused: ${badge}`);
    if (!["active", "unknown"].includes(state)) throw new Error(`${key} logged in with a badge that was ended`);
    const isNew = badge.created && known !== undefined;
    if (isNew || (known !== undefined && known !== badge.badgeId))
      throw new Error(`${key} had ${known} and was answered ${badge.created ? "a new" : "the"} ${badge.badgeId}`);
    this.badges.set(key, badge.badgeId);
  }

  async #invite(name: string): Promise<void> {
    const expiresAt = new Date(Date.now() + 3600_000);
    const invitation = await this.#unlessLost(this.server.createInvitation({ expiresAt, udid: `${name}-host` }));
    if (invitation) this.#pending.add(invitation.id);
  }

  /** @returns null when the response was lost */
  async #unlessLost<Result>(call: Promise<Result>): Promise<Result | null> {
    try {
      const result = await call;
      this.counts.answered++;
      return result;
    } catch (error) {
      requireLost(error);
      this.counts.lost++;
      return null;
    }
  }
}

/** There was no response, or 503, or an error page of the runtime: nothing is known then. Every other error is thrown. */
function requireLost(error: unknown): void {
  const isPage = error instanceof BadgeServiceError && error.code === null && error.status >= 500;
  const isUnavailable = error instanceof BadgeServiceError && error.status === 503;
  if (!isPage && !isUnavailable && !(error instanceof NoResponseError)) throw error;
}

/** What a badge is refused for that has ended. */
function codeOf(error: unknown): "SUSPENDED_BADGE" | "REVOKED_BADGE" {
  const code = error instanceof BadgeServiceError ? error.code : null;
  if (code === "SUSPENDED_BADGE" || code === "REVOKED_BADGE") return code;
  throw error;
}
