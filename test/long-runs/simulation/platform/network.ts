import type { Dice } from "../../dice.ts";
import type { Platform } from "./platform.ts";
import type { Process } from "./process.ts";

/** A request as its receiver gets it. */
export interface Received {
  url: string;
  headers: Record<string, string>;
  body: Uint8Array;
  /** When the service sent it, in milliseconds. */
  sentAt: number;
}

/** What a receiver does with a request: an answer after a while, or never one. */
export type Reply = HttpAnswer | { kind: "never" };

export interface HttpAnswer {
  kind: "answer";
  afterMilliseconds: number;
  status: number;
  headers: Record<string, string>;
  body: string | null;
  /** Whether the body never ends. */
  isEndless: boolean;
}

/** Looks at a request that leaves. @returns to be called when its sender has the response, or has given up */
export type RequestObserver = (sent: Received) => () => void;

/** The Internet: one receiver for each URL. */
export class Network {
  readonly #platform: Platform;
  readonly #dice: Dice;
  readonly #receive: (received: Received) => Reply;
  readonly #observe: RequestObserver;

  /** @param observe is told when a request leaves, and gives back what to call when its sender has its end */
  constructor(parts: {
    platform: Platform;
    dice: Dice;
    receive: (received: Received) => Reply;
    observe: RequestObserver;
  }) {
    this.#platform = parts.platform;
    this.#dice = parts.dice;
    this.#receive = parts.receive;
    this.#observe = parts.observe;
  }

  /** `fetch` of a process: settles with an answer, or fails as a connection does. */
  fetch(process: Process, url: string, init: Outgoing): Promise<Response> {
    const { timeline, wire, trace, faults } = this.#platform;
    const { signal } = init;
    const received = { url, headers: { ...init.headers }, body: init.body.slice(), sentAt: timeline.now };
    const ended = process.isAlive ? this.#observe(received) : () => {};
    return new Promise<Response>((resolve, reject) => {
      const back = (milliseconds: number, settle: () => void) =>
        timeline.after(milliseconds, () => process.isAlive && settle());
      const fail = () => back(wire.delay(), () => reject(new TypeError("fetch failed")));
      signal.addEventListener("abort", () => process.isAlive && reject(signal.reason));
      if (!process.isAlive) return;
      const fault = faults.draw("network");
      trace.add(process.name, `sends ${received.headers["webhook-id"]}${fault ? `: fault ${fault}` : ""}`);
      if (fault === "before") return fail();
      if (fault === "death-before") return process.die();
      wire.carry(() => {
        if (!process.isAlive && this.#dice.chance(0.5)) return;
        const reply = this.#receive(received);
        if (fault === "after") return fail();
        if (fault === "death-after") return process.die();
        if (fault === "silent" || reply.kind === "never") return;
        back(reply.afterMilliseconds, () => resolve(response(reply, signal)));
      });
    }).finally(ended);
  }
}

function response({ status, headers, body, isEndless }: HttpAnswer, signal: AbortSignal): Response {
  return new Response(isEndless ? endless(body ?? "", signal) : body, { status, headers });
}

/** A body that goes on until whoever reads it has had enough. */
function endless(start: string, signal: AbortSignal): ReadableStream {
  return new ReadableStream({
    start(controller) {
      controller.enqueue(new TextEncoder().encode(start));
      signal.addEventListener("abort", () => controller.error(signal.reason));
    },
  });
}

/** What the service gives to `fetch`. */
export interface Outgoing {
  headers: Record<string, string>;
  body: Uint8Array;
  signal: AbortSignal;
}
