import { type ApplicationId, newRandomId } from "../../shared/identifiers.ts";
import {
  CALL_DEADLINE_MILLISECONDS,
  GIVEN_UP_ALARM_MILLISECONDS,
  MAX_BATCH_CHARACTERS,
  MAX_COMMAND_PAUSES_MILLISECONDS,
  MAX_SEND_PAUSE_MILLISECONDS,
  MAX_TRY_PAUSE_MILLISECONDS,
  MIN_TRY_PAUSE_MILLISECONDS,
  RETRY_ALARM_MILLISECONDS,
  SEND_CHARACTERS,
  SEND_PAUSE_FACTOR,
} from "../../shared/limits/allocator-limits.ts";
import type { UnsealedKeys } from "../keys/unsealed-keys.ts";
import { log as logLine } from "../log.ts";
import { Unavailable } from "../platform.ts";
import type { Database } from "../storage/database.ts";
import type { Alarms } from "./alarms.ts";
import type { Call, Result } from "./commands.ts";
import {
  appendEmpty,
  appendSearch,
  type DecidedCall,
  decideGroup,
  type Group,
  splitByNumbers,
  UndecidableCall,
  withdrawNumbers,
} from "./decide-group.ts";
import { FreshNumbers } from "./fresh-numbers.ts";
import { randomBelow } from "./random.ts";
import { warnIfFilling } from "./range-warnings.ts";
import { searchChunk } from "./replica/erasures.ts";
import { Replicator } from "./replica/replicator.ts";
import type { Log } from "./tables/entry-log.ts";
import type { PendingErasure, Tables } from "./tables/tables.ts";
import { Calls, type Reply, type WaitingCall } from "./waiting-calls.ts";

export interface EngineParts {
  applicationId: ApplicationId;
  tables: Tables;
  log: Log;
  unsealedKeys: UnsealedKeys;
  alarms: Alarms;
  bytes(): number;
  now(): number;
  openDatabase(): Database;
  enqueue(eventIds: readonly string[]): void;
  notify(): void;
}

/** Work that is done step by step between groups. @returns whether there is more @throws Unavailable */
type Job = () => Promise<boolean>;

/**
 * Runs the allocator's steps one at a time: copy, compare, send, decide. It decides waiting calls together, as a group, and only
 * when D1 has the whole log. So at most one group is unsent, and nothing is decided while D1 does not respond. A call gets its
 * reply when D1 has its group.
 */
export class Engine {
  readonly applicationId: ApplicationId;
  readonly replicator: Replicator;
  readonly #parts: EngineParts;
  readonly #calls: Calls;
  readonly #freshNumbers: FreshNumbers;
  /** The group that D1 is getting. */
  #group: Group | null = null;
  /** Sum of the pauses since D1 last had the whole log, in milliseconds. */
  #paused = 0;
  readonly #jobs: { job: Job; done: PromiseWithResolvers<void> }[] = [];
  #republication: PromiseWithResolvers<void> | null = null;
  #isJobNext = false;
  #running: Promise<void> | null = null;

  constructor(parts: EngineParts) {
    const { applicationId, tables, log, unsealedKeys, openDatabase, enqueue, notify, now } = parts;
    this.applicationId = applicationId;
    this.#parts = parts;
    this.#calls = new Calls(log);
    this.#freshNumbers = new FreshNumbers(applicationId, unsealedKeys);
    this.replicator = new Replicator({
      ...{ applicationId, tables, log, openDatabase, enqueue, notify, now },
      withdraw: (numbers, mayHaveBeenSeen) => this.#withdraw(numbers, mayHaveBeenSeen),
      appendEmpty: () => appendEmpty(log, now()),
    });
  }

  /**
   * Decides a call in its turn.
   *
   * @param scriptId of the script command it carries out: D1 gets the result with the change
   */
  async submit(call: Call, scriptId: string | null = null): Promise<Reply> {
    const reply = await this.#submit(call, scriptId);
    return reply.outcome.kind === "erased" ? this.#finishErasure(call, scriptId, reply, reply.outcome) : reply;
  }

  #submit(call: Call, scriptId: string | null): Promise<Reply> {
    const reply = this.#calls.add(call, scriptId);
    void this.#run();
    return reply;
  }

  /** Goes on until the user is erased everywhere. If that takes longer than the caller waits, a repeated call joins it. */
  async #finishErasure(
    call: Call,
    scriptId: string | null,
    first: Reply,
    { userId: alias, erased, isDone }: Extract<Result, { kind: "erased" }>,
  ): Promise<Reply> {
    const { command } = call;
    if (command.kind === "erase" && !isDone) {
      return this.submit({ ...call, id: newRandomId(), command: { ...command, erasedBefore: erased } }, scriptId);
    }
    try {
      await this.addJob(() => this.#finishErasureOf(alias));
      return first;
    } catch {
      return { outcome: { kind: "unavailable" }, bookmark: null };
    }
  }

  /** Runs one step of the search, after D1 has the entry of the previous one. @returns whether there is more */
  async #finishErasureOf(alias: string): Promise<boolean> {
    const erasure = this.#parts.tables.erasure(alias);
    return erasure !== undefined && this.#continueErasure(erasure);
  }

  /** D1 may have been restored: both sides are compared before anything else is decided. */
  doubt(): void {
    this.replicator.doubt();
  }

  /** Sends what D1 lacks. @returns whether D1 has the whole log now */
  async settle(): Promise<boolean> {
    await this.addJob(async () => false).catch(() => {});
    return this.replicator.position.kind === "following" && this.replicator.behind === 0;
  }

  /** Replaces D1's rows with the allocator's. Meanwhile nothing is decided. @throws Unavailable */
  async republish(): Promise<void> {
    this.#republication ??= Promise.withResolvers<void>();
    const { promise } = this.#republication;
    void this.#run();
    await promise;
  }

  /** Adds work, a step of which is done between two groups. @throws Unavailable */
  async addJob(job: Job): Promise<void> {
    const done = Promise.withResolvers<void>();
    this.#jobs.push({ job, done });
    void this.#run();
    await done.promise;
  }

  #run(): Promise<void> {
    this.#running ??= this.#work().finally(() => {
      this.#running = null;
      // Something may have come in while the last step ended.
      if (!this.#calls.isEmpty || this.#jobs.length > 0 || this.#republication) void this.#run();
    });
    return this.#running;
  }

  async #work(): Promise<void> {
    // Calls that arrived together are decided together.
    await scheduler.wait(0);
    for (let pause = MIN_TRY_PAUSE_MILLISECONDS; ; ) {
      this.#calls.giveUpLate(this.#parts.now());
      const step = await this.#step();
      if (step === "idle") return;
      if (step === "done") {
        pause = MIN_TRY_PAUSE_MILLISECONDS;
        continue;
      }
      this.#failJobs();
      if (!this.#hasCallers()) {
        // Callers who have just given up soon find out what became of their calls.
        const wait = this.#group === null ? RETRY_ALARM_MILLISECONDS : GIVEN_UP_ALARM_MILLISECONDS;
        this.#endGroup();
        // The alarm goes on with what D1 lacks.
        await this.#parts.alarms.ensure(this.#parts.now() + wait);
        return;
      }
      await scheduler.wait(pause);
      pause = Math.min(2 * pause, MAX_TRY_PAUSE_MILLISECONDS);
    }
  }

  /** Whether somebody waits for a reply. Calls past their deadline are given up. */
  #hasCallers(): boolean {
    const now = this.#parts.now();
    this.#calls.giveUpLate(now);
    const isWaited = ({ waiting: { call } }: DecidedCall) => now < call.until;
    return !this.#calls.isEmpty || (this.#group?.decided.some(isWaited) ?? false);
  }

  /** @returns `failed`: D1 did not respond, so it has to be tried again */
  async #step(): Promise<"done" | "failed" | "idle"> {
    const { replicator } = this;
    const { tables } = this.#parts;
    try {
      if (this.#republication) {
        await this.#doRepublish(this.#republication);
        return "done";
      }
      if (replicator.position.kind === "not-in-log") {
        const calls = this.#calls.take();
        if (this.#isCurrent(calls)) for (const waiting of calls) this.#giveUp(waiting);
        this.#endGroup();
        this.#failJobs();
        return "idle";
      }
      if (tables.self()?.copiedAt == null) {
        await replicator.copy();
        await this.#parts.alarms.ensureComparison(this.#parts.now());
        return "done";
      }
      if (replicator.position.kind === "uncertain") {
        await replicator.compare();
        this.#replyIfSent();
        return "done";
      }
      if (replicator.behind > 0) return (await this.#send()) ? "done" : "failed";
      // Groups and jobs alternate, so neither waits for all of the other.
      this.#isJobNext = !this.#isJobNext;
      if (!this.#calls.isEmpty && !(this.#isJobNext && this.#hasJob)) {
        await this.#decide();
        return "done";
      }
      return (await this.#doJob()) ? "done" : "idle";
    } catch (error) {
      logLine("warn", { event: "replication-postponed", application: this.applicationId, error });
      return "failed";
    }
  }

  /** One try: if it fails, the administrator begins it anew. */
  async #doRepublish({ resolve, reject }: PromiseWithResolvers<void>): Promise<void> {
    this.#republication = null;
    try {
      await this.replicator.republish();
      resolve();
    } catch (error) {
      reject(error);
    }
  }

  async #send(): Promise<boolean> {
    const startedAt = this.#parts.now();
    const isLate = this.#paused >= MAX_COMMAND_PAUSES_MILLISECONDS && this.#hasCallers();
    const isSent = await this.replicator.send(isLate ? MAX_BATCH_CHARACTERS : SEND_CHARACTERS);
    this.#replyIfSent();
    if (!isSent || this.replicator.behind === 0) this.#paused = 0;
    else if (!isLate) await this.#pause(this.#parts.now() - startedAt);
    return isSent;
  }

  /** Leaves D1 to other applications between two batches. @param batch how long the first one took, in milliseconds */
  async #pause(batch: number): Promise<void> {
    const pause = Math.min(SEND_PAUSE_FACTOR * batch, MAX_SEND_PAUSE_MILLISECONDS);
    this.#paused += pause;
    await scheduler.wait(pause);
  }

  /** Decides the calls that wait. Nothing is unsent, so a result without a change can be returned at once. */
  async #decide(): Promise<void> {
    const { tables, log, now, alarms } = this.#parts;
    const calls = this.#accept(this.#calls.take());
    if (calls.length === 0) return;
    try {
      const numberAt = await this.#freshNumbers.forCommands(calls.map(({ call }) => call.command));
      await alarms.load();
      const before = log.head()?.counters.rangeSegments ?? [];
      // The deadline may have passed meanwhile.
      const live = calls.filter((waiting) => !this.#giveUpIfLate(waiting, now()));
      this.#group = decideGroup(tables, log, this.#calls, live, {
        now: now(),
        latestAt: log.latestLoggedAt(),
        numberAt,
        randomBelow,
      });
      warnIfFilling(this.applicationId, before, log.head()?.counters.rangeSegments ?? []);
    } catch (error) {
      this.#endCalls(calls, error);
      return;
    }
    const { rest, sequence, nextEnd } = this.#group;
    this.#calls.putBack(rest);
    // In the same step as the transaction, so that storage has both or neither.
    if (sequence !== null) await Promise.all([alarms.ensureComparison(now()), alarms.ensure(nextEnd)]);
    this.#replyIfSent();
  }

  /** Nothing was decided: a key cannot be opened, another instance took over, or something is wrong. */
  #endCalls(calls: readonly WaitingCall[], error: unknown): void {
    if (error instanceof Unavailable) {
      logLine("warn", { event: "group-postponed", application: this.applicationId, calls: calls.length, error });
      for (const waiting of calls) this.#giveUp(waiting);
      return;
    }
    logLine("error", { event: "group-failed", application: this.applicationId, calls: calls.length, error });
    const faulty = error instanceof UndecidableCall ? [error.waiting] : calls;
    if (!this.#isCurrent(calls)) return;
    for (const waiting of faulty) this.#calls.reply(waiting, { outcome: { kind: "failed" }, bookmark: null });
    // The others are decided without it.
    this.#calls.putBack(calls.filter((waiting) => !faulty.includes(waiting)));
  }

  /** In a superseded instance the write fails, and so do its calls: their callers try again at the new instance. */
  #isCurrent(calls: readonly WaitingCall[]): boolean {
    try {
      if (calls.length > 0) this.#parts.tables.touch();
      return true;
    } catch (superseded) {
      for (const waiting of calls) this.#calls.fail(waiting, superseded);
      return false;
    }
  }

  /**
   * Calls that began before the rows were copied from D1 may have been decided by the allocator that lost its storage: they get no
   * result.
   */
  #accept(calls: readonly WaitingCall[]): WaitingCall[] {
    const copiedAt = this.#parts.tables.self()?.copiedAt ?? 0;
    return calls.filter((waiting) => {
      const { until } = waiting.call;
      const isOld = until - CALL_DEADLINE_MILLISECONDS <= copiedAt;
      if (isOld) this.#giveUp(waiting);
      return !isOld;
    });
  }

  #giveUpIfLate(waiting: WaitingCall, now: number): boolean {
    const isLate = now >= waiting.call.until;
    if (isLate) this.#giveUp(waiting);
    return isLate;
  }

  #giveUp(waiting: WaitingCall): void {
    this.#calls.reply(waiting, { outcome: { kind: "unavailable" }, bookmark: null });
  }

  /** Replies to a group's calls when D1 has what they changed. */
  #replyIfSent(): void {
    const { position, bookmark } = this.replicator;
    const group = this.#group;
    if (!group || position.kind !== "following") return;
    if (group.sequence !== null && position.at.sequence < group.sequence) return;
    this.#group = null;
    for (const { waiting, outcome } of group.decided) this.#calls.reply(waiting, { outcome, bookmark });
  }

  /** The callers have given up. A repeated call finds its result in the log. */
  #endGroup(): void {
    const group = this.#group;
    this.#group = null;
    for (const { waiting } of group?.decided ?? []) this.#giveUp(waiting);
  }

  #withdraw(numbers: readonly number[], mayHaveBeenSeen: boolean): void {
    const { tables, log, now } = this.#parts;
    withdrawNumbers(tables, log, numbers, mayHaveBeenSeen, { now: now(), randomBelow });
    logLine("error", { event: "number-refused", application: this.applicationId, numbers });
    this.#calls.forget(numbers);
    const group = this.#group;
    if (!group) return;
    const { naming, refused, others } = splitByNumbers(group.decided, numbers);
    this.#group = { ...group, decided: others };
    // These calls may have been refused because of a badge that is now withdrawn.
    this.#calls.putBack(refused.map(({ waiting }) => waiting));
    for (const { waiting } of naming) if (mayHaveBeenSeen) this.#giveUp(waiting);
    // Nobody has seen the number: these calls get another one.
    if (!mayHaveBeenSeen) this.#calls.putBack(naming.map(({ waiting }) => waiting));
  }

  get #hasJob(): boolean {
    return this.#jobs.length > 0 || this.#parts.tables.pendingErasure() !== undefined;
  }

  async #doJob(): Promise<boolean> {
    const [next] = this.#jobs;
    if (!next) {
      const pending = this.#parts.tables.pendingErasure();
      return pending !== undefined && this.#continueErasure(pending);
    }
    const hasMore = await next.job();
    this.#jobs.shift();
    // To the back of the queue, so that other jobs do not wait for all of a long one.
    if (hasMore) this.#jobs.push(next);
    else next.done.resolve();
    return true;
  }

  async #continueErasure(erasure: PendingErasure): Promise<true> {
    const { tables, log, openDatabase, alarms, now } = this.#parts;
    const step = await searchChunk(openDatabase(), this.applicationId, erasure);
    appendSearch(tables, log, erasure, step, now());
    await alarms.ensureComparison(now());
    return true;
  }

  #failJobs(): void {
    for (const { done } of this.#jobs.splice(0)) done.reject(new Error("D1 is away or unknown"));
  }
}
