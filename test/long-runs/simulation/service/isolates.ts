import { AllocatorClient } from "../../../../src/worker/allocator/client.ts";
import { RefusedCalls } from "../../../../src/worker/applications/refused-calls.ts";
import { ApplicationRegistry } from "../../../../src/worker/applications/registry.ts";
import type { Context } from "../../../../src/worker/context.ts";
import { SealingKeys } from "../../../../src/worker/keys/sealing-keys.ts";
import { Database } from "../../../../src/worker/storage/database.ts";
import { sweep } from "../../../../src/worker/sweep.ts";
import type { Attempt } from "../../../../src/worker/webhooks/attempt.ts";
import { consumeDeadLetters, consumeWakeUps } from "../../../../src/worker/webhooks/consumer.ts";
import { type Delivery, sendAll } from "../../../../src/worker/webhooks/sender.ts";
import type { Dice } from "../../dice.ts";
import { env, unlimited } from "../platform/bindings.ts";
import type { Platform } from "../platform/platform.ts";
import { Process } from "../platform/process.ts";
import { ReadyCustody } from "./custody.ts";

/** Isolates that run at once, at most. */
const MAX_ISOLATES = 2;

/** What an isolate keeps between requests, as `src/worker/context.ts` makes it. */
interface Isolate {
  process: Process;
  custody: ReadyCustody;
  sealingKeys: SealingKeys;
  registry: ApplicationRegistry;
  refusedCalls: RefusedCalls;
}

/** The Worker: isolates come and go, and any of them takes any request. */
export class Isolates {
  readonly #platform: Platform;
  readonly #dice: Dice;
  readonly #clockError: () => number;
  #isolates: Isolate[] = [];
  #made = 0;

  /** @param clockError milliseconds by which the next machine's clock is ahead */
  constructor(parts: { platform: Platform; dice: Dice; clockError: () => number }) {
    this.#platform = parts.platform;
    this.#dice = parts.dice;
    this.#clockError = parts.clockError;
  }

  /**
   * Does work in some isolate.
   *
   * @returns null when the isolate died before it was done; work that fails is a rejection
   */
  enter<Result>(work: (context: Context) => Promise<Result>): Promise<{ result: Result } | null> {
    const isolate = this.#choose();
    const { process } = isolate;
    return new Promise((resolve, reject) => {
      const forget = process.onDeath(() => resolve(null));
      const done = process.run(() => work(this.#context(isolate)));
      done.then((result) => resolve({ result }), reject).finally(forget);
    });
  }

  /** The queue brings a batch. @returns whether it was acknowledged */
  async consume(batch: MessageBatch): Promise<boolean> {
    const consumer = batch.queue.includes("-dead") ? consumeDeadLetters : consumeWakeUps;
    try {
      return (await this.enter((context) => consumer(context, batch))) !== null;
    } catch {
      return false;
    }
  }

  /** The cron trigger goes off. */
  async sweep(): Promise<void> {
    await this.enter(sweep);
  }

  /** An isolate ends, as isolates do. */
  killOne(): void {
    this.#dice.pick(this.#isolates)?.process.die();
  }

  /** Another invocation sends, in whatever isolate. */
  async #send(deliveries: readonly Delivery[]): Promise<(Attempt | null)[]> {
    const sent = await this.enter((context) => sendAll(context, deliveries));
    if (sent === null) throw new Error("The isolate that was sending is gone.");
    return sent.result;
  }

  #choose(): Isolate {
    this.#isolates = this.#isolates.filter(({ process }) => process.isAlive);
    const wantsNew = this.#isolates.length === 0 || (this.#isolates.length < MAX_ISOLATES && this.#dice.chance(0.1));
    return wantsNew ? this.#make() : (this.#dice.pick(this.#isolates) ?? this.#make());
  }

  #make(): Isolate {
    const process = new Process(`isolate ${++this.#made}`, this.#platform, this.#clockError());
    const isolate = {
      process,
      custody: new ReadyCustody(),
      sealingKeys: new SealingKeys({}),
      registry: new ApplicationRegistry(),
      refusedCalls: new RefusedCalls(),
    };
    this.#isolates.push(isolate);
    return isolate;
  }

  #context({ process, custody, sealingKeys, registry, refusedCalls }: Isolate): Context {
    return {
      custody,
      sealingKeys,
      registry,
      refusedCalls,
      db: new Database(env.DB),
      allocator: new AllocatorClient(env.ALLOCATOR),
      queue: env.WEBHOOKS,
      sender: { send: (deliveries) => this.#send(deliveries) },
      deviceLimit: unlimited,
      clientIpLimit: unlimited,
      refusedCallLimit: unlimited,
      isLocal: false,
      now: Date.now,
      defer: (work) => {
        work.catch((error) => process.platform.trace.add(process.name, `deferred work failed: ${error}`));
      },
    };
  }
}
