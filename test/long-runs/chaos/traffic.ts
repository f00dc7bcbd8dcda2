import { setTimeout as wait } from "node:timers/promises";
import { BadgeServiceError, DeviceClient, NoResponseError, ServerClient } from "../../../src/client/index.ts";
import type { ServerClientOptions } from "../../../src/client/server-client.ts";
import type { Dice } from "../dice.ts";

/** For the queue to drain after the last start: the lease of a delivery that was under way, and a sweep. */
const DRAIN_MILLISECONDS = 150_000;

/** Clients that call an application at random and hold every response against the earlier ones. */
export class Traffic {
  /** What the service answered, and must still say: number by user device, `udid/userId`. */
  readonly badges = new Map<string, string>();
  readonly counts = { answered: 0, lost: 0 };
  /** Tokens that nobody presented yet. */
  readonly #pending = new Set<string>();
  readonly #options: ServerClientOptions;
  readonly #server: ServerClient;
  readonly #clients: (() => Promise<unknown>)[];

  constructor(options: ServerClientOptions, clients: number, dice: Dice) {
    // What is lost is repeated here, later and beside other calls.
    this.#options = { ...options, maxTries: 1, timeoutMilliseconds: 20_000 };
    this.#server = new ServerClient(this.#options);
    const names = Array.from({ length: clients }, (_, place) => `client${place}`);
    this.#clients = names.map((name) => this.#client(name, dice.of(name)));
  }

  /** All clients call until `end`; then each finishes its step. @throws Error when a response contradicts an earlier one */
  async callUntil(end: Promise<unknown>): Promise<void> {
    let isOver = false;
    const repeat = async (act: () => Promise<unknown>) => {
      while (!isOver) await act();
    };
    const ended = end.finally(() => {
      isOver = true;
    });
    await Promise.all([ended, ...this.#clients.map(repeat)]);
  }

  /**
   * Holds everything that was answered against the list, and waits for the webhooks.
   *
   * @param arrivals number of webhooks by badge
   * @throws Error that says which promise was broken
   */
  async check(arrivals: ReadonlyMap<string, number>) {
    const listed = new Set<string>();
    for await (const { id } of this.#server.listBadges({ perPage: 1000 }).badges()) {
      if (listed.has(id)) throw new Error(`number ${id} is listed twice`);
      listed.add(id);
    }
    if (new Set(this.badges.values()).size !== this.badges.size) throw new Error("two user devices have one number");
    for (const [key, number] of this.badges) {
      if (!listed.has(number)) throw new Error(`${key} was answered ${number}, which is not listed`);
    }
    const events = await this.#drain(listed, arrivals);
    if (events !== listed.size) throw new Error(`${listed.size} badges were issued, but there are ${events} events`);
    const deliveries = [...arrivals.values()].reduce((sum, times) => sum + times, 0);
    return { badges: this.badges.size, listed, events, deliveries, counts: this.counts };
  }

  /** Waits until every badge has reached the receiver and no event is pending. @returns how many events there are */
  async #drain(listed: ReadonlySet<string>, arrivals: ReadonlyMap<string, number>): Promise<number> {
    for (const deadline = Date.now() + DRAIN_MILLISECONDS; ; await wait(1000)) {
      const missing = [...listed].filter((number) => !arrivals.has(number));
      const states: string[] = [];
      for await (const { state } of this.#server.listEvents({ perPage: 1000 }).events()) states.push(state);
      if (missing.length === 0 && !states.includes("pending")) return states.length;
      if (Date.now() > deadline) throw new Error(`events are still pending; none came for: ${missing.join(", ")}`);
    }
  }

  /** @returns does one call */
  #client(name: string, dice: Dice): () => Promise<unknown> {
    let devices = 0;
    // Logins whose response was lost: repeated, as a phone does.
    const lost: [key: string, token: string | undefined][] = [];
    const login = async (key: string, token?: string) => {
      if (!(await this.#login(key, token))) lost.push([key, token]);
    };
    return () => {
      const what = dice.next();
      const again = lost.pop();
      const known = dice.pick([...this.badges.keys()].filter((key) => key.startsWith(name)));
      if (again) return login(...again);
      if (what < 0.2 && known !== undefined) return login(known);
      if (what < 0.65) return login(`${name}-${devices++}/user`);
      const token = what < 0.8 ? undefined : dice.pick([...this.#pending]);
      if (token === undefined) return this.#invite(`${name}-host`);
      this.#pending.delete(token);
      if (what < 0.92) return login(`${name}-${devices++}/guest`, token);
      return this.#unlessLost(this.#server.revokeInvitation(token));
    };
  }

  /** @returns whether there was a response */
  async #login(key: string, invitationToken: string | undefined): Promise<boolean> {
    const [udid = "", userId = ""] = key.split("/");
    const device = new DeviceClient({ ...this.#options, udid });
    const badge = await this.#unlessLost(device.requestBadge({ userId, invitationToken }));
    if (badge === null) return false;
    const known = this.badges.get(key);
    if (known !== undefined && (badge.created || badge.badgeId !== known))
      throw new Error(`${key} had ${known} and was answered ${badge.created ? "a new" : "the"} ${badge.badgeId}`);
    this.badges.set(key, badge.badgeId);
    return true;
  }

  async #invite(udid: string): Promise<void> {
    const expiresAt = new Date(Date.now() + 3600_000);
    const invitation = await this.#unlessLost(this.#server.createInvitation({ expiresAt, udid }));
    if (invitation) this.#pending.add(invitation.id);
  }

  /** @returns null when the response was lost */
  async #unlessLost<Result>(call: Promise<Result>): Promise<Result | null> {
    const result = await call.catch(requireLost);
    this.counts[result === null ? "lost" : "answered"]++;
    return result;
  }
}

/** There was no response, or 503, or an error page of the runtime: nothing is known then. Every other error is thrown. */
function requireLost(error: unknown): null {
  const isPage = error instanceof BadgeServiceError && error.code === null && error.status >= 500;
  const isUnavailable = error instanceof BadgeServiceError && error.status === 503;
  if (isPage || isUnavailable || error instanceof NoResponseError) return null;
  throw error;
}
