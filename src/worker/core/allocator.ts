import { DurableObject } from "cloudflare:workers";
import { BY_CLOCK } from "../../shared/actor.ts";
import { homeOf } from "../../shared/homes.ts";
import { type ApplicationId, newAlias } from "../../shared/identifiers.ts";
import type { InboxCommand } from "../../shared/inbox.ts";
import {
  CATCH_UP_PAUSE_MILLISECONDS,
  COMPARE_AFTER_MILLISECONDS,
  INBOX_CHUNK_COMMANDS,
  MAX_REMEMBERED_CALLS,
  MAX_USER_PAUSE_MILLISECONDS,
  SETTLE_TRIES,
  SETTLE_WAIT_MILLISECONDS,
  UNFINISHED_BLOCKS,
  USER_PAUSE_FACTOR,
} from "../../shared/limits.ts";
import { BoundedCache } from "../bounded-cache.ts";
import { findHome, queueOf } from "../homes.ts";
import { Custody } from "../keys/custody.ts";
import { SealingKeys } from "../keys/sealing-keys.ts";
import { log } from "../log.ts";
import { Database } from "../storage/database.ts";
import { findUnfinishedBlocks, type InboxItem, readInbox, storeInboxResult } from "../storage/inbox.ts";
import { sendWakeUps } from "../webhooks/wake-up.ts";
import { reconcile } from "./accept-loss.ts";
import { catchUp } from "./catch-up.ts";
import type { Call, Command } from "./commands.ts";
import { Groups } from "./group.ts";
import { Journal } from "./journal.ts";
import { CallQueue, fail, giveUp, type Response, userOf, waitingFor } from "./queue.ts";

/** How far back an application's journal reaches. */
export interface JournalReach {
  /** Milliseconds; null: to the application's beginning. */
  since: number | null;
  bytes: number;
}

/**
 * One application's Durable Object, named by the application ID: the only writer of its badges, invitations, numbers and blocks
 * (docs/architecture.md). Calls are carried out in groups, one after the other; each group is one entry of the application's
 * list of changes, which D1 applies in its turn or not at all.
 */
export class Allocator extends DurableObject<Env> {
  readonly #journal = new Journal(this.ctx.storage.sql);
  readonly #queue = new CallQueue();
  readonly #custody = new Custody(new SealingKeys(this.env));
  /** Calls that are waiting, by ID: one that is repeated meanwhile is not carried out twice. */
  readonly #waiting = new Map<string, Promise<Response>>();
  /** Calls that were told 503: a copy of one that comes late changes nothing. */
  readonly #givenUp = new BoundedCache<true>(MAX_REMEMBERED_CALLS);
  #applicationId = this.#journal.base()?.applicationId;
  #groups: Groups | undefined;
  #isRunning = false;
  /** What is under way with the journal and D1's position: one thing after the other. */
  #turn: Promise<unknown> = Promise.resolve();
  #inboxTurn: Promise<unknown> = Promise.resolve();
  #alarmAt = 0;

  /** Carries out a call in its turn. It may be repeated with the same ID. */
  call(applicationId: ApplicationId, call: Call): Promise<Response> {
    this.#learn(applicationId);
    return this.#submit(call, null);
  }

  /**
   * Does what is due: expiries, unfinished blocks, and commands of the script. Called by the home's clock.
   *
   * @param isToCompare whether D1 may have been restored
   */
  async wake(applicationId: ApplicationId, isToCompare: boolean): Promise<void> {
    this.#learn(applicationId);
    const db = this.#openDatabase();
    if (isToCompare) await this.#compareOrLater(db);
    await this.#inInboxTurn(async () => {
      if ((await readInbox(db, applicationId, 1)).length === 0) return;
      // A restored D1 has commands as open ones that were carried out.
      await this.#compare(db);
      for (const item of await readInbox(db, applicationId, INBOX_CHUNK_COMMANDS)) await this.#carryOut(db, item);
    });
    for (const userId of await findUnfinishedBlocks(db, applicationId, UNFINISHED_BLOCKS)) {
      void this.#submit(byClock({ kind: "finish-block", userId }, `finish ${userId}`), null);
    }
    await this.#submit(byClock({ kind: "record-due" }, "due"), null);
  }

  #reach(): JournalReach {
    return { since: this.#journal.since(), bytes: this.ctx.storage.sql.databaseSize };
  }

  /** Two minutes after an entry, and again until none is younger: was D1 restored to the time before it? */
  override async alarm(): Promise<void> {
    this.#alarmAt = 0;
    if (this.#applicationId === undefined) return;
    try {
      await this.#compare(this.#openDatabase());
      const newest = this.#journal.newest();
      if (newest !== null && Date.now() - newest < COMPARE_AFTER_MILLISECONDS) await this.#ensureAlarm();
    } catch (error) {
      // The runtime retries a failed alarm six times, then drops it (Durable Objects: Alarms). D1 may be away for longer.
      log("warn", { event: "comparison-postponed", application: this.#applicationId, error });
      await this.#ensureAlarm();
    }
  }

  /** @throws Error when the object belongs to another application */
  #learn(applicationId: ApplicationId): void {
    this.#applicationId ??= applicationId;
    if (this.#applicationId !== applicationId) throw new Error("the object belongs to another application");
  }

  #submit(call: Call, inboxId: string | null): Promise<Response> {
    const waiting = this.#waiting.get(call.id);
    if (waiting) return waiting;
    if (this.#givenUp.get(call.id)) return Promise.resolve({ outcome: { kind: "unavailable" }, bookmark: null });
    const groups = this.#openGroups();
    const known = groups.outcomeOf(call.id);
    if (known && call.until !== null) return Promise.resolve({ outcome: known, bookmark: groups.bookmark });
    const added = waitingFor(call, inboxId);
    const { done } = added;
    if (!this.#queue.add(added)) giveUp([added]);
    this.#waiting.set(call.id, done.promise);
    void done.promise.then(({ outcome }) => {
      this.#waiting.delete(call.id);
      if (outcome.kind === "unavailable" && call.until !== null) this.#givenUp.set(call.id, true);
    });
    void this.#run();
    return done.promise;
  }

  /** Runs groups until nothing waits, and until nothing is left that D1 may still apply. */
  async #run(): Promise<void> {
    if (this.#isRunning) return;
    this.#isRunning = true;
    const groups = this.#openGroups();
    // Calls that arrived together are carried out together.
    await scheduler.wait(0);
    for (let tries = 0; this.#queue.isReady || (groups.isUnsettled && tries < SETTLE_TRIES); ) {
      // At once the first time: until its place is taken, D1 may still apply an entry whose callers were told 503.
      if (!this.#queue.isReady && tries++ > 0) await scheduler.wait(SETTLE_WAIT_MILLISECONDS);
      const isDone = await this.#inTurn(() => this.#runGroup(groups));
      // What has begun goes on, but not without a pause.
      if (!isDone && this.#queue.isReady) await scheduler.wait(SETTLE_WAIT_MILLISECONDS);
    }
    this.#isRunning = false;
  }

  /** @returns false if nothing could be changed */
  async #runGroup(groups: Groups): Promise<boolean> {
    try {
      await this.#ensureAlarm();
    } catch (error) {
      log("warn", { event: "alarm-not-set", application: this.#applicationId, error });
      giveUp(this.#queue.take());
      return false;
    }
    const calls = this.#queue.take();
    const startedAt = Date.now();
    try {
      const obstacle = await groups.run(calls);
      if (calls.some(({ call }) => userOf(call) !== null)) this.#rest(Date.now() - startedAt);
      if (obstacle?.kind === "gap") this.#reportGap(obstacle.at?.sequence);
      if (obstacle?.kind === "behind") await this.#setAlarm(CATCH_UP_PAUSE_MILLISECONDS);
      return obstacle === undefined;
    } catch (error) {
      log("error", { event: "group-broken", application: this.#applicationId, error });
      fail(calls);
      return false;
    }
  }

  /** What takes many groups leaves most of D1's time to other applications. */
  #rest(taken: number): void {
    this.#queue.isResting = true;
    const pause = Math.min(USER_PAUSE_FACTOR * taken, MAX_USER_PAUSE_MILLISECONDS);
    void scheduler.wait(pause).then(() => {
      this.#queue.isResting = false;
      return this.#run();
    });
  }

  /** Groups, comparisons and reconciliations never overlap: each of them changes the journal. */
  #inTurn<T>(work: () => Promise<T>): Promise<T> {
    const done = this.#turn.then(work);
    this.#turn = done.catch(() => {});
    return done;
  }

  /** Commands that were read before others were carried out must not be carried out after them. */
  #inInboxTurn(work: () => Promise<void>): Promise<void> {
    const done = this.#inboxTurn.then(work);
    this.#inboxTurn = done.catch(() => {});
    return done;
  }

  async #carryOut(db: Database, { id, command, actor }: InboxItem): Promise<void> {
    if (command.kind === "reconcile") {
      await this.#reconcile(db, id, command);
      return;
    }
    const { outcome } = await this.#submit({ id, until: null, origin: { actor }, command: toCommand(command) }, id);
    if (outcome.kind === "failed") await storeInboxResult(db, id, { kind: "failed" });
  }

  async #reconcile(db: Database, id: string, command: Extract<InboxCommand, { kind: "reconcile" }>): Promise<void> {
    const { applicationId } = this.#known();
    const request = { id, acceptLoss: command.acceptLoss, skip: command.skip };
    const { result, isStored } = await this.#inTurn(() =>
      reconcile(db, applicationId, this.#journal, request, Date.now(), this.#reach()),
    );
    if (!isStored) await storeInboxResult(db, id, result);
  }

  /** @throws Unavailable */
  async #compare(db: Database): Promise<void> {
    const { applicationId } = this.#known();
    const level = await this.#inTurn(() => catchUp(db, applicationId, this.#journal));
    if (level.kind === "gap") this.#reportGap(level.at?.sequence);
    else this.#wakeEvents(level.events);
    if (level.kind === "behind") await this.#setAlarm(CATCH_UP_PAUSE_MILLISECONDS);
  }

  /** The clock does not ask again. @throws Unavailable */
  async #compareOrLater(db: Database): Promise<void> {
    try {
      await this.#compare(db);
    } catch (error) {
      await this.#ensureAlarm();
      throw error;
    }
  }

  #reportGap(d1: number | undefined): void {
    // A write fails in an instance that another has taken the place of (Durable Objects: one instance at a time).
    this.#journal.touch();
    log("error", {
      event: "journal-gap",
      application: this.#applicationId,
      d1: d1 ?? null,
      journal: this.#journal.last()?.sequence ?? null,
    });
  }

  #openGroups(): Groups {
    const { applicationId } = this.#known();
    this.#groups ??= new Groups({
      applicationId,
      journal: this.#journal,
      custody: this.#custody,
      queue: this.#queue,
      openDatabase: () => this.#openDatabase(),
      now: () => Date.now(),
      wake: (eventIds) => this.#wakeEvents(eventIds),
    });
    return this.#groups;
  }

  #known(): { applicationId: ApplicationId } {
    if (this.#applicationId === undefined) throw new Error("the object does not know its application");
    return { applicationId: this.#applicationId };
  }

  /** The D1 of the application's home. */
  #openDatabase(): Database {
    const home = findHome(this.env, homeOf(this.#known().applicationId));
    if (!home) throw new Error("the application's home is not bound");
    return new Database(home.d1);
  }

  #wakeEvents(eventIds: readonly string[]): void {
    if (eventIds.length === 0) return;
    const { applicationId } = this.#known();
    this.ctx.waitUntil(sendWakeUps(queueOf(this.env, homeOf(applicationId)), applicationId, eventIds));
  }

  async #ensureAlarm(): Promise<void> {
    if (this.#alarmAt <= Date.now()) await this.#setAlarm(COMPARE_AFTER_MILLISECONDS);
  }

  async #setAlarm(milliseconds: number): Promise<void> {
    const alarmAt = Date.now() + milliseconds;
    await this.ctx.storage.setAlarm(alarmAt);
    this.#alarmAt = alarmAt;
  }
}

const byClock = (command: Command, id: string): Call => ({ id, until: null, origin: BY_CLOCK, command });

function toCommand(command: Exclude<InboxCommand, { kind: "reconcile" }>): Command {
  switch (command.kind) {
    case "suspend":
    case "resume":
    case "revoke":
    case "rebind":
      return { kind: "step", number: command.number, step: { kind: command.kind }, ifChange: null, ownedBy: null };
    case "reschedule": {
      const { number, expiresAt } = command;
      return { kind: "step", number, step: { kind: "reschedule", expiresAt }, ifChange: null, ownedBy: null };
    }
    case "block":
    case "unblock":
      return { kind: command.kind, userId: command.userId };
    case "erase":
      return { kind: "erase", userId: command.userId, alias: newAlias() };
  }
}
