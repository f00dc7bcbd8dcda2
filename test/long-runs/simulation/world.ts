import { Dice } from "../dice.ts";
import { Administrator } from "./actors/administrator.ts";
import { Clients } from "./actors/clients.ts";
import { Receivers } from "./actors/receivers.ts";
import { Bindings } from "./invariants/bindings.ts";
import { Book } from "./invariants/book.ts";
import { Deliveries } from "./invariants/deliveries.ts";
import { Entries } from "./invariants/entries.ts";
import { History } from "./invariants/history.ts";
import { Rows } from "./invariants/rows.ts";
import { Told } from "./invariants/told.ts";
import { Verdict } from "./invariants/verdict.ts";
import { makePlan } from "./plan.ts";
import { D1Homes } from "./platform/d1.ts";
import { Network } from "./platform/network.ts";
import { ObjectHost } from "./platform/objects.ts";
import { QueueServer } from "./platform/queue.ts";
import { Timeline } from "./platform/timeline.ts";
import { Faults, Wire } from "./platform/wire.ts";
import { env, Isolates } from "./service/isolates.ts";

const STARTS_AT = Date.UTC(2027, 0, 15, 9);

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
  /** Everything that happened, in order. */
  readonly traced: string[] = [];
  readonly trace = {
    /** @param who which part or actor; @param what what it did, without line breaks */
    add: (who: string, what: string): void => {
      this.traced.push(`+${((this.timeline.now - STARTS_AT) / 1000).toFixed(3)}s ${who}: ${what}`);
    },
  };
  readonly faults = new Faults(this.dice.of("faults"));
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

  readonly verdict = new Verdict();
  readonly book: Book = new Book(this);
  readonly entries: Entries = new Entries(this);
  readonly rows: Rows = new Rows(this);
  readonly history: History = new History(this);
  readonly bindings: Bindings = new Bindings(this);
  readonly told: Told = new Told(this);
  readonly deliveries = new Deliveries(this);

  readonly receivers = new Receivers(this);
  readonly administrator = new Administrator(this);
  readonly clients = new Clients(this);
}
