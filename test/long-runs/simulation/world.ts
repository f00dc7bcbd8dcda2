import { Dice } from "../dice.ts";
import { Administrator } from "./actors/administrator.ts";
import { Clients } from "./actors/clients.ts";
import { Planter } from "./actors/planter.ts";
import { Bindings } from "./invariants/bindings.ts";
import { Book } from "./invariants/book.ts";
import { Deliveries } from "./invariants/deliveries.ts";
import { Erased } from "./invariants/erased.ts";
import { History } from "./invariants/history.ts";
import { Replica } from "./invariants/replica.ts";
import { Rows } from "./invariants/rows.ts";
import { Told } from "./invariants/told.ts";
import { makePlan } from "./plan.ts";
import { D1Homes } from "./platform/d1.ts";
import { Network } from "./platform/network.ts";
import { ObjectHost } from "./platform/objects.ts";
import { QueueServer } from "./platform/queue.ts";
import { StorageFailure } from "./platform/storage.ts";
import { Timeline } from "./platform/timeline.ts";
import { Faults, Wire } from "./platform/wire.ts";
import { env, Isolates } from "./service/isolates.ts";

const STARTS_AT = Date.UTC(2027, 0, 15, 9);

/** Keeps the first promise that the service broke, as a sentence: what follows one is often its consequence. Checks may stand inside calls of the service. */
export class Verdict {
  breach: { invariant: string; detail: string } | null = null;

  /** @param details what shows the breach */
  expect(isKept: boolean, invariant: string, ...details: unknown[]): void {
    if (isKept || this.breach !== null) return;
    const shown = details.map((detail) => (typeof detail === "string" ? detail : JSON.stringify(detail)));
    this.breach = { invariant, detail: shown.join(" ") };
  }
}

/** What a seed's world stands on: chance, time, a trace, and what goes wrong. */
class Ground {
  readonly dice: Dice;
  readonly timeline: Timeline;
  readonly faults: Faults;
  readonly verdict = new Verdict();
  /** Everything that happened, in order. */
  readonly traced: string[] = [];
  readonly trace = {
    /** @param who which part or actor; @param what what it did, without line breaks */
    add: (who: string, what: string): void => {
      this.traced.push(`+${((this.timeline.now - STARTS_AT) / 1000).toFixed(3)}s ${who}: ${what}`);
    },
  };

  constructor(seed: number) {
    this.dice = new Dice(seed);
    this.timeline = new Timeline(this.dice.of("timeline"), STARTS_AT);
    this.faults = new Faults(this.dice.of("faults"));
  }

  /**
   * Lets time pass until a life is over or a promise is broken.
   *
   * @returns the promise that was broken, if any was; and everything that happened, the same in two runs of one seed
   */
  async run(life: () => Promise<void>) {
    const { verdict, timeline } = this;
    const fail = (error: unknown) => {
      verdict.expect(false, "no error is left over", error instanceof Error ? error.stack : String(error));
    };
    const failUnhandled = (error: unknown) => {
      if (!(error instanceof StorageFailure)) fail(error);
    };
    process.on("unhandledRejection", failUnhandled);
    let isOver = false;
    life()
      .catch(fail)
      .finally(() => {
        isOver = true;
      });
    await timeline.pass(() => isOver || verdict.breach !== null).catch(fail);
    process.off("unhandledRejection", failUnhandled);
    return { breach: verdict.breach, history: this.traced, steps: timeline.steps };
  }
}

/** Everything that one seed makes: the platform, the service on it, those around it, and those who look on. */
export class World extends Ground {
  readonly plan = makePlan(this.dice.of("plan"));
  /** The service's own dice: `Math.random` and `crypto.getRandomValues`. */
  readonly serviceDice = this.dice.of("service");
  readonly clockDice = this.dice.of("clocks");

  readonly env = env;
  readonly wire = new Wire(this);
  readonly d1 = new D1Homes(this);
  readonly isolates = new Isolates(this);
  readonly objects = new ObjectHost(this);
  readonly queue = new QueueServer(this);
  readonly network = new Network(this);

  readonly book: Book = new Book(this);
  readonly erased: Erased = new Erased(this);
  readonly replica: Replica = new Replica(this);
  readonly rows: Rows = new Rows(this);
  readonly history: History = new History(this);
  readonly bindings: Bindings = new Bindings(this);
  readonly told: Told = new Told(this);
  readonly deliveries = new Deliveries(this);

  readonly replayDice = this.dice.of("replays");
  readonly planter = new Planter(this);
  readonly administrator = new Administrator(this);
  readonly clients = new Clients(this);
}
