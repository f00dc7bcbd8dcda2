import { Administrator } from "./actors/administrator.ts";
import { Clients } from "./actors/clients.ts";
import { Receivers } from "./actors/receivers.ts";
import { Dice } from "../dice.ts";
import { Book } from "./invariants/book.ts";
import { Credentials } from "./invariants/credentials.ts";
import { Deliveries } from "./invariants/deliveries.ts";
import { Holders } from "./invariants/holders.ts";
import { Invitations } from "./invariants/invitations.ts";
import { LeaseCheck } from "./invariants/leases.ts";
import { ReuseDelay } from "./invariants/reuse.ts";
import { Rows } from "./invariants/rows.ts";
import { Signatures } from "./invariants/signatures.ts";
import { Verdict } from "./invariants/verdict.ts";
import { makePlan, type Plan } from "./plan.ts";
import { env } from "./platform/bindings.ts";
import { D1Server } from "./platform/d1.ts";
import { Faults } from "./platform/faults.ts";
import { Network } from "./platform/network.ts";
import { ObjectHost, type Observer } from "./platform/objects.ts";
import type { Platform } from "./platform/platform.ts";
import { QueueServer } from "./platform/queue.ts";
import { Timeline } from "./platform/timeline.ts";
import { Wire } from "./platform/wire.ts";
import { Isolates } from "./service/isolates.ts";
import { Trace } from "./trace.ts";

const STARTS_AT = Date.UTC(2027, 0, 15, 9);

/** Everything that one seed makes: the platform, the service on it, those around it, and those who look on. */
export class World implements Platform {
  readonly dice: Dice;
  readonly plan: Plan;
  readonly verdict = new Verdict();
  readonly timeline: Timeline;
  readonly trace: Trace;
  readonly faults: Faults;
  readonly wire: Wire;
  readonly serviceDice: Dice;
  readonly d1: D1Server;
  readonly objects: ObjectHost;
  readonly queue: QueueServer;
  readonly network: Network;
  readonly isolates: Isolates;
  readonly rows: Rows;
  readonly book = new Book();
  readonly credentials: Credentials;
  readonly holders: Holders;
  readonly invitations: Invitations;
  readonly signatures: Signatures;
  readonly deliveries: Deliveries;
  readonly receivers: Receivers;
  readonly administrator: Administrator;
  readonly clients: Clients;

  constructor(seed: number) {
    const dice = new Dice(seed);
    this.dice = dice;
    this.plan = makePlan(dice.of("plan"));
    this.timeline = new Timeline(dice.of("timeline"), STARTS_AT);
    this.trace = new Trace(() => this.timeline.now);
    this.faults = new Faults(dice.of("faults"));
    this.serviceDice = dice.of("service");
    this.wire = new Wire({ ...this.#parts(), dice: dice.of("wire") });
    this.rows = new Rows(this.#judging());
    const { applications, clockErrorMilliseconds: errorOfOneClock } = this.plan;
    const reuse = new ReuseDelay({ ...this.#judging(), applications, clockErrorMilliseconds: errorOfOneClock });
    this.d1 = new D1Server((changes) => {
      this.rows.see(changes);
      reuse.see(changes);
    });
    const clockDice = dice.of("clocks");
    const clockError = () => clockDice.between(-this.plan.clockErrorMilliseconds, this.plan.clockErrorMilliseconds);
    this.isolates = new Isolates({ platform: this, dice: dice.of("isolates"), clockError });
    const leases = new LeaseCheck(this.verdict);
    const observe: Observer = (name, call) => leases.observe(this.objects.storageOf(name), call);
    this.objects = new ObjectHost({ platform: this, env, dice: dice.of("objects"), clockError, observe });
    const consumer = (batch: MessageBatch) => this.isolates.consume(batch);
    this.queue = new QueueServer({ platform: this, dice: dice.of("queue"), consumer });
    this.credentials = new Credentials(this.#judging());
    // Two clocks may differ by twice the error of one.
    const clockErrorMilliseconds = 2 * this.plan.clockErrorMilliseconds;
    this.holders = new Holders({ ...this.#judging(), clockErrorMilliseconds });
    this.invitations = new Invitations({ ...this.#judging(), clockErrorMilliseconds });
    this.signatures = new Signatures({ ...this.#judging(), rows: this.rows });
    const findEvent = (id: string) => this.d1.look("SELECT payload FROM webhook_event WHERE id = ?", id)[0];
    this.deliveries = new Deliveries({ ...this.#judging(), rows: this.rows, credentials: this.credentials, findEvent });
    this.receivers = new Receivers({ world: this, dice: dice.of("receivers") });
    this.network = new Network({
      platform: this,
      dice: dice.of("network"),
      receive: (received) => this.receivers.receive(received),
      observe: (sent) => this.deliveries.begin(sent),
    });
    this.administrator = new Administrator({ world: this, dice: dice.of("administrator") });
    this.clients = new Clients(this);
  }

  close(): void {
    this.objects.close();
  }

  #parts(): Pick<World, "timeline" | "trace" | "faults"> {
    return { timeline: this.timeline, trace: this.trace, faults: this.faults };
  }

  #judging(): { book: Book; verdict: Verdict; now: () => number } {
    return { book: this.book, verdict: this.verdict, now: () => this.timeline.now };
  }
}
