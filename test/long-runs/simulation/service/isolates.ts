import { AllocatorClient } from "../../../../src/worker/allocator/client.ts";
import { RefusedCalls } from "../../../../src/worker/applications/refused-calls.ts";
import { ApplicationRegistry } from "../../../../src/worker/applications/registry.ts";
import { CountedStatistics } from "../../../../src/worker/applications/statistics.ts";
import { StatusLists } from "../../../../src/worker/badges/status-copies.ts";
import { StatusIndexes } from "../../../../src/worker/badges/status-index.ts";
import type { Context } from "../../../../src/worker/context.ts";
import { findHome } from "../../../../src/worker/homes.ts";
import { Custody, type Sealed } from "../../../../src/worker/keys/custody.ts";
import { SealingKeys } from "../../../../src/worker/keys/sealing-keys.ts";
import { readRetention } from "../../../../src/worker/retention-days.ts";
import { Database } from "../../../../src/worker/storage/database.ts";
import { sweep } from "../../../../src/worker/sweep.ts";
import { consumeDeadLetters, consumeWakeUps } from "../../../../src/worker/webhooks/consumer.ts";
import { sendAll } from "../../../../src/worker/webhooks/sender.ts";
import { standIn } from "../../stand-in.ts";
import { Member } from "../member.ts";
import { d1Binding } from "../platform/d1.ts";
import { hmacKey, newSigningPair } from "../platform/globals.ts";
import { allocatorBinding } from "../platform/objects.ts";
import { Process } from "../platform/process.ts";
import { queueBinding } from "../platform/queue.ts";

/** Isolates that run at once, at most. */
const MAX_ISOLATES = 2;

/** Nobody is limited here: the limit is the platform's, and tested where there is HTTP. */
const unlimited = standIn<RateLimit>("a rate limit", { limit: async () => ({ success: true }) });

/** No door asks for a status list here. */
const noCache = standIn<Cache>("the data centre's cache", {});

/** What wrangler.toml binds to the Worker and to its objects. */
export const env: Env = standIn<Env & { HOME_1: string; HOME_2: string }>("the environment", {
  DB: d1Binding(1),
  HOME_1: "",
  DB_2: d1Binding(2),
  HOME_2: "",
  ALLOCATOR: allocatorBinding,
  WEBHOOKS: queueBinding,
});

interface Isolate {
  process: Process;
  context: Omit<Context, "home" | "db" | "allocator">;
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
  enter<Result>(work: (contextOf: (home: number) => Context) => Promise<Result>): Promise<{ result: Result } | null> {
    const { process, context } = this.#choose();
    return new Promise((resolve, reject) => {
      const forget = process.onDeath(() => resolve(null));
      const contextOf = (number: number): Context => {
        const home = findHome(env, number);
        if (home === undefined) throw new Error(`home ${number} is not bound`);
        const bindings = { db: new Database(home.d1), allocator: new AllocatorClient(env.ALLOCATOR, home) };
        return { ...context, home: number, ...bindings };
      };
      const done = process.run(() => work(contextOf));
      done.then((result) => resolve({ result }), reject).finally(forget);
    });
  }

  /** The queue brings a batch. @returns whether it was acknowledged */
  async consume(batch: MessageBatch): Promise<boolean> {
    const consumer = batch.queue.includes("-dead") ? consumeDeadLetters : consumeWakeUps;
    try {
      return (await this.enter((contextOf) => consumer(contextOf, batch))) !== null;
    } catch {
      return false;
    }
  }

  /** The cron trigger goes off. */
  async sweep(): Promise<void> {
    await this.enter((contextOf) => sweep([contextOf(1), contextOf(2)]));
  }

  /** An isolate ends, as isolates do. */
  killOne(): void {
    this.#dice.pick(this.#isolates)?.process.die();
  }

  #choose(): Isolate {
    this.#isolates = this.#isolates.filter(({ process }) => process.isAlive);
    const wantsNew = this.#isolates.length === 0 || (this.#isolates.length < MAX_ISOLATES && this.#dice.chance(0.1));
    return wantsNew ? this.#make() : (this.#dice.pick(this.#isolates) ?? this.#make());
  }

  /** With what an isolate keeps between requests, as `src/worker/context.ts` makes it. */
  #make(): Isolate {
    const process = new Process(`isolate ${++this.#made}`, this.world);
    const context: Isolate["context"] = {
      custody: new ReadyCustody(),
      sealingKeys: new SealingKeys({}),
      registry: new ApplicationRegistry(),
      refusedCalls: new RefusedCalls(),
      queue: env.WEBHOOKS,
      sender: {
        // Another invocation sends, in whatever isolate.
        send: async (deliveries) => {
          const sent = await this.enter((contextOf) => sendAll(contextOf(1), deliveries));
          if (sent === null) throw new Error("The isolate that was sending is gone.");
          return sent.result;
        },
      },
      deviceLimit: unlimited,
      clientIpLimit: unlimited,
      refusedCallLimit: unlimited,
      retention: readRetention({}),
      statistics: new CountedStatistics(),
      statusIndexes: new StatusIndexes(),
      statusLists: new StatusLists(),
      publicUrl: null,
      edgeCache: noCache,
      isLocal: false,
      now: Date.now,
      defer: (work) => {
        work.catch((error) => this.world.trace.add(process.name, `deferred work failed: ${error}`));
      },
    };
    const isolate = { process, context };
    this.#isolates.push(isolate);
    return isolate;
  }
}

/** Pairs and keys are made once for all seeds. */
const pairs: ReturnType<typeof newSigningPair>[] = [];
const opened = new Map<string, CryptoKey>();

/** The signing key whose "sealed" text is this number. */
export function signingPair(place: number): ReturnType<typeof newSigningPair> {
  const pair = pairs[place] ?? newSigningPair();
  pairs[place] = pair;
  return pair;
}

/**
 * Hands out keys without opening anything: RSA costs more than all else of a simulation. What is in the column of the
 * sealed value is the secret itself, or the number of the signing key.
 */
class ReadyCustody extends Custody {
  constructor() {
    super(new SealingKeys({}));
  }

  override async signingKey(_applicationId: string, _kid: string, { sealed }: Sealed): Promise<CryptoKey> {
    return signingPair(Number(sealed)).privateKey;
  }

  override deviceKey(applicationId: string, sealed: Sealed): Promise<CryptoKey> {
    return this.webhookKey(applicationId, "", sealed, "SHA-256");
  }

  override async webhookKey(_applicationId: string, _id: string, { sealed }: Sealed, hash: "SHA-1" | "SHA-256") {
    const name = `${hash} ${sealed}`;
    const key = opened.get(name) ?? hmacKey(new TextEncoder().encode(sealed), hash);
    opened.set(name, key);
    return key;
  }
}
