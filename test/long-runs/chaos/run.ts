import { setTimeout as wait } from "node:timers/promises";
import { z } from "zod";
import { BadgeServiceError, DeviceClient, NoResponseError, ServerClient } from "../../../src/client/index.ts";
import type { ServerClientOptions } from "../../../src/client/server-client.ts";
import { startService } from "../../node/support/service.ts";
import { startReceiver } from "../bench/load.ts";
import { Dice } from "../dice.ts";

const created = z.object({ applicationId: z.string(), applicationSecret: z.string() });

/** Between a start and its kill. */
const LONGEST_LIFE_MILLISECONDS = 2000;
/** For the queue to drain after the last start: the lease of a delivery that was under way, and a sweep. */
const DRAIN_MILLISECONDS = 150_000;
const CLIENTS_OF_A_HOME = 4;
const HOMES = [1, 2];

/**
 * Kills the service with SIGKILL at random moments under traffic in two homes, restarts it on the same state, and checks at
 * the end that everything it ever answered still holds, in each home, and that no number is in both.
 *
 * @returns what was found in each home
 * @throws Error that says which promise was broken, or that the run met nothing that could have broken one
 */
export async function runChaos(kills: number, seed: number, say: (line: string) => void) {
  const dice = new Dice(seed);
  // A tenth of the events is refused once, so that retries are part of the run.
  const refused = new Set<string>();
  const receiver = await startReceiver((event) => dice.below(10) === 0 && refused.size < refused.add(event).size);
  let service = await startService();
  try {
    const traffics: Traffic[] = [];
    for (const home of HOMES) {
      const create = ["application", "create", "--name", "Chaos", "--home", `${home}`, "--new-badges-per-hour", "none"];
      const { stdout } = await service.admin(...create, "--webhook-url", receiver.url(`${home}`), "--json");
      traffics.push(new Traffic({ baseUrl: service.origin, ...created.parse(JSON.parse(stdout)) }, dice.of(`${home}`)));
    }
    const callUntil = (end: Promise<unknown>) => Promise.all(traffics.map((traffic) => traffic.callUntil(end)));
    for (let kill = 1; kill <= kills; kill++) {
      const life = dice.between(200, LONGEST_LIFE_MILLISECONDS);
      await callUntil(wait(life).then(() => service.kill()));
      say(
        `kill ${kill} of ${kills} after ${life} ms and ${traffics.map(({ badges }) => badges.size).join(" and ")} badges`,
      );
      service = await service.restart();
    }
    await callUntil(wait(1000));
    const homes = await Promise.all(traffics.map((one, place) => one.check(receiver.arrivals(`${HOMES[place]}`))));
    const numbers = homes.flatMap(({ listed }) => [...listed]);
    if (new Set(numbers).size !== numbers.length) throw new Error("both homes issued one number");
    if (homes.some(({ badges, lost }) => badges === 0 || lost === 0))
      throw new Error("a home had no badge, or lost no call");
    return homes;
  } finally {
    await service.stop();
    service.remove();
    receiver.close();
  }
}

/** Clients that call an application at random and hold every response against the earlier ones. */
class Traffic {
  /** What the service answered, and must still say: number by user device, `udid/userId`. */
  readonly badges = new Map<string, string>();
  readonly #options: ServerClientOptions;
  readonly #dice: Dice;
  /** Logins whose response was lost: repeated, as a phone does. */
  readonly #repeated: [key: string, token: string | undefined][] = [];
  /** Tokens that nobody presented yet. */
  readonly #pending: string[] = [];
  #devices = 0;
  #answered = 0;
  #lost = 0;

  constructor(options: ServerClientOptions, dice: Dice) {
    // What is lost is repeated here, later and beside other calls.
    this.#options = { ...options, maxTries: 1, timeoutMilliseconds: 20_000 };
    this.#dice = dice;
  }

  get #server(): ServerClient {
    return new ServerClient(this.#options);
  }

  /** All clients call until `end`; then each finishes its step. @throws Error when a response contradicts an earlier one */
  async callUntil(end: Promise<unknown>): Promise<void> {
    let isOver = false;
    const client = async () => {
      while (!isOver) await this.#call();
    };
    const ended = end.finally(() => {
      isOver = true;
    });
    await Promise.all([ended, ...Array.from({ length: CLIENTS_OF_A_HOME }, client)]);
  }

  async #call(): Promise<void> {
    const what = this.#dice.next();
    const again = this.#repeated.pop();
    const known = this.#dice.pick([...this.badges.keys()]);
    if (again) return this.#logIn(...again);
    if (what < 0.2 && known !== undefined) return this.#logIn(known);
    const token = what < 0.8 ? undefined : this.#pending.pop();
    if (what < 0.65 || token !== undefined) return this.#logIn(`${this.#devices++}/user`, token);
    const expiresAt = new Date(Date.now() + 3600_000);
    const invitation = await this.#unlessLost(this.#server.createInvitation({ expiresAt, udid: "host" }));
    if (invitation) this.#pending.push(invitation.id);
  }

  async #logIn(key: string, invitationToken?: string): Promise<void> {
    const [udid = "", userId = ""] = key.split("/");
    const device = new DeviceClient({ ...this.#options, udid });
    const badge = await this.#unlessLost(device.requestBadge({ userId, invitationToken }));
    if (badge === null) return void this.#repeated.push([key, invitationToken]);
    const known = this.badges.get(key) ?? badge.badgeId;
    if (badge.badgeId !== known || (badge.created && this.badges.has(key)))
      throw new Error(`${key} had ${known} and was answered ${badge.created ? "a new" : "the"} ${badge.badgeId}`);
    this.badges.set(key, badge.badgeId);
  }

  /** @returns null when nothing is known: there was no response, or 503, or an error page of the runtime */
  async #unlessLost<Result>(call: Promise<Result>): Promise<Result | null> {
    const result = await call.catch((error: unknown) => {
      const isPage = error instanceof BadgeServiceError && error.code === null && error.status >= 500;
      const isUnavailable = error instanceof BadgeServiceError && error.status === 503;
      if (isPage || isUnavailable || error instanceof NoResponseError) return null;
      throw error;
    });
    if (result === null) this.#lost++;
    else this.#answered++;
    return result;
  }

  /**
   * Holds everything that was answered against the list, and waits until the webhook of every badge has come.
   *
   * @param arrivals badges whose webhook has come
   * @throws Error that says which promise was broken
   */
  async check(arrivals: ReadonlySet<string>) {
    const listed = new Set<string>();
    for await (const { id } of this.#server.listBadges({ perPage: 1000 }).badges()) {
      if (listed.has(id)) throw new Error(`number ${id} is listed twice`);
      listed.add(id);
    }
    if (new Set(this.badges.values()).size !== this.badges.size) throw new Error("two user devices have one number");
    for (const [key, number] of this.badges) {
      if (!listed.has(number)) throw new Error(`${key} was answered ${number}, which is not listed`);
    }
    for (const deadline = Date.now() + DRAIN_MILLISECONDS; ; await wait(1000)) {
      const missing = [...listed].filter((number) => !arrivals.has(number));
      const states: string[] = [];
      for await (const { state } of this.#server.listEvents({ perPage: 1000 }).events()) states.push(state);
      if (states.length !== listed.size) throw new Error(`${listed.size} badges have ${states.length} events`);
      if (missing.length === 0 && !states.includes("pending")) break;
      if (Date.now() > deadline) throw new Error(`events are still pending; none came for: ${missing.join(", ")}`);
    }
    return { badges: this.badges.size, listed, answered: this.#answered, lost: this.#lost };
  }
}
