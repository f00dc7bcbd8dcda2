import { Dice } from "../../dice.ts";
import { Timeline } from "../platform/timeline.ts";
import { Database } from "./d1.ts";
import type { Command } from "./decide.ts";
import { Journal, Storage } from "./journal.ts";
import { Promises } from "./promises.ts";
import type { Rule } from "./rules.ts";
import { type Caller, Wire } from "./wire.ts";
import { type Answer, Writer } from "./writer.ts";

const MINUTE = 60_000;
const DAY = 1440 * MINUTE;
const STARTS_AT = 1000 * DAY;
const CALL_MILLISECONDS = 10_000;
const TIME_TRAVEL_MILLISECONDS = 30 * DAY;
const TICK_GAP_MILLISECONDS = 90_000;
const COMMANDS = [
  "issue",
  "issue",
  "issue",
  "issue",
  "login",
  "suspend",
  "resume",
  "revoke",
  "invite",
  "invite",
  "claim",
  "claim",
  "withdraw",
  "block",
  "unblock",
  "fault",
] as const;

/** What a seed chooses before anything happens. */
const makePlan = (dice: Dice) => ({ ...makeUsualPlan(dice), ...(dice.chance(0.1) ? LONG : {}) });

/** Long enough for entries to be old, and for what they are kept for. */
const LONG = { rounds: 4, quietDays: 25, restoresD1: 1, restoresObject: 0, restoresBoth: 0, acts: 3 };

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

/** One seed: an application's object over a D1, clients, an administrator, and what happens to all of them. */
export class World {
  readonly dice: Dice;
  readonly plan: ReturnType<typeof makePlan>;
  readonly timeline: Timeline;
  readonly wire: Wire;
  readonly d1: Database;
  readonly storage = new Storage();
  readonly promises: Promises;
  readonly without: ReadonlySet<Rule>;
  readonly traced: string[] = [];
  /** Sequence numbers of entries that accept a loss. */
  readonly losses: number[] = [];
  current: Writer | null = null;
  #instances = 0;
  #ids = 0;
  readonly #sendDice: Dice;
  #alarmAt = 0;
  #isOver = false;
  #hasGap = false;
  #invited: string[] = [];
  #quietMilliseconds = 0;
  /** What happens when the object sends to D1, one after the other. */
  #pending: (() => void)[] = [];
  /** Times of restorations of D1, in milliseconds. */
  #restoredAt: number[] = [];

  constructor(seed: number, without: ReadonlySet<Rule>) {
    this.dice = new Dice(seed);
    this.without = without;
    this.#sendDice = this.dice.of("accidents at sends");
    this.plan = makePlan(this.dice.of("plan"));
    this.timeline = new Timeline(this.dice.of("timeline"), STARTS_AT);
    this.wire = new Wire(this.dice.of("wire"), this.timeline);
    this.d1 = new Database(this.timeline);
    this.promises = new Promises(this);
    this.timeline.now++;
    this.d1.execute([{ sql: "INSERT INTO position VALUES ('app', 0, 'start', 0, 0, 0)", parameters: [] }]);
    this.d1.onCommit = (before, after) => this.promises.commit(before, after);
  }

  /** What the object's storage has. */
  get journal(): Journal {
    return this.storage.journal;
  }

  get now(): number {
    return this.timeline.now;
  }

  trace(who: string, what: string): void {
    this.traced.push(`+${((this.now - STARTS_AT) / 1000).toFixed(3)}s ${who}: ${what}`);
  }

  newId(what: string): string {
    return `${what} ${++this.#ids}`;
  }

  sleep(caller: Caller, milliseconds: number): Promise<void> {
    return new Promise((resolve) => void this.timeline.after(milliseconds, () => caller.isAlive && resolve()));
  }

  /** The instance that calls go to, made when there is none. */
  object(): Writer {
    if (!this.current?.isAlive) this.current = new Writer(this, `instance ${++this.#instances}`);
    return this.current;
  }

  setAlarm(milliseconds: number): void {
    this.#alarmAt = this.now + milliseconds;
    if (this.without.has("alarm")) return;
    const at = this.#alarmAt;
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
    if (!this.wire.isFaulty || !this.#sendDice.chance(0.15)) return;
    const accident = this.#pending.shift();
    if (accident) this.timeline.after(this.#sendDice.below(this.#sendDice.oneOf([4, 12, 12, 8000])), accident);
  }

  reportGap(name: string, detail: string): void {
    this.trace(name, `journal-gap: ${detail}`);
    this.promises.gap(name, detail);
    this.#hasGap = true;
  }

  async live(): Promise<void> {
    const { dice, plan, timeline } = this;
    void this.#sweep();
    this.trace("seed", JSON.stringify(plan));
    for (let round = 0; round < plan.rounds; round++) {
      this.wire.isFaulty = true;
      const accidents = this.#accidents(round);
      await Promise.all([
        ...Array.from({ length: plan.clients }, (_, place) => this.#client(place)),
        this.#reader(),
        accidents,
        this.#attend(),
      ]);
      await this.#administrate();
      this.wire.isFaulty = false;
      this.trace("seed", "quiet");
      await timeline.sleep(dice.below(5 * MINUTE));
      if (plan.quietDays === 0 || round === plan.rounds - 1) continue;
      this.#quietMilliseconds = 12 * 60 * MINUTE;
      await timeline.sleep(dice.between(1, plan.quietDays) * DAY);
      this.#quietMilliseconds = 0;
      await timeline.sleep(13 * 60 * MINUTE);
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
      const id = this.newId(kind);
      const isInvitation = kind === "claim" || kind === "withdraw";
      const subject = isInvitation ? (dice.pick(this.#invited) ?? "none") : String(dice.between(1, 8));
      const device = `d${dice.below(4)}`;
      const command = {
        id,
        call: this.newId("call"),
        kind,
        device,
        user: `u${dice.below(2)}`,
        subject,
        deadline: 0,
        isNew: kind === "issue",
      };
      const answer = await this.#call(command);
      if (kind === "block" && answer === null && dice.chance(0.5))
        await this.#call({ ...command, call: this.newId("call") });
    }
  }

  /** One call, as its Worker carries it to the object: again and again until its deadline. */
  async #call(made: Command): Promise<Answer | null> {
    const beganAt = this.now;
    const command = { ...made, deadline: beganAt + CALL_MILLISECONDS };
    const worker: Caller = { isAlive: true, die: () => {} };
    const late = this.timeline.sleep(CALL_MILLISECONDS).then(() => null);
    const tries = async () => {
      while (worker.isAlive) {
        try {
          const sentAt = this.now;
          return await this.wire.call(worker, "object", () => this.object().submit(command, sentAt));
        } catch {
          await this.timeline.sleep(200);
        }
      }
      return null;
    };
    const answer = await Promise.race([tries(), late]);
    worker.isAlive = false;
    this.trace(
      command.call,
      `${command.kind} ${command.device}/${command.user} ${command.subject}: ${JSON.stringify(answer ?? 503)}`,
    );
    const result = typeof answer === "string" ? null : answer;
    if (answer === "failed") this.promises.failed(command);
    this.promises.tell({ command, beganAt, endedAt: this.now, result });
    if (command.kind === "invite" && result) this.#invited.push(command.id);
    return result;
  }

  async #reader(): Promise<void> {
    if (!this.plan.isRead) return;
    for (let reads = 0; reads < 10; reads++) {
      await this.timeline.sleep(this.dice.below(this.plan.thinkMilliseconds));
      this.promises.read(this.d1.read().rows);
    }
  }

  /** Restorations, deaths, and second instances, in an order and at times that the seed chooses. */
  async #accidents(round: number): Promise<void> {
    const { plan } = this;
    const dice = this.dice.of(`accidents ${round}`);
    const kinds = [
      ...Array.from({ length: plan.restoresD1 }, () => () => this.#restoreD1(dice)),
      ...Array.from({ length: plan.restoresObject }, () => () => this.#restoreObject(dice)),
      ...Array.from({ length: plan.restoresBoth }, () => () => {
        this.#restoreD1(dice);
        this.#restoreObject(dice);
      }),
      ...Array.from({ length: plan.kills }, () => () => this.current?.die()),
      ...Array.from({ length: plan.supersedes }, () => () => this.#supersede()),
    ];
    const inOrder = dice.shuffled(kinds);
    this.#pending = inOrder.splice(0, dice.below(inOrder.length + 1));
    for (const accident of inOrder) {
      await this.timeline.sleep(dice.below(dice.oneOf([500, 2 * plan.thinkMilliseconds, 4 * MINUTE])));
      accident();
    }
  }

  /** Another instance starts while this one goes on, until it touches its storage. */
  #supersede(): void {
    this.trace("seed", "another instance starts");
    this.current = new Writer(this, `instance ${++this.#instances}`);
  }

  #restoreD1(dice: Dice): void {
    // Nobody goes back to a life that was lost unnoticed.
    const earliest = this.promises.unnoticedAt;
    const moments = this.d1.moments(this.now - TIME_TRAVEL_MILLISECONDS).filter((moment) => moment >= earliest);
    // Mostly to one of the last.
    const earlier = dice.pick(this.#restoredAt.flatMap((at) => [at, at - 1]).filter((at) => at >= (moments[0] ?? 0)));
    const back = dice.chance(0.5) ? dice.below(Math.min(6, moments.length)) : dice.below(moments.length);
    const moment = (dice.chance(0.3) ? earlier : undefined) ?? moments.at(-1 - back) ?? this.now;
    this.promises.wasHidden ||=
      this.d1.read().position?.entry !== this.journal.top?.entry && this.#restoredAt.length > 0;
    this.#restoredAt.push(this.now);
    this.d1.restore(moment);
    this.trace(
      "seed",
      `D1 is restored to +${(moment - STARTS_AT) / 1000}s: ${JSON.stringify(this.d1.read().position)}`,
    );
    this.promises.restored(false);
  }

  #restoreObject(dice: Dice): void {
    if (dice.chance(0.4) || this.promises.unnoticedAt > 0) this.storage.write(new Journal());
    else this.storage.restore(dice);
    this.trace("seed", `the object is restored: ${JSON.stringify(this.journal.top?.entry ?? "lost")}`);
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
      if (!this.d1.read().position) {
        this.trace("administrator", "restores D1 forward again");
        this.d1.restoreForward();
        this.promises.restored(false);
        continue;
      }
      this.trace("administrator", "reconcile --accept-loss");
      await Promise.race([
        this.object()
          .acceptLoss()
          .catch(() => {}),
        this.timeline.sleep(MINUTE),
      ]);
    }
  }

  /** The cron trigger, once a minute; less often where nothing happens for days. */
  async #sweep(): Promise<void> {
    const worker: Caller = { isAlive: true, die: () => {} };
    for (;;) {
      const read = this.d1.tick;
      const { rows } = this.d1.read();
      const isGap = this.now - read > TICK_GAP_MILLISECONDS && !this.without.has("clock-row");
      const isUnfinished = rows.some(({ kind, state }) => kind === "block" && state === "revoking");
      const asked = isGap || isUnfinished ? this.#ask(worker) : Promise.resolve(true);
      if (await asked) {
        const tick = this.now;
        const written = this.wire.call(worker, "d1", () =>
          this.d1.writeTick(tick, read, !this.without.has("tick-in-time")),
        );
        await Promise.race([written.catch(() => {}), this.timeline.sleep(5000)]);
      }
      await this.timeline.sleep(this.#quietMilliseconds || MINUTE);
      if (this.#isOver) return;
    }
  }

  #ask(worker: Caller): Promise<boolean> {
    const asked = this.wire.call(worker, "object", () => this.object().compare());
    return Promise.race([
      asked.then(
        () => true,
        () => false,
      ),
      this.timeline.sleep(20_000).then(() => false),
    ]);
  }
}
