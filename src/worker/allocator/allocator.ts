import { DurableObject } from "cloudflare:workers";
import { BY_CLOCK } from "../../shared/actor.ts";
import { homeOf } from "../../shared/homes.ts";
import { type ApplicationId, newRandomId } from "../../shared/identifiers.ts";
import { CALL_DEADLINE_MILLISECONDS } from "../../shared/limits/allocator-limits.ts";
import { findHome, queueOf } from "../homes.ts";
import { SealingKeys } from "../keys/sealing-keys.ts";
import { UnsealedKeys } from "../keys/unsealed-keys.ts";
import { LiveClient } from "../live/live-client.ts";
import { log } from "../log.ts";
import { Unavailable } from "../platform.ts";
import { Database } from "../storage/database.ts";
import { DeliveryPace, enqueueDeliveries } from "../webhooks/delivery-message.ts";
import { Alarms } from "./alarms.ts";
import { CALL_VERSION, type Call, type CallMessage, type Command } from "./commands.ts";
import { Engine } from "./engine.ts";
import { noteLogSince } from "./replica/head.ts";
import { carryOutCommands } from "./script-commands.ts";
import { Log } from "./tables/entry-log.ts";
import { Tables } from "./tables/tables.ts";
import type { Reply } from "./waiting-calls.ts";

/**
 * One application's Durable Object, named by the application ID: it owns the application's badges, invitations, blocks and freed
 * numbers, and D1 follows (docs/architecture.md).
 */
export class Allocator extends DurableObject<Env> {
  readonly #tables = new Tables(this.ctx.storage);
  readonly #log = new Log(this.#tables.orm);
  readonly #unsealedKeys = new UnsealedKeys(new SealingKeys(this.env));
  #engine: Engine | undefined;
  #alarms: Alarms | undefined;
  readonly #pace = new DeliveryPace();
  /** Commands of the script that are being carried out. */
  #commands: Promise<void> = Promise.resolve();

  constructor(state: DurableObjectState, env: Env) {
    super(state, env);
    void state.blockConcurrencyWhile(() => this.#tables.migrate());
  }

  /** Decides a call, or refuses it if a later release sent it. A caller that repeats a call sends the same ID. */
  async call(applicationId: ApplicationId, { version, ...call }: CallMessage): Promise<Reply> {
    if (version <= CALL_VERSION) return this.#open(applicationId).submit(call);
    log("warn", { event: "call-of-later-release", application: applicationId, version });
    return { outcome: { kind: "unavailable" }, bookmark: null };
  }

  /**
   * Carries out commands of the script.
   *
   * @param isInDoubt whether D1 may have been restored: then both sides are compared first
   * @throws Unavailable if they could not be compared
   */
  async wake(applicationId: ApplicationId, isInDoubt: boolean): Promise<void> {
    const engine = this.#open(applicationId);
    if (isInDoubt) engine.doubt();
    await engine.settle();
    // One after the other: what another wake-up is carrying out still looks open.
    const done = this.#commands.then(() => carryOutCommands(engine, this.#parts(applicationId)));
    this.#commands = done.catch(() => {});
    await done;
    if (isInDoubt && engine.replicator.position.kind === "uncertain") throw new Unavailable("D1", null);
  }

  /** Never throws: the platform drops an alarm that has failed six times (Durable Objects: Alarms). */
  override async alarm(): Promise<void> {
    const applicationId = this.#tables.self()?.applicationId;
    if (applicationId === undefined) return;
    const alarms = this.#openAlarms();
    alarms.begin();
    try {
      const engine = this.#open(applicationId);
      engine.doubt();
      if (await engine.settle()) {
        await alarms.work(
          (command) => engine.submit(byClock(command)),
          () => engine.replicator.sentThrough,
          (since) => noteLogSince(this.#parts(applicationId).openDatabase(), applicationId, since),
        );
      }
    } catch (error) {
      log("error", { event: "alarm-failed", application: applicationId, error });
    }
    await alarms.setNext(this.#engine?.replicator.position.kind === "not-in-log");
  }

  #open(applicationId: ApplicationId): Engine {
    const owner = this.#engine?.applicationId ?? this.#tables.self()?.applicationId ?? applicationId;
    if (owner !== applicationId) throw new Error("the object belongs to another application");
    this.#engine ??= new Engine(this.#parts(applicationId));
    return this.#engine;
  }

  #openAlarms(): Alarms {
    this.#alarms ??= new Alarms(this.ctx.storage, this.#tables, this.#log, this.env);
    return this.#alarms;
  }

  #parts(applicationId: ApplicationId) {
    const home = homeOf(applicationId);
    const boundHome = () => {
      const found = findHome(this.env, home);
      if (!found) throw new Error("the application's home is not bound");
      return found;
    };
    return {
      applicationId,
      tables: this.#tables,
      log: this.#log,
      unsealedKeys: this.#unsealedKeys,
      alarms: this.#openAlarms(),
      bytes: () => this.ctx.storage.sql.databaseSize,
      now: () => Date.now(),
      openDatabase: () => new Database(boundHome().d1),
      enqueue: (eventIds: readonly string[]): void => {
        void enqueueDeliveries(queueOf(this.env, home), applicationId, eventIds, this.#pace);
      },
      // Not waited for: what gets lost is found within half a minute (src/worker/live/live.ts).
      notify: () => void new LiveClient(this.env.LIVE, boundHome()).wake(applicationId),
    };
  }
}

const byClock = (command: Command): Call => ({
  id: newRandomId(),
  until: Date.now() + CALL_DEADLINE_MILLISECONDS,
  audit: BY_CLOCK,
  command,
});
