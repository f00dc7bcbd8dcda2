import type { Dice } from "../../dice.ts";
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
interface Reply {
  afterMilliseconds: number;
  status: number;
  headers: Record<string, string>;
  /** Whether its body never ends; otherwise it has none. */
  isEndless: boolean;
}

/** What receivers do with an event. An attempt may take 15 s (contract section 8). */
const MODES: Readonly<Record<string, (dice: Dice) => Partial<Reply>>> = {
  healthy: (dice) => ({ status: dice.oneOf([200, 204]) }),
  slow: (dice) => ({ status: 202, afterMilliseconds: dice.below(30_000), isEndless: dice.chance(0.2) }),
  broken: (dice) => ({ status: dice.oneOf([500, 502, 404, 301]) }),
  throttling: (dice) => ({ status: 429, headers: { "retry-after": String(dice.below(200)) } }),
  gone: () => ({ status: 410 }),
  flapping: (dice) => ({ status: dice.oneOf([503, 200]) }),
};

/** How long a receiver stays in a mode, in thinking times of the actors. */
const MODE_THOUGHTS = 4;

/** The Internet, with the applications' webhook endpoints: mostly healthy, often something else for a while. */
export class Network extends Member {
  readonly #dice = this.world.dice.of("receivers");
  readonly #modes = new Map<string, { mode: string; until: number }>();

  /** `fetch` of a process: settles with a response, or fails as a connection does. */
  fetch(process: Process, url: string, { headers, body, signal }: Outgoing): Promise<Response> {
    const { timeline, wire, deliveries } = this.world;
    const received = { url, headers: { ...headers }, body: body.slice(), sentAt: timeline.now };
    const aborted = new Promise<never>((_, reject) => {
      signal.addEventListener("abort", () => process.isAlive && reject(signal.reason));
    });
    const ended = process.isAlive ? deliveries.begin(received) : () => {};
    const response = wire.call({
      part: "network",
      what: `sends ${headers["webhook-id"]}`,
      effect: async () => {
        const { afterMilliseconds, status, headers: own, isEndless } = this.#receive(received);
        await timeline.sleep(afterMilliseconds);
        return new Response(isEndless ? endless(aborted) : null, { status, headers: own });
      },
      error: () => new TypeError("fetch failed"),
    });
    return Promise.race([response, aborted]).finally(ended);
  }

  /** A receiver's response to a webhook. */
  #receive({ url, headers }: Received): Reply {
    const { deliveries, verdict, plan, trace } = this.world;
    const isKnown = plan.applications.some(({ webhookUrl }) => webhookUrl === url);
    verdict.expect(isKnown, "webhooks go to the URL that is set", url);
    const mode = this.#modeOf(url);
    const usual = { status: 200, headers: {}, isEndless: false, afterMilliseconds: this.#dice.below(200) };
    const response: Reply = { ...usual, ...MODES[mode]?.(this.#dice) };
    const eventId = headers["webhook-id"] ?? "";
    if (response.status < 300) deliveries.accepted.add(eventId);
    trace.add("receiver", `${mode} ${eventId}: ${response.status}`);
    return response;
  }

  #modeOf(url: string): string {
    const { timeline, plan, faults } = this.world;
    if (!faults.isOn) return "healthy";
    const known = this.#modes.get(url);
    if (known && known.until > timeline.now) return known.mode;
    const mode = this.#dice.chance(0.4) ? "healthy" : (this.#dice.pick(Object.keys(MODES)) ?? "healthy");
    const until = timeline.now + this.#dice.below(MODE_THOUGHTS * plan.thinkMilliseconds * plan.acts);
    this.#modes.set(url, { mode, until });
    return mode;
  }
}

/** A body that goes on until whoever reads it has had enough. */
const endless = (aborted: Promise<never>): ReadableStream =>
  new ReadableStream({ start: (controller) => void aborted.catch((reason) => controller.error(reason)) });
