import { WorkerEntrypoint } from "cloudflare:workers";
import { type Context, createContext } from "../context.ts";
import { firstHome } from "../homes.ts";
import { log } from "../log.ts";
import type { ClaimedEvent, Endpoint } from "../storage/webhook-events.ts";
import { type Attempt, attemptDelivery } from "./attempt.ts";
import { signWebhook } from "./signature.ts";

/** An event and where it goes. */
export interface Delivery {
  event: ClaimedEvent;
  endpoint: Endpoint;
}

/** Sends webhooks for the queue consumer. */
export interface Sender {
  /**
   * Sends each once, concurrently.
   *
   * @returns one attempt for each, in the same order; null where a secret could not be opened, so nothing was sent
   */
  send(deliveries: readonly Delivery[]): Promise<(Attempt | null)[]>;
}

/** Events of any home: all that is needed comes with them. */
type Parts = Pick<Context, "custody" | "isLocal" | "now">;

/**
 * Sends webhooks in an invocation of its own, because the platform counts connections per invocation: at most six may
 * wait for a response, and calls between a Worker's entrypoints do not count (Workers: Limits; Service bindings: Limits).
 */
export class WebhookSender extends WorkerEntrypoint<Env> implements Sender {
  send(deliveries: readonly Delivery[]): Promise<(Attempt | null)[]> {
    return sendAll(
      createContext(this.env, (work) => this.ctx.waitUntil(work), firstHome(this.env)),
      deliveries,
    );
  }
}

export function sendAll(context: Parts, deliveries: readonly Delivery[]): Promise<(Attempt | null)[]> {
  return Promise.all(
    deliveries.map((delivery) =>
      send(context, delivery).catch((error) => {
        const { applicationId, eventId } = delivery.event;
        log("error", { event: "delivery-not-sent", application: applicationId, eventId, error });
        return null;
      }),
    ),
  );
}

async function send(context: Parts, { event, endpoint }: Delivery): Promise<Attempt> {
  const { custody, isLocal } = context;
  const body = new TextEncoder().encode(event.payload);
  const secrets = endpoint.secrets.map(async (secret) => ({
    sha1: await custody.webhookKey(event.applicationId, secret.id, secret, "SHA-1"),
    sha256: await custody.webhookKey(event.applicationId, secret.id, secret, "SHA-256"),
  }));
  const timestampSeconds = Math.floor(context.now() / 1000);
  const headers = await signWebhook({
    eventId: event.eventId,
    timestampSeconds,
    body,
    secrets: await Promise.all(secrets),
  });
  return attemptDelivery({ url: endpoint.url, headers, body, isLocal });
}
