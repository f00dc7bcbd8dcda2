import { exports } from "cloudflare:workers";
import { expect } from "vitest";
import {
  type ClientOptions,
  DeviceClient,
  type DeviceClientOptions,
  type Fetch,
  type FetchInit,
  ServerClient,
} from "../../src/client/index.ts";
import { signWebhook, type WebhookSecret } from "../../src/worker/webhooks/signature.ts";
import type { TestApplication } from "../support/application.ts";

export const BASE_URL = "https://badges.example";

export const worker = (url: string, init: FetchInit): Promise<Response> => exports.default.fetch(url, init);

export const device = (application: { id: string }, udid: string, options: Partial<DeviceClientOptions> = {}) =>
  new DeviceClient({ baseUrl: BASE_URL, applicationId: application.id, udid, fetch: worker, ...options });

export const server = ({ id, secret }: TestApplication, options: Partial<ClientOptions> = {}) =>
  new ServerClient({ baseUrl: BASE_URL, applicationId: id, applicationSecret: secret, fetch: worker, ...options });

/** What a fake service does with a request: one step for each, the last one for all that follow. */
export type Step = Response | Error | Fetch;

export type FakeService = ReturnType<typeof fakeService>;

/** Waits between tries take no time, and the jitter is as long as it can be. @returns `options` for a client */
export function fakeService(...steps: [Step, ...Step[]]) {
  const requests: { url: string; init: FetchInit }[] = [];
  const waits: number[] = [];
  const respond: Fetch = async (url, init) => {
    requests.push({ url, init });
    const step = steps[Math.min(requests.length, steps.length) - 1];
    if (step instanceof Error) throw step;
    if (step instanceof Response) return step.clone();
    if (step) return step(url, init);
    throw new Error("no step");
  };
  const sleep = async (milliseconds: number) => void waits.push(milliseconds);
  return { options: { fetch: respond, sleep, random: () => 0.999, now: () => 1_800_000_000_000 }, requests, waits };
}

export function refusal(status: number, error: string, headers: Record<string, string> = {}): Response {
  return Response.json({ error }, { status, headers });
}

export const UNAVAILABLE = refusal(503, "UNAVAILABLE", { "retry-after": "2" });
export const RATE_LIMITED = refusal(429, "RATE_LIMITED", { "retry-after": "60" });
/** What `fetch` throws when there is no connection. */
export const NO_NETWORK = new TypeError("fetch failed");

export const EXISTING_BADGE = Response.json({ badgeId: "7" });
export const SIGNATURE = Response.json({ signature: "a.b.c" });

export const inOneHour = (): Date => new Date(Date.now() + 3_600_000);

export async function collect<T>(items: AsyncIterable<T>): Promise<T[]> {
  const collected: T[] = [];
  for await (const item of items) collected.push(item);
  return collected;
}

export const failureOf = (call: Promise<unknown>): Promise<unknown> =>
  call.then(
    () => expect.fail("the call did not fail"),
    (error: unknown) => error,
  );

export const utf8 = (text: string) => new Uint8Array(new TextEncoder().encode(text));

export async function importSecret(bytes: Uint8Array): Promise<WebhookSecret> {
  const secret = new Uint8Array(bytes);
  const key = (hash: string) => crypto.subtle.importKey("raw", secret, { name: "HMAC", hash }, false, ["sign"]);
  return { sha1: await key("SHA-1"), sha256: await key("SHA-256") };
}

/** Signs a webhook as the service does. @returns its headers */
export async function signedAsService(webhook: {
  eventId: string;
  timestampSeconds: number;
  body: string;
  secrets: readonly string[];
}) {
  const secrets = await Promise.all(webhook.secrets.map((secret) => importSecret(utf8(secret))));
  return signWebhook({ ...webhook, body: utf8(webhook.body), secrets });
}
