import { parsePublicUrl } from "../shared/service-url.ts";
import { AllocatorClient } from "./allocator/allocator-client.ts";
import { ApplicationCache } from "./applications/application-cache.ts";
import { AuthFailureLimiter } from "./applications/auth-failure-limiter.ts";
import { KnownApplications } from "./applications/known-applications.ts";
import { HourlyLimitLog } from "./badges/hourly-limit-log.ts";
import { StatusListCache } from "./badges/status-lists/cache.ts";
import { StatusIndexes } from "./badges/status-lists/list-index.ts";
import { DatabaseHealth } from "./database-health.ts";
import { type Home, queueOf } from "./homes.ts";
import { SealingKeys } from "./keys/sealing-keys.ts";
import { UnsealedKeys } from "./keys/unsealed-keys.ts";
import { LiveClient } from "./live/live-client.ts";
import { type Retention, readRetention } from "./scheduling/retention-days.ts";
import { Database } from "./storage/database.ts";
import { IssuerKeys } from "./users/issuer-keys.ts";
import { LoginCounter } from "./users/login-counter.ts";
import type { DeliveryMessage } from "./webhooks/delivery-message.ts";

/** An isolate's state between invocations. */
interface Isolate {
  unsealedKeys: UnsealedKeys;
  sealingKeys: SealingKeys;
  applicationCache: ApplicationCache;
  authFailureLimiter: AuthFailureLimiter;
  knownApplications: KnownApplications;
  hourlyLimitLog: HourlyLimitLog;
  health: DatabaseHealth;
  issuerKeys: IssuerKeys;
  loginCounter: LoginCounter;
  statusIndexes: StatusIndexes;
  statusListCache: StatusListCache;
  /** The cache of this data centre. */
  edgeCache: Cache;
}

/**
 * The resources of a request, a batch of messages or a sweep in one home. Made at the entry point; no other code uses
 * globals.
 */
export interface Context extends Isolate {
  /** Number of the home that `db` and `allocator` belong to. */
  home: number;
  db: Database;
  allocator: AllocatorClient;
  live: LiveClient;
  queue: Queue<DeliveryMessage>;
  deviceLimit: RateLimit;
  clientIpLimit: RateLimit;
  refusedCallLimit: RateLimit;
  retention(): Retention;
  /** The start of status lists' URLs; null when the deployment has not set it. */
  publicUrl(): string | null;
  /** Whether this is local development, where http://localhost webhook URLs are allowed. */
  isLocal: boolean;
  /** Milliseconds. */
  now(): number;
  /** Runs work that the response does not wait for. */
  defer(work: Promise<unknown>): void;
}

let isolate: Isolate | undefined;

export function createContext(env: Env, defer: (work: Promise<unknown>) => void, home: Home): Context {
  isolate ??= createIsolate(env);
  return {
    ...isolate,
    home: home.number,
    db: new Database(home.d1),
    allocator: new AllocatorClient(env.ALLOCATOR, home),
    live: new LiveClient(env.LIVE, home),
    queue: queueOf(env, home.number),
    deviceLimit: env.DEVICE_LIMIT,
    clientIpLimit: env.CLIENT_IP_LIMIT,
    refusedCallLimit: env.REFUSED_CALL_LIMIT,
    // Read on demand: most requests need neither.
    retention: () => readRetention(env),
    publicUrl: () => parsePublicUrl(env.PUBLIC_URL ?? ""),
    isLocal: env.ENVIRONMENT === "local",
    now: Date.now,
    defer,
  };
}

export function createIsolate(env: Env): Isolate {
  const sealingKeys = new SealingKeys(env);
  return {
    sealingKeys,
    unsealedKeys: new UnsealedKeys(sealingKeys),
    applicationCache: new ApplicationCache(),
    authFailureLimiter: new AuthFailureLimiter(),
    knownApplications: new KnownApplications(),
    hourlyLimitLog: new HourlyLimitLog(),
    health: new DatabaseHealth(),
    issuerKeys: new IssuerKeys(),
    loginCounter: new LoginCounter(),
    statusIndexes: new StatusIndexes(),
    statusListCache: new StatusListCache(),
    edgeCache: caches.default,
  };
}
