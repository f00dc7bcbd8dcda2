import { randomBytes } from "node:crypto";
import { createServer, type IncomingMessage, type ServerResponse } from "node:http";
import { buffer } from "node:stream/consumers";
import { type BadgeCreatedEvent, verifyWebhook } from "../../client/index.ts";
import { listenSomewhere } from "./listen.ts";
import { DemoFailure } from "./narrator.ts";

const LIMIT_MILLISECONDS = 30_000;

/** A webhook that was verified. */
interface ReceivedWebhook {
  event: BadgeCreatedEvent;
  /** As it arrived. */
  path: string;
  signature: string;
  body: string;
}

/** The part of the application's server that receives webhooks, on a free port of this computer. */
export class WebhookReceiver {
  /** By event ID: a webhook may come more than once. */
  readonly #received = new Map<string, ReceivedWebhook>();
  readonly #path = `/webhooks/${randomBytes(4).toString("hex")}`;
  readonly #server = createServer((request, response) => {
    this.#receive(request, response).catch(() => response.destroy());
  });
  #secret: string | null = null;
  #failure: DemoFailure | null = null;
  #onChange = (): void => {};

  /** @returns the URL to send webhooks to */
  async listen(): Promise<string> {
    return `${await listenSomewhere(this.#server)}${this.#path}`;
  }

  /** Sets the secret for verifying webhooks. Until then, none is accepted. */
  trust(secret: string): void {
    this.#secret = secret;
  }

  /**
   * Waits for the webhook of each of these badge numbers.
   *
   * @throws DemoFailure when one was not genuine, or has not come within half a minute
   */
  async until(badgeIds: readonly string[]): Promise<ReceivedWebhook[]> {
    const deadline = AbortSignal.timeout(LIMIT_MILLISECONDS);
    for (;;) {
      if (this.#failure) throw this.#failure;
      const found = badgeIds.map((badgeId) => this.#find(badgeId)).filter((webhook) => webhook !== undefined);
      if (found.length === badgeIds.length) return found;
      if (deadline.aborted)
        throw new DemoFailure(`only ${found.length} of ${badgeIds.length} webhooks came within half a minute`);
      await this.#change(deadline);
    }
  }

  close(): void {
    this.#server.closeAllConnections();
    this.#server.close();
  }

  #find(badgeId: string): ReceivedWebhook | undefined {
    return [...this.#received.values()].find(({ event }) => event.data.id === badgeId);
  }

  /** Resolves when something has arrived, or at the deadline. */
  #change(deadline: AbortSignal): Promise<void> {
    return new Promise((resolve) => {
      this.#onChange = resolve;
      deadline.addEventListener("abort", () => resolve(), { once: true });
    });
  }

  async #receive(request: IncomingMessage, response: ServerResponse): Promise<void> {
    // These may be retries for an interrupted story that had this port; 410 ends them (contract section 8).
    if (request.url !== this.#path || this.#secret === null) return void response.writeHead(410).end();
    // The bytes as they arrived: parsed and serialized again, they would not match the signature.
    const body = await buffer(request);
    const result = await verifyWebhook({ headers: request.headers, body, secrets: this.#secret });
    response.writeHead(result.ok ? 204 : 400).end();
    if (!result.ok) this.#failure = new DemoFailure(`a webhook was refused: ${result.reason}`);
    else if (result.event?.event === "badge:created") {
      const signature = String(request.headers.signature);
      this.#received.set(result.eventId, { event: result.event, path: this.#path, signature, body: body.toString() });
    }
    this.#onChange();
  }
}
