import { Member } from "../member.ts";
import type { Process } from "./process.ts";

/** What the service gives to `fetch`. */
export interface Outgoing {
  headers: Record<string, string>;
  body: Uint8Array;
  signal: AbortSignal;
}

/** A request as its receiver gets it. */
export interface Received extends Omit<Outgoing, "signal"> {
  url: string;
  /** When the service sent it, in milliseconds. */
  sentAt: number;
}

/** A receiver's response, which comes after a while. */
export interface Reply {
  afterMilliseconds: number;
  status: number;
  headers: Record<string, string>;
  /** Whether its body never ends; otherwise it has none. */
  isEndless: boolean;
}

/** The Internet: one receiver for each URL. */
export class Network extends Member {
  /** `fetch` of a process: settles with a response, or fails as a connection does. */
  fetch(process: Process, url: string, { headers, body, signal }: Outgoing): Promise<Response> {
    const { timeline, wire, deliveries, receivers } = this.world;
    const received = { url, headers: { ...headers }, body: body.slice(), sentAt: timeline.now };
    const aborted = new Promise<never>((_, reject) => {
      signal.addEventListener("abort", () => process.isAlive && reject(signal.reason));
    });
    const ended = process.isAlive ? deliveries.begin(received) : () => {};
    const response = wire.call({
      part: "network",
      what: `sends ${headers["webhook-id"]}`,
      effect: async () => {
        const { afterMilliseconds, status, headers: own, isEndless } = receivers.receive(received);
        await timeline.sleep(afterMilliseconds);
        return new Response(isEndless ? endless(aborted) : null, { status, headers: own });
      },
      error: () => new TypeError("fetch failed"),
    });
    return Promise.race([response, aborted]).finally(ended);
  }
}

/** A body that goes on until whoever reads it has had enough. */
const endless = (aborted: Promise<never>): ReadableStream =>
  new ReadableStream({ start: (controller) => void aborted.catch((reason) => controller.error(reason)) });
