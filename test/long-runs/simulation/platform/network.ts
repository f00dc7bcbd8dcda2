import { Member } from "../member.ts";
import type { Process } from "./process.ts";

/** A request as its receiver gets it. */
export interface Received {
  url: string;
  headers: Record<string, string>;
  body: Uint8Array;
  /** When the service sent it, in milliseconds. */
  sentAt: number;
}

/** What a receiver does with a request: a response after a while, or never one. */
export type Reply = HttpResponse | { kind: "never" };

interface HttpResponse {
  kind: "response";
  afterMilliseconds: number;
  status: number;
  headers: Record<string, string>;
  body: string | null;
  /** Whether the body never ends. */
  isEndless: boolean;
}

/** The Internet: one receiver for each URL. */
export class Network extends Member {
  readonly #dice = this.world.dice.of("network");

  /** `fetch` of a process: settles with a response, or fails as a connection does. */
  fetch(process: Process, url: string, init: Outgoing): Promise<Response> {
    const { timeline, wire, trace, faults, deliveries, receivers } = this.world;
    const { signal } = init;
    const received = { url, headers: { ...init.headers }, body: init.body.slice(), sentAt: timeline.now };
    const ended = process.isAlive ? deliveries.begin(received) : () => {};
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
        const reply = receivers.receive(received);
        if (fault === "after") return fail();
        if (fault === "death-after") return process.die();
        if (fault === "silent" || reply.kind === "never") return;
        back(reply.afterMilliseconds, () => resolve(response(reply, signal)));
      });
    }).finally(ended);
  }
}

function response({ status, headers, body, isEndless }: HttpResponse, signal: AbortSignal): Response {
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
