import { homeOf } from "../../../src/shared/homes.ts";
import type { ApplicationId } from "../../../src/shared/identifiers.ts";
import { Dice } from "../dice.ts";
import { Administrator } from "./actors/administrator.ts";
import { Clients } from "./actors/clients.ts";
import { Receivers } from "./actors/receivers.ts";
import { Bindings } from "./invariants/bindings.ts";
import { Book } from "./invariants/book.ts";
import { Deliveries } from "./invariants/deliveries.ts";
import { History } from "./invariants/history.ts";
import { Rows } from "./invariants/rows.ts";
import { Told } from "./invariants/told.ts";
import { Verdict } from "./invariants/verdict.ts";
import { makePlan } from "./plan.ts";
import { D1Homes } from "./platform/d1.ts";
import { Faults } from "./platform/faults.ts";
import { Network } from "./platform/network.ts";
import { ObjectHost } from "./platform/objects.ts";
import { QueueServer } from "./platform/queue.ts";
import { Timeline } from "./platform/timeline.ts";
import { Wire } from "./platform/wire.ts";
import { env, Isolates } from "./service/isolates.ts";

const STARTS_AT = Date.UTC(2027, 0, 15, 9);

/** Lines that are kept: enough for the last steps of a failure. */
const KEPT_LINES = 20_000;

/** What happened, in order. Its digest tells whether two runs of one seed were the same. */
class Trace {
  readonly #timeline: Timeline;
  #lines: string[] = [];
  #digest = 0x811c9dc5;

  constructor(timeline: Timeline) {
    this.#timeline = timeline;
  }

  /** @param who which part or actor; @param what what it did, without line breaks */
  add(who: string, what: string): void {
    const line = `+${((this.#timeline.now - STARTS_AT) / 1000).toFixed(3)}s ${who}: ${what}`;
    for (let index = 0; index < line.length; index++) {
      this.#digest = Math.imul(this.#digest ^ line.charCodeAt(index), 0x01000193);
    }
    this.#lines.push(line);
    if (this.#lines.length > 2 * KEPT_LINES) this.#lines = this.#lines.slice(-KEPT_LINES);
  }

  /** The last lines, oldest first. */
  last(lines: number): string[] {
    return lines === 0 ? [] : this.#lines.slice(-lines);
  }

  get digest(): string {
    return (this.#digest >>> 0).toString(16).padStart(8, "0");
  }
}

/** Where all that one seed makes begins. */
class Seeded {
  readonly dice: Dice;

  constructor(seed: number) {
    this.dice = new Dice(seed);
  }
}

/** Everything that one seed makes: the platform, the service on it, those around it, and those who look on. */
export class World extends Seeded {
  readonly plan = makePlan(this.dice.of("plan"));
  readonly timeline = new Timeline(this.dice.of("timeline"), STARTS_AT);
  readonly trace = new Trace(this.timeline);
  readonly faults = new Faults(this.dice.of("faults"));
  /** The service's own dice: `Math.random` and `crypto.getRandomValues`. */
  readonly serviceDice = this.dice.of("service");
  readonly #clockDice = this.dice.of("clocks");

  readonly env = env;
  readonly wire = new Wire(this);
  readonly d1 = new D1Homes(this, (changes, lateMilliseconds) => {
    this.rows.see(changes, lateMilliseconds);
  });
  readonly isolates = new Isolates(this);
  readonly objects = new ObjectHost(this);
  readonly queue = new QueueServer(this);
  readonly network = new Network(this);

  readonly verdict = new Verdict();
  readonly book: Book = new Book(this);
  readonly rows: Rows = new Rows(this);
  readonly history: History = new History(this);
  readonly bindings: Bindings = new Bindings(this);
  readonly told: Told = new Told(this);
  readonly deliveries = new Deliveries(this);

  readonly receivers = new Receivers(this);
  readonly administrator = new Administrator(this);
  readonly clients = new Clients(this);

  /** The home whose D1 was restored, if any was. */
  restoredHome: number | null = null;

  /** Whether an application's D1 was restored: then what its clients were told before need not hold any more. */
  readonly isRestored = (applicationId: ApplicationId): boolean => homeOf(applicationId) === this.restoredHome;

  /** Milliseconds by which the next machine's clock is ahead. */
  drawClockError(): number {
    const most = this.plan.clockErrorMilliseconds;
    return this.#clockDice.between(-most, most);
  }

  close(): void {
    this.objects.close();
  }
}
