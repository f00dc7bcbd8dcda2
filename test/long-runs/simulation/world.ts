import { Administrator } from "./actors/administrator.ts";
import { Clients } from "./actors/clients.ts";
import { Planter } from "./actors/planter.ts";
import { Ground } from "./ground.ts";
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
import { Wire } from "./platform/wire.ts";
import { env, Isolates } from "./service/isolates.ts";

/** Everything that one seed makes: the platform, the service on it, those around it, and those who look on. */
export class World extends Ground {
  readonly plan = makePlan(this.dice.of("plan"));
  /** The service's own dice: `Math.random` and `crypto.getRandomValues`. */
  readonly serviceDice = this.dice.of("service");
  readonly replayDice = this.dice.of("replays");
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

  readonly planter = new Planter(this);
  readonly administrator = new Administrator(this);
  readonly clients = new Clients(this);
}
