import type { Allocator } from "../../../../src/worker/allocator/allocator.ts";
import { type Context, createContext, createIsolate } from "../../../../src/worker/context.ts";
import { findHome, homesOf } from "../../../../src/worker/homes.ts";
import { type Sealed, UnsealedKeys } from "../../../../src/worker/keys/unsealed-keys.ts";
import type { HomeScheduler } from "../../../../src/worker/scheduling/home-scheduler.ts";
import { tickHome } from "../../../../src/worker/scheduling/scheduler-client.ts";
import { standIn } from "../../stand-in.ts";
import { Member } from "../member.ts";
import { d1Binding } from "../platform/d1-binding.ts";
import { type HmacHash, hmacKey, signingPair } from "../platform/globals.ts";
import { objectBinding } from "../platform/objects.ts";
import { Process } from "../platform/process.ts";
import { queueBinding } from "../platform/queue.ts";

const MAX_ISOLATES = 2;

/** Nobody is limited here: the limit is the platform's, and tested where there is HTTP. */
const unlimited = { limit: async () => ({ success: true }) };

/**
 * Hands out keys without opening anything: RSA costs more than all else of a simulation. What is in the column of the
 * sealed value is the secret itself, or the number of the signing key.
 */
Object.assign(UnsealedKeys.prototype, {
  signingKey: async (_id: string, _kid: string, { sealed }: Sealed) => signingPair(Number(sealed)).privateKey,
  rootKey: async (_id: string, { sealed }: Sealed) => hmacKey(sealed, "SHA-256"),
  webhookKey: async (_id: string, _secret: string, { sealed }: Sealed, hash: HmacHash) => hmacKey(sealed, hash),
});

/** What wrangler.toml binds to the Worker and to its objects. */
export const env: Env = standIn<Env & { HOME_1: string; HOME_2: string; WEBHOOKS_2: Queue }>("the environment", {
  DB: d1Binding(1),
  HOME_1: "",
  DB_2: d1Binding(2),
  HOME_2: "",
  ALLOCATOR: objectBinding<Allocator>("allocator"),
  HOME_SCHEDULER: objectBinding<HomeScheduler>("clock"),
  // No door listens.
  LIVE: { getByName: () => ({ wake: async () => {} }) },
  WEBHOOKS: queueBinding,
  WEBHOOKS_2: queueBinding,
  DEVICE_LIMIT: unlimited,
  CLIENT_IP_LIMIT: unlimited,
  REFUSED_CALL_LIMIT: unlimited,
  ENVIRONMENT: "production",
  EVENT_RETENTION_DAYS: "30",
  INVITATION_RETENTION_DAYS: "365",
  HISTORY_RETENTION_DAYS: "400",
  PUBLIC_URL: "",
});

/** An isolate, with what it keeps between invocations. */
class Isolate extends Process {
  readonly #kept = createIsolate(env);

  readonly contextOf = (number: number): Context => {
    const home = findHome(env, number);
    if (home === undefined) throw new Error(`home ${number} is not bound`);
    return { ...createContext(env, this.defer, home), ...this.#kept };
  };
}

/** The Worker: isolates come and go, and any of them takes any request. */
export class Isolates extends Member {
  readonly #dice = this.world.dice.of("isolates");
  #isolates: Isolate[] = [];
  #made = 0;

  /**
   * Does work in some isolate, which has a context for each home.
   *
   * @returns null when the isolate died before it was done; work that fails is a rejection
   */
  enter<Result>(work: (contextOf: Isolate["contextOf"]) => Promise<Result>): Promise<{ result: Result } | null> {
    const isolate = this.#choose();
    return isolate.outcome(
      async () => ({ result: await work(isolate.contextOf) }),
      () => null,
    );
  }

  /** The cron trigger goes off. */
  async sweep(): Promise<void> {
    await this.enter(async () => {
      await Promise.all(homesOf(env).map((home) => tickHome(env, home)));
    });
  }

  killOne(): void {
    this.#dice.pick(this.#isolates)?.die();
  }

  #choose(): Isolate {
    this.#isolates = this.#isolates.filter(({ isAlive }) => isAlive);
    const wantsNew = this.#isolates.length < MAX_ISOLATES && this.#dice.chance(0.1);
    return (wantsNew ? undefined : this.#dice.pick(this.#isolates)) ?? this.#make();
  }

  #make(): Isolate {
    const isolate = new Isolate(this.world, `isolate ${++this.#made}`);
    this.#isolates.push(isolate);
    return isolate;
  }
}
