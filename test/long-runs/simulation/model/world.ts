import type { Dice } from "../../dice.ts";
import { Ground } from "../ground.ts";
import { HOUR, MINUTE } from "../plan.ts";
import { type Caller, type Mixture, POSSIBLE } from "../platform/wire.ts";
import { Database } from "./d1.ts";
import type { Command } from "./decide.ts";
import { Journal } from "./journal.ts";
import { Promises } from "./promises.ts";
import type { Rule } from "./rules.ts";
import { type Answer, Writer } from "./writer.ts";

const DAY = 24 * HOUR;
const CALL_MILLISECONDS = 10_000;
const TIME_TRAVEL_MILLISECONDS = 30 * DAY;
const TICK_GAP_MILLISECONDS = 90_000;
/** D1 may also repeat a batch, and faults are more frequent than where a seed is longer. */
const FAULTS: Mixture = {
  possible: { ...POSSIBLE, d1: [...POSSIBLE.d1, "twice"] },
  ...{ shares: [0.15, 0.4, 0.8], rates: [0.01, 0.05, 0.15, 0.3], slowness: [0, 0.05, 0.2] },
  ...{ lateMilliseconds: [4000, 12_000, 60_000, 600_000], repeatMilliseconds: [10, 8000] },
};
/** What clients ask for: some of it more often. */
const ISSUES = ["issue", "issue", "issue", "issue", "login", "suspend", "resume", "revoke"] as const;
const COMMANDS = [...ISSUES, "invite", "invite", "claim", "claim", "withdraw", "block", "unblock", "fault"] as const;

const makeUsualPlan = (dice: Dice) => ({
  size: dice.chance(0.5) ? dice.between(3, 8) : 10_000,
  clients: dice.between(2, 4),
  acts: dice.between(3, 12),
  thinkMilliseconds: dice.oneOf([50, 50, 3000, 40_000]),
  isBlind: dice.chance(0.5),
  /** Whether somebody reads D1 past the object. */
  isRead: dice.chance(0.5),
  /** Rounds of acting, with days between them where a seed lasts long. */
  rounds: dice.oneOf([1, 1, 2, 4]),
  quietDays: dice.oneOf([0, 0, 1, 10, 20]),
  restoresD1: dice.oneOf([0, 1, 2, 4]),
  restoresObject: dice.oneOf([0, 0, 1, 2]),
  restoresBoth: dice.oneOf([0, 0, 0, 1]),
  kills: dice.oneOf([0, 0, 2, 6]),
  supersedes: dice.oneOf([0, 0, 2, 6]),
  faultChance: dice.oneOf([0, 0.5]),
});

/** Long enough for entries to be old, and for what they are kept for. */
const LONG = { rounds: 4, quietDays: 25, restoresD1: 1, restoresObject: 0, restoresBoth: 0, acts: 3 };

/** What a seed chooses before anything happens. */
const makePlan = (dice: Dice) => ({ ...makeUsualPlan(dice), ...(dice.chance(0.1) ? LONG : {}) });

/** Runs one seed of the model. @param without a rule that is left out */
export function runModel(seed: number, without?: Rule) {
  const model = new Model(seed, without);
  return model.run(() => model.live());
}

/** A Worker, which lives as long as somebody waits for it. */
const workerNamed = (name: string) => ({ name, isAlive: true, die: () => {} });

/** One seed: an application's object over a D1, clients, an administrator, and what happens to all of them. */
export class Model extends Ground {
  readonly plan = makePlan(this.dice.of("plan"));
  readonly d1 = new Database(this.timeline);
  readonly promises: Promises = new Promises(this);
  readonly without: Rule | undefined;
  /** Sequence numbers of entries that accept a loss. */
  readonly losses: number[] = [];
  /** The instance that calls go to. */
  current: Writer | null = null;
  /** What the object's storage was, and is now. */
  readonly #journals = [new Journal()];
  readonly #sendDice = this.dice.of("accidents at sends");
  #instances = 0;
  #ids = 0;
  #alarmAt = 0;
  #isOver = false;
  #hasGap = false;
  readonly #invited: string[] = [];
  #quietMilliseconds = 0;
  /** What happens when the object sends to D1, one after the other. */
  #pending: (() => void)[] = [];
  /** Times of restorations of D1, in milliseconds. */
  readonly #restoredAt: number[] = [];

  constructor(seed: number, without: Rule | undefined) {
    super(seed, FAULTS);
    this.without = without;
    this.d1.onCommit = (before, after) => this.promises.commit(before, after);
  }

  /** What the object's storage has. */
  get journal(): Journal {
    return this.#journals.at(-1) ?? new Journal();
  }

  set journal(journal: Journal) {
    this.#journals.push(journal);
  }

  newId(what: string): string {
    return `${what} ${++this.#ids}`;
  }

  sleep(caller: Caller, milliseconds: number): Promise<void> {
    return new Promise((resolve) => void this.timeline.after(milliseconds, () => caller.isAlive && resolve()));
  }

  call<T>(caller: Caller, part: "d1" | "object", what: string, effect: () => T | Promise<T>): Promise<T> {
    return this.wire.call({ part, what, effect, error: () => new Error("lost") }, caller);
  }

  /** The instance that calls go to, made when there is none. */
  object(): Writer {
    return this.current?.isAlive ? this.current : this.#supersede();
  }

  setAlarm(milliseconds: number): void {
    const at = this.timeline.now + milliseconds;
    this.#alarmAt = at;
    if (this.without === "alarm") return;
    this.timeline.after(milliseconds, () => {
      if (this.#alarmAt === at) void this.#goOff();
    });
  }

  /** The platform runs an alarm again until it did not fail. */
  async #goOff(): Promise<void> {
    const object = this.object();
    const compared = object.compare().then(
      () => true,
      () => object.isAlive,
    );
    if (!(await Promise.race([compared, object.death.promise]))) this.timeline.after(2000, () => void this.#goOff());
  }

  /** The object has sent something to D1. */
  sent(): void {
    if (!this.faults.isOn || !this.#sendDice.chance(0.15)) return;
    const accident = this.#pending.shift();
    if (accident) this.timeline.after(this.#sendDice.below(this.#sendDice.oneOf([4, 12, 12, 8000])), accident);
  }

  reportGap(name: string, detail: string): void {
    this.trace.add(name, `journal-gap: ${detail}`);
    this.promises.gap(name, detail);
    this.#hasGap = true;
  }

  async live(): Promise<void> {
    const { dice, plan, timeline } = this;
    void this.#sweep();
    this.trace.add("seed", JSON.stringify(plan));
    for (let round = 0; round < plan.rounds; round++) {
      this.faults.isOn = true;
      const clients = Array.from({ length: plan.clients }, (_, place) => this.#client(place));
      await Promise.all([...clients, this.#reader(), this.#accidents(round), this.#attend()]);
      await this.#administrate();
      this.faults.isOn = false;
      this.trace.add("seed", "quiet");
      await timeline.sleep(dice.below(5 * MINUTE));
      if (plan.quietDays === 0 || round === plan.rounds - 1) continue;
      this.#quietMilliseconds = 12 * HOUR;
      await timeline.sleep(dice.between(1, plan.quietDays) * DAY);
      this.#quietMilliseconds = 0;
      await timeline.sleep(13 * HOUR);
    }
    await timeline.sleep(5 * MINUTE);
    this.promises.unasked();
    for (let tries = 0; tries < 3; tries++) {
      await timeline.sleep(5 * MINUTE);
      await this.#client(tries, 3);
      await this.#administrate();
    }
    await timeline.sleep(5 * MINUTE);
    await this.#administrate();
    this.promises.atRest();
    this.#isOver = true;
  }

  async #client(place: number, acts = this.plan.acts): Promise<void> {
    const { plan, timeline } = this;
    const dice = this.dice.of(`client ${place} ${this.#ids}`);
    for (let act = 0; act < acts; act++) {
      await timeline.sleep(dice.below(plan.thinkMilliseconds));
      const kind = dice.oneOf(COMMANDS);
      if (kind === "fault" && !dice.chance(plan.faultChance)) continue;
      const isOfInvitation = kind === "claim" || kind === "withdraw";
      const subject = isOfInvitation ? (dice.pick(this.#invited) ?? "none") : String(dice.between(1, 8));
      const who = { device: `d${dice.below(4)}`, user: `u${dice.below(2)}` };
      const request = { id: this.newId(kind), kind, subject, ...who, isNew: kind === "issue" };
      const result = await this.#call(request);
      if (kind === "block" && result === null && dice.chance(0.5)) await this.#call(request);
    }
  }

  /** One call, as its Worker carries it to the object: again and again until its deadline. @returns null for 503 */
  async #call(request: Omit<Command, "call" | "deadline">): Promise<Answer | null> {
    const beganAt = this.timeline.now;
    const command = { ...request, call: this.newId("call"), deadline: beganAt + CALL_MILLISECONDS };
    const worker = workerNamed(command.call);
    const { kind, device, user, subject } = command;
    const late = this.timeline.sleep(CALL_MILLISECONDS).then(() => null);
    const tries = async () => {
      while (worker.isAlive) {
        const sentAt = this.timeline.now;
        const submitted = this.call(worker, "object", kind, () => this.object().submit(command, sentAt));
        const answer = await submitted.catch(() => null);
        if (answer) return answer;
        await this.timeline.sleep(200);
      }
      return null;
    };
    const answer = await Promise.race([tries(), late]);
    worker.isAlive = false;
    this.trace.add(command.call, `${kind} ${device}/${user} ${subject}: ${JSON.stringify(answer ?? 503)}`);
    this.verdict.expect(answer !== "failed" || kind === "fault", "D1 refuses only what is wrong", command);
    const result = typeof answer === "string" ? null : answer;
    this.promises.tell({ command, beganAt, endedAt: this.timeline.now, result });
    if (kind === "invite" && result) this.#invited.push(command.id);
    return result;
  }

  async #reader(): Promise<void> {
    for (let reads = 0; this.plan.isRead && reads < 10; reads++) {
      await this.timeline.sleep(this.dice.below(this.plan.thinkMilliseconds));
      this.promises.read(this.d1.read().rows);
    }
  }

  /** Restorations, deaths, and second instances, in an order and at times that the seed chooses. */
  async #accidents(round: number): Promise<void> {
    const { plan } = this;
    const dice = this.dice.of(`accidents ${round}`);
    const both = () => {
      this.#restoreD1(dice);
      this.#restoreObject(dice);
    };
    const inOrder = dice.shuffled([
      ...Array.from({ length: plan.restoresD1 }, () => () => this.#restoreD1(dice)),
      ...Array.from({ length: plan.restoresObject }, () => () => this.#restoreObject(dice)),
      ...Array.from({ length: plan.restoresBoth }, () => both),
      ...Array.from({ length: plan.kills }, () => () => this.current?.die()),
      ...Array.from({ length: plan.supersedes }, () => () => this.#supersede()),
    ]);
    this.#pending = inOrder.splice(0, dice.below(inOrder.length + 1));
    for (const accident of inOrder) {
      await this.timeline.sleep(dice.below(dice.oneOf([500, 2 * plan.thinkMilliseconds, 4 * MINUTE])));
      accident();
    }
  }

  /** Another instance starts; one that lives goes on until it touches its storage. */
  #supersede(): Writer {
    this.current = new Writer(this, `instance ${++this.#instances}`);
    this.trace.add(this.current.name, "starts");
    return this.current;
  }

  #restoreD1(dice: Dice): void {
    const { timeline, promises, d1 } = this;
    // Nobody goes back to a life that was lost unnoticed.
    const moments = d1
      .moments(timeline.now - TIME_TRAVEL_MILLISECONDS)
      .filter((moment) => moment >= promises.unnoticedAt);
    // Mostly to one of the last.
    const earlier = dice.pick(this.#restoredAt.flatMap((at) => [at, at - 1]).filter((at) => at >= (moments[0] ?? 0)));
    const back = dice.chance(0.5) ? dice.below(Math.min(6, moments.length)) : dice.below(moments.length);
    const moment = (dice.chance(0.3) ? earlier : undefined) ?? moments.at(-1 - back) ?? timeline.now;
    promises.wasHidden ||= d1.read().position?.entry !== this.journal.top?.entry && this.#restoredAt.length > 0;
    this.#restoredAt.push(timeline.now);
    d1.restore(moment);
    this.trace.add("seed", `D1 is restored: ${JSON.stringify(d1.read().position)}`);
    promises.restored(false);
  }

  #restoreObject(dice: Dice): void {
    const isLost = dice.chance(0.4) || this.promises.unnoticedAt > 0;
    this.journal = isLost ? new Journal() : (dice.pick(this.#journals) ?? this.journal);
    this.trace.add("seed", `the object is restored: ${JSON.stringify(this.journal.top?.entry ?? "lost")}`);
    this.#supersede();
    this.promises.restored(true);
  }

  /** The administrator looks after what happens meanwhile. */
  async #attend(): Promise<void> {
    for (let looks = 0; looks < 3; looks++) {
      await this.timeline.sleep(this.dice.below(3 * this.plan.thinkMilliseconds));
      await this.#administrate();
    }
  }

  /** The administrator reads the log. */
  async #administrate(): Promise<void> {
    for (; this.#hasGap; await this.timeline.sleep(MINUTE)) {
      this.#hasGap = false;
      if (this.d1.read().position) {
        this.trace.add("administrator", "reconcile --accept-loss");
        const accepted = this.object().acceptLoss();
        await Promise.race([accepted.catch(() => {}), this.timeline.sleep(MINUTE)]);
      } else {
        this.trace.add("administrator", "restores D1 forward again");
        this.d1.restoreForward();
        this.promises.restored(false);
      }
    }
  }

  /** The cron trigger, once a minute; less often where nothing happens for days. */
  async #sweep(): Promise<void> {
    const worker = workerNamed("sweep");
    while (!this.#isOver) {
      const read = this.d1.tick;
      const { rows } = this.d1.read();
      const now = this.timeline.now;
      const isGap = now - read > TICK_GAP_MILLISECONDS && this.without !== "clock-row";
      const isUnfinished = rows.some(({ kind, state }) => kind === "block" && state === "revoking");
      const compare = () => this.call(worker, "object", "compare", () => this.object().compare());
      const isCompared = isGap || isUnfinished ? await this.#within(20_000, compare()) : true;
      const tick = this.timeline.now;
      const write = () => this.d1.writeTick(tick, read, this.without !== "tick-in-time");
      if (isCompared) await this.#within(5000, this.call(worker, "d1", "tick", write));
      await this.timeline.sleep(this.#quietMilliseconds || MINUTE);
    }
  }

  /** @returns whether it was done in time */
  #within(milliseconds: number, work: Promise<void>): Promise<boolean> {
    const done = work.then(
      () => true,
      () => false,
    );
    return Promise.race([done, this.timeline.sleep(milliseconds).then(() => false)]);
  }
}
