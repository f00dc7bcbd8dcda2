import { beforeEach, vi } from "vitest";

/** One webhook as its receiver got it. */
export interface Received {
  headers: Headers;
  bytes: Uint8Array;
  text: string;
  redirect: string;
}

/** @param attempt 1 for the first webhook that this receiver gets */
export type Answering = (received: Received, attempt: number, signal: AbortSignal) => Response | Promise<Response>;

export interface Receiver {
  url: string;
  received: Received[];
  /** What it answers; may be changed at any time. */
  answering: Answering;
}

export const answer = (status: number, headers: Record<string, string> = {}, body: BodyInit | null = null): Response =>
  new Response(body, { status, headers });

/** Answers nothing until whoever asks gives up. */
export const hangs: Answering = (_received, _attempt, signal) =>
  new Promise((_resolve, reject) => signal.addEventListener("abort", () => reject(signal.reason)));

/**
 * The outside network, as far as this service sees it: receivers of webhooks, each under a host of its own. Any other
 * host cannot be found.
 *
 * @returns makes a receiver; without an answer of its own it answers 204
 */
export function useReceivers(): (answering?: Answering) => Receiver {
  const receivers = new Map<string, Receiver>();
  let made = 0;

  beforeEach(() => {
    vi.spyOn(globalThis, "fetch").mockImplementation(async (input, init) => {
      const request = new Request(input, init);
      const receiver = receivers.get(request.url);
      if (receiver === undefined) throw new TypeError("the name could not be resolved");
      const bytes = new Uint8Array(await request.arrayBuffer());
      const { headers, redirect } = request;
      const received = { headers, bytes, text: new TextDecoder().decode(bytes), redirect };
      const attempt = receiver.received.push(received);
      return receiver.answering(received, attempt, init?.signal ?? request.signal);
    });
  });

  return (answering = () => answer(204)) => {
    const receiver: Receiver = { url: `https://receiver-${++made}.example.com/hook`, received: [], answering };
    receivers.set(receiver.url, receiver);
    return receiver;
  };
}
