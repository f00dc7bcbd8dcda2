import { setTimeout as wait } from "node:timers/promises";
import { z } from "zod";
import { type RunningService, startService } from "../../node/support/service.ts";
import { startReceiver } from "../bench/load.ts";
import { Dice } from "../dice.ts";

export interface ChaosOptions {
  kills: number;
  seed: number;
  clients: number;
  /** Longest time between a start and its kill, in milliseconds. */
  maxLifeMilliseconds: number;
  /** Whether to wait until every event was delivered: a delivery that a kill interrupted is retried after a minute. */
  drains: boolean;
  say(line: string): void;
}

export interface ChaosResult {
  /** Badges that had been answered at each kill. */
  badgesAtKills: number[];
  badges: number;
  listed: number;
  /** Badges in the copy that was kept by the feed, ended ones too. */
  mirrored: number;
  events: number;
  deliveries: number;
  /** Calls by outcome. */
  counts: { answered: number; lost: number };
}

const credentials = z.object({ applicationId: z.string(), applicationSecret: z.string() });
const badgePage = z.object({ badges: z.array(z.object({ id: z.string(), state: z.literal("suspended").optional() })) });
const changesPage = z.object({
  changes: z.array(z.object({ id: z.string(), state: z.string(), change: z.number() })),
  more: z.boolean(),
});
const granted = z.object({
  id: z.string().optional(),
  badgeId: z.string().optional(),
  state: z.string().optional(),
  error: z.string().optional(),
});

const STEPS = { suspend: "suspended", resume: "active", revoke: "revoked" } as const;
/** What a login is answered when a step may have been taken whose response was lost. */
const ENDED = ["SUSPENDED_BADGE", "REVOKED_BADGE"];

/** `webhook list` lists no more; in a longer run events are not counted. */
const MAX_LISTED_EVENTS = 10_000;
/** For the queue to drain after the last start: the lease of a delivery that was under way, and a sweep. */
const DRAIN_MILLISECONDS = 150_000;

/**
 * Kills the service with SIGKILL at random moments under traffic, restarts it on the same state, and checks at the end
 * that everything it ever answered still holds.
 *
 * @throws Error that says which promise was broken
 */
export async function runChaos({ kills, seed, say, ...options }: ChaosOptions): Promise<ChaosResult> {
  const dice = new Dice(seed);
  // A tenth of the events is refused once, so that retries are part of the run.
  const refused = new Set<string>();
  const refuses = (eventId: string) => dice.below(10) === 0 && refused.size < refused.add(eventId).size;
  const receiver = await startReceiver(refuses);
  let service = await startService();
  try {
    const created = await admin(
      service,
      "application",
      "create",
      "--name",
      "Chaos",
      "--webhook-url",
      receiver.url("chaos"),
    );
    const application = credentials.parse(created);
    const traffic = new Traffic(service.origin, application, dice, options.clients);
    const { badges, counts } = traffic;
    const badgesAtKills: number[] = [];
    for (let kill = 1; kill <= kills; kill++) {
      const life = 200 + dice.below(options.maxLifeMilliseconds);
      await traffic.until(() => wait(life).then(() => service.kill()));
      badgesAtKills.push(badges.size);
      const progress = `${badges.size} badges, ${counts.answered} responses, ${counts.lost} lost`;
      say(`kill ${kill} of ${kills} after ${life} ms: ${progress}`);
      service = await service.restart();
    }
    await traffic.until(() => wait(1000));
    const listed = await traffic.checkList();
    const mirrored = await traffic.checkMirror(listed);
    const list = (...filter: string[]) => listEvents(service, application.applicationId, ...filter);
    const events = (await list("--limit", String(MAX_LISTED_EVENTS))).length;
    if (mirrored < MAX_LISTED_EVENTS && events !== mirrored)
      throw new Error(`${mirrored} badges were issued, but there are ${events} events`);
    if (options.drains)
      await drain(receiver.arrivals("chaos"), new Set(listed.keys()), () => list("--state", "pending"));
    const deliveries = [...receiver.arrivals("chaos").values()].reduce((sum, count) => sum + count, 0);
    return { badgesAtKills, badges: badges.size, listed: listed.size, mirrored, events, deliveries, counts };
  } finally {
    await service.stop();
    service.remove();
    receiver.close();
  }
}

async function admin(service: RunningService, ...words: string[]): Promise<unknown> {
  const { code, stdout, stderr } = await service.admin(...words, "--json");
  if (code !== 0) throw new Error(stderr);
  return JSON.parse(stdout);
}

const listEvents = async (service: RunningService, applicationId: string, ...filter: string[]): Promise<unknown[]> =>
  z.array(z.unknown()).parse(await admin(service, "webhook", "list", applicationId, ...filter));

/** Waits until every listed badge has reached the receiver and no event is pending. */
async function drain(
  received: ReadonlyMap<string, number>,
  listed: ReadonlySet<string>,
  pending: () => Promise<unknown[]>,
): Promise<void> {
  const deadline = Date.now() + DRAIN_MILLISECONDS;
  for (;;) {
    const missing = [...listed].filter((number) => !received.has(number));
    if (missing.length === 0 && (await pending()).length === 0) return;
    if (Date.now() > deadline) throw new Error(`events are still pending; none came for: ${missing.join(", ")}`);
    await wait(1000);
  }
}

interface Client {
  name: string;
  dice: Dice;
  devices: number;
  /** Calls whose response was lost: repeated, as a phone does. */
  lost: [udid: string, userId: string, token: string | null][];
}

/** A response that no loss explains. */
class Contradiction extends Error {}

/** Clients that call at random and hold every response against the earlier ones. */
class Traffic {
  /** What the service answered, and must still say: number by user device, `udid/userId`. */
  readonly badges = new Map<string, string>();
  readonly counts = { answered: 0, lost: 0 };
  /** Tokens that nobody presented yet. */
  readonly #pending = new Set<string>();
  /** The last step of each badge; `unknown` when its response was lost. One that may be revoked takes no other. */
  readonly #steps = new Map<string, { state: string; mayBeRevoked: boolean }>();
  /** A copy of the badges, kept by the feed: state by number. */
  readonly #mirror = new Map<string, string>();
  #feed = { cursor: "", change: 0 };
  readonly #origin: string;
  readonly #headers: { applicationid: string; applicationsecret: string };
  readonly #clients: Client[];

  constructor(origin: string, application: z.infer<typeof credentials>, dice: Dice, clients: number) {
    this.#origin = origin;
    this.#headers = { applicationid: application.applicationId, applicationsecret: application.applicationSecret };
    this.#clients = Array.from({ length: clients }, (_, place) => {
      return { name: `client${place}`, dice: new Dice(dice.below(2 ** 31)), devices: 0, lost: [] };
    });
  }

  /** All clients call until `end` is over; then each finishes its step. @throws Error when a response contradicts an earlier one */
  async until(end: () => Promise<unknown>): Promise<void> {
    let isOver = false;
    const ended = end().then(() => {
      isOver = true;
    });
    const repeat = async (act: () => Promise<unknown>) => {
      while (!isOver) await act();
    };
    const work = this.#clients.map((client) => repeat(() => this.#step(client)));
    await Promise.all([ended, repeat(() => this.#follow()), ...work]);
  }

  /** The copy is exactly what is listed, and has the state of each last step. @returns how many badges it has */
  async checkMirror(listed: ReadonlyMap<string, string>): Promise<number> {
    while ((await this.#follow()) !== false);
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

  /** Reads a page of the feed from where the last one ended. @returns whether more follow; null when none came */
  async #follow(): Promise<boolean | null> {
    try {
      const url = `${this.#origin}/v1/changes?per_page=50${this.#feed.cursor}`;
      const response = await fetch(url, { headers: this.#headers, signal: AbortSignal.timeout(20_000) });
      if (response.status !== 200) throw new Error(String(response.status));
      const { changes, more } = changesPage.parse(await response.json());
      for (const { id, state, change } of changes) {
        if (change <= this.#feed.change) throw new Contradiction(`change ${change} comes after ${this.#feed.change}`);
        this.#feed.change = change;
        this.#mirror.set(id, state);
      }
      this.#feed.cursor = `&cursor=${response.headers.get("pagination-cursor")}`;
      if (!more) await wait(50);
      return more;
    } catch (error) {
      if (error instanceof Contradiction) throw error;
      await wait(50);
      return null;
    }
  }

  /** Suspends, resumes or revokes a badge that this client was answered. */
  async #takeStep({ dice, name }: Client): Promise<void> {
    const [, number] = dice.pick([...this.badges].filter(([key]) => key.startsWith(name))) ?? [];
    if (number === undefined || this.#steps.get(number)?.mayBeRevoked) return;
    const step = dice.oneOf(["suspend", "suspend", "resume", "resume", "revoke"] as const);
    const mayBeRevoked = step === "revoke";
    this.#steps.set(number, { state: "unknown", mayBeRevoked });
    const response = await this.#call("PATCH", `/v1/badges/${number}/${step}`, null, {});
    if (response === null) return;
    const { status, body } = response;
    if (status !== 200 || body.state !== STEPS[step]) throw new Error(`${step} of ${number}: ${status} ${body.state}`);
    this.#steps.set(number, { state: STEPS[step], mayBeRevoked });
  }

  /** Every badge that was answered is listed under its number, and no number twice. @returns the listed states by number */
  async checkList(): Promise<Map<string, string>> {
    const listed = new Map<string, string>();
    for (let query = "?per_page=1000"; query !== ""; ) {
      const page = await fetch(`${this.#origin}/v1/badges${query}`, { headers: this.#headers });
      for (const { id, state } of badgePage.parse(await page.json()).badges) {
        if (listed.has(id)) throw new Error(`number ${id} is listed twice`);
        listed.set(id, state ?? "active");
      }
      const cursor = page.headers.get("pagination-cursor");
      query = cursor === null ? "" : `?per_page=1000&cursor=${cursor}`;
    }
    if (new Set(this.badges.values()).size !== this.badges.size)
      throw new Error("two user devices were answered one number");
    for (const [key, number] of this.badges) {
      const isMissing = !listed.has(number) && !this.#steps.get(number)?.mayBeRevoked;
      if (isMissing) throw new Error(`${key} was answered ${number}, which is not listed`);
    }
    return listed;
  }

  async #step(client: Client): Promise<void> {
    const { dice, name } = client;
    const what = dice.next();
    const lost = client.lost.pop();
    if (lost) return this.#badge(client, ...lost);
    if (what < 0.12) return this.#takeStep(client);
    if (what < 0.5) return this.#badge(client, `${name}-${client.devices++}`, "user", null);
    if (what < 0.65) {
      const known = dice.pick([...this.badges.keys()].filter((key) => key.startsWith(name)));
      const [udid = "", userId = ""] = known?.split("/") ?? [];
      return known === undefined ? undefined : this.#badge(client, udid, userId, null);
    }
    const token = what < 0.8 ? undefined : dice.pick([...this.#pending]);
    if (token === undefined) return this.#invite(name);
    this.#pending.delete(token);
    if (what < 0.92) return this.#badge(client, `${name}-${client.devices++}`, "guest", token);
    const revoked = await this.#call("PATCH", `/v1/invitation/${token}/revoke`, null, {});
    if (revoked !== null && revoked.status !== 200) throw new Error(`a revocation was answered ${revoked.status}`);
  }

  async #badge(client: Client, udid: string, userId: string, token: string | null): Promise<void> {
    const key = `${udid}/${userId}`;
    const response = await this.#call("POST", "/v1/badge", { userId, invitationToken: token }, { udid });
    if (response === null) {
      client.lost.push([udid, userId, token]);
      return;
    }
    const { status, body } = response;
    const known = this.badges.get(key);
    const { state } = this.#steps.get(known ?? "") ?? { state: "active" };
    if (status === 403 && state !== "active" && ENDED.includes(body.error ?? "")) return;
    if (!["active", "unknown"].includes(state)) throw new Error(`${key} logged in with a badge that was ended`);
    if (status !== 201 && status !== 200) throw new Error(`${key}: unexpected status ${status}`);
    const isNew = status === 201 && known !== undefined;
    if (isNew || (known !== undefined && known !== body.badgeId))
      throw new Error(`${key} had ${known} and was answered ${status} ${body.badgeId}`);
    this.badges.set(key, String(body.badgeId));
  }

  async #invite(name: string): Promise<void> {
    const expiresAt = new Date(Date.now() + 3600_000).toISOString();
    const response = await this.#call("POST", "/v1/invitation", { expiresAt }, { udid: `${name}-host` });
    if (response !== null && response.status !== 201) throw new Error(`an invitation was answered ${response.status}`);
    if (response?.body.id !== undefined) this.#pending.add(response.body.id);
  }

  /** @returns null when there was no response, or 503: nothing is known then */
  async #call(method: string, path: string, body: object | null, headers: Record<string, string>) {
    try {
      const response = await fetch(this.#origin + path, {
        method,
        headers: { ...this.#headers, ...headers },
        body: body === null ? null : JSON.stringify(body),
        signal: AbortSignal.timeout(20_000),
      });
      const parsed = granted.parse(await response.json());
      if (response.status === 503) throw new Error("503");
      this.counts.answered++;
      return { status: response.status, body: parsed };
    } catch {
      this.counts.lost++;
      return null;
    }
  }
}
