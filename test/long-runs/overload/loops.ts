import { Agent } from "node:http";
import { performance } from "node:perf_hooks";
import { type Answer, send } from "../bench/send.ts";
import type { Ask, Phones } from "./phones.ts";

/** How a stretch of load went, so far or in all. */
export interface Load {
  /** Calls that phones wanted to make. */
  offered: number;
  /** Answers by status. */
  statuses: Record<string, number>;
  /** Calls whose phone gave up, before a connection was free for it or while it waited for the answer. */
  gaveUp: { unsent: number; sent: number };
  /** Calls that the connection was refused or lost under, by what the system says. */
  unreached: Record<string, number>;
  /** Milliseconds from when a call was due until it was answered 2xx. */
  latencies: number[];
  seconds: number;
  /** Share of the time in which this thread was busy: near 1 it is a bottleneck itself. */
  utilization: number;
}

interface Target {
  port: number;
  connections: number;
  seconds: number;
  /** How long a phone waits for its answer, once its call is sent. */
  timeoutMilliseconds: number;
}

/**
 * How long a phone waits for a connection. Short, so that what is sent is young: calls that waited so long that their
 * phones leave at once would keep the service busy for nobody, and that would be the generator's doing.
 */
const CONNECTION_PATIENCE_MILLISECONDS = 1000;

/** How often calls that have become due are sent. */
const TICK_MILLISECONDS = 4;

/** Makes calls and counts what comes of them. */
class Caller {
  readonly load: Load = {
    offered: 0,
    statuses: {},
    gaveUp: { unsent: 0, sent: 0 },
    unreached: {},
    latencies: [],
    seconds: 0,
    utilization: 0,
  };
  readonly #agent: Agent;
  readonly #target: Target;
  readonly #phones: Phones;
  readonly #startedAt = performance.now();
  readonly #loop = performance.eventLoopUtilization();

  constructor(target: Target, phones: Phones) {
    this.#agent = new Agent({ keepAlive: true, maxSockets: target.connections, scheduling: "fifo" });
    this.#target = target;
    this.#phones = phones;
  }

  get elapsedMilliseconds(): number {
    return performance.now() - this.#startedAt;
  }

  /** @param dueAt on the clock of `elapsedMilliseconds`: what the phone waits counts from here */
  async call(dueAt: number, ask: Ask): Promise<void> {
    const { port, timeoutMilliseconds } = this.#target;
    const answer = await send(this.#agent, port, ask.call, AbortSignal.timeout(timeoutMilliseconds));
    this.#phones.note(ask, answer);
    this.#count(answer, this.elapsedMilliseconds - dueAt);
  }

  finish(): Load {
    this.#agent.destroy();
    this.load.seconds = this.elapsedMilliseconds / 1000;
    this.load.utilization = performance.eventLoopUtilization(this.#loop).utilization;
    return this.load;
  }

  #count({ status, body }: Answer, milliseconds: number): void {
    if (status === 0 && body.startsWith("AbortError")) this.load.gaveUp.sent++;
    else if (status === 0) add(this.load.unreached, /\bE[A-Z]{4,}\b|socket hang up/.exec(body)?.[0] ?? body);
    else add(this.load.statuses, String(status));
    if (status >= 200 && status < 300) this.load.latencies.push(milliseconds);
  }
}

function add(counts: Record<string, number>, name: string): void {
  counts[name] = (counts[name] ?? 0) + 1;
}

/** Every connection makes its next call when its last was answered. */
export async function closedLoop(target: Target, phones: Phones): Promise<Load> {
  const caller = new Caller(target, phones);
  const client = async () => {
    while (caller.elapsedMilliseconds < target.seconds * 1000) {
      caller.load.offered++;
      await caller.call(caller.elapsedMilliseconds, phones.next());
    }
  };
  await Promise.all(Array.from({ length: target.connections }, client));
  return caller.finish();
}

/** Makes these calls over a few connections. */
export async function callAll(target: Target, phones: Phones, asks: readonly Ask[]): Promise<Load> {
  const caller = new Caller(target, phones);
  const queue = asks.values();
  const client = async () => {
    for (const ask of queue) {
      caller.load.offered++;
      await caller.call(caller.elapsedMilliseconds, ask);
    }
  };
  await Promise.all(Array.from({ length: target.connections }, client));
  return caller.finish();
}

/** An open loop that runs. */
export interface OpenLoop {
  /** What came of it so far. */
  load: Load;
  /** When no call becomes due any more. */
  offered: Promise<void>;
  /** When the last call was answered or given up. */
  ended: Promise<Load>;
}

/**
 * Calls become due at a fixed rate, whatever the service does. One that finds no connection free waits a little for one,
 * then its phone gives up.
 */
export function openLoop(target: Target, rate: number, phones: Phones): OpenLoop {
  const caller = new Caller(target, phones);
  const { load } = caller;
  const total = Math.round(rate * target.seconds);
  const waiting: number[] = [];
  let first = 0;
  let open = 0;
  const offered = Promise.withResolvers<void>();
  const ended = Promise.withResolvers<Load>();
  const launch = (dueAt: number): void => {
    open++;
    void caller.call(dueAt, phones.next()).finally(() => {
      open--;
      pump();
    });
  };
  const pump = (): void => {
    const given = caller.elapsedMilliseconds - CONNECTION_PATIENCE_MILLISECONDS;
    for (let dueAt = waiting[first]; dueAt !== undefined; dueAt = waiting[first]) {
      if (dueAt <= given) load.gaveUp.unsent++;
      else if (open < target.connections) launch(dueAt);
      else return;
      first++;
    }
  };
  const ticks = setInterval(() => {
    const due = Math.min(total, Math.floor((caller.elapsedMilliseconds / 1000) * rate));
    for (; load.offered < due; load.offered++) waiting.push((load.offered * 1000) / rate);
    pump();
    if (load.offered < total) return;
    offered.resolve();
    if (open > 0 || first < waiting.length) return;
    clearInterval(ticks);
    ended.resolve(caller.finish());
  }, TICK_MILLISECONDS);
  return { load, offered: offered.promise, ended: ended.promise };
}
