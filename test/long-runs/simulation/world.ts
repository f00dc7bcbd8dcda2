import { Dice } from "../dice.ts";
import { Administrator } from "./actors/administrator.ts";
import { Clients } from "./actors/clients.ts";
import { Receivers } from "./actors/receivers.ts";
import { Book } from "./invariants/book.ts";
import { Credentials } from "./invariants/credentials.ts";
import { Deliveries } from "./invariants/deliveries.ts";
import { Holders } from "./invariants/holders.ts";
import { Invitations } from "./invariants/invitations.ts";
import { LeaseCheck } from "./invariants/leases.ts";
import { Rows } from "./invariants/rows.ts";
import { Signatures } from "./invariants/signatures.ts";
import { Verdict } from "./invariants/verdict.ts";
import { makePlan, type Plan } from "./plan.ts";
import { D1Server } from "./platform/d1.ts";
import { Faults } from "./platform/faults.ts";
import { Network } from "./platform/network.ts";
import { ObjectHost } from "./platform/objects.ts";
import { QueueServer } from "./platform/queue.ts";
import { Timeline } from "./platform/timeline.ts";
import { Wire } from "./platform/wire.ts";
import { env, Isolates } from "./service/isolates.ts";

const STARTS_AT = Date.UTC(2027, 0, 15, 9);

/** Everything that one seed makes: the platform, the service on it, those around it, and those who look on. */
export class World {
  readonly dice: Dice;
  readonly plan: Plan;
  readonly timeline: Timeline;
  readonly trace: Trace;
  readonly faults: Faults;
  /** The service's own dice: `Math.random` and `crypto.getRandomValues`. */
  readonly serviceDice: Dice;
  readonly #clockDice: Dice;
  readonly verdict = new Verdict();
  readonly book = new Book();
  readonly env = env;
  readonly wire: Wire;
  readonly d1: D1Server;
  readonly isolates: Isolates;
  readonly objects: ObjectHost;
  readonly queue: QueueServer;
  readonly network: Network;
  readonly rows: Rows;
  readonly leases: LeaseCheck;
  readonly credentials: Credentials;
  readonly holders: Holders;
  readonly invitations: Invitations;
  readonly signatures: Signatures;
  readonly deliveries: Deliveries;
  readonly receivers: Receivers;
  readonly administrator: Administrator;
  readonly clients: Clients;

  constructor(seed: number) {
    this.dice = new Dice(seed);
    this.plan = makePlan(this.dice.of("plan"));
    this.timeline = new Timeline(this.dice.of("timeline"), STARTS_AT);
    this.trace = new Trace(this.timeline);
    this.faults = new Faults(this.dice.of("faults"));
    this.serviceDice = this.dice.of("service");
    this.#clockDice = this.dice.of("clocks");
    this.wire = new Wire(this);
    this.rows = new Rows(this);
    this.d1 = new D1Server((changes) => this.rows.see(changes));
    this.isolates = new Isolates(this);
    this.leases = new LeaseCheck(this.verdict);
    this.objects = new ObjectHost(this);
    this.queue = new QueueServer(this);
    this.credentials = new Credentials(this);
    this.holders = new Holders(this);
    this.invitations = new Invitations(this);
    this.signatures = new Signatures(this);
    this.deliveries = new Deliveries(this);
    this.receivers = new Receivers(this);
    this.network = new Network(this);
    this.administrator = new Administrator(this);
    this.clients = new Clients(this);
  }

  /** Milliseconds by which the next machine's clock is ahead. */
  drawClockError(): number {
    const most = this.plan.clockErrorMilliseconds;
    return this.#clockDice.between(-most, most);
  }

  close(): void {
    this.objects.close();
  }
}

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
    return this.#lines.slice(-lines);
  }

  get digest(): string {
    return (this.#digest >>> 0).toString(16).padStart(8, "0");
  }
}
