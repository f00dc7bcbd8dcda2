import { exports } from "cloudflare:workers";
import { AllocatorClient } from "./allocator/client.ts";
import { RefusedCalls } from "./applications/refused-calls.ts";
import { ApplicationRegistry } from "./applications/registry.ts";
import { Custody } from "./keys/custody.ts";
import { SealingKeys } from "./keys/sealing-keys.ts";
import { Database } from "./storage/database.ts";
import type { Sender } from "./webhooks/sender.ts";
import type { WakeUp } from "./webhooks/wake-up.ts";

/** What an isolate keeps between requests. */
interface Isolate {
  custody: Custody;
  sealingKeys: SealingKeys;
  registry: ApplicationRegistry;
  refusedCalls: RefusedCalls;
  sender: Sender;
}

/** Everything a request, a message or a sweep may touch. Made at the entry; nothing below reaches for globals. */
export interface Context extends Isolate {
  db: Database;
  allocator: AllocatorClient;
  queue: Queue<WakeUp>;
  deviceLimit: RateLimit;
  clientIpLimit: RateLimit;
  refusedCallLimit: RateLimit;
  /** Whether this is local development, where http://localhost webhook URLs are allowed. */
  isLocal: boolean;
  /** Milliseconds. */
  now(): number;
  /** Work that the answer does not wait for. */
  defer(work: Promise<unknown>): void;
}

let isolate: Isolate | undefined;

export function createContext(env: Env, defer: (work: Promise<unknown>) => void): Context {
  isolate ??= createIsolate(env);
  return {
    ...isolate,
    db: new Database(env.DB),
    allocator: new AllocatorClient(env.ALLOCATOR),
    queue: env.WEBHOOKS,
    deviceLimit: env.DEVICE_LIMIT,
    clientIpLimit: env.CLIENT_IP_LIMIT,
    refusedCallLimit: env.REFUSED_CALL_LIMIT,
    isLocal: env.ENVIRONMENT === "local",
    now: Date.now,
    defer,
  };
}

function createIsolate(env: Env): Isolate {
  const sealingKeys = new SealingKeys(env);
  return {
    sealingKeys,
    custody: new Custody(sealingKeys),
    registry: new ApplicationRegistry(),
    refusedCalls: new RefusedCalls(),
    // A stub is no part of a request, as bindings are not: one does for all.
    sender: exports.WebhookSender,
  };
}
