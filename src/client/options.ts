/**
 * The options of both clients. `fetch` and signals are described by the parts that the client uses, so these types
 * compile whether the globals come from DOM, @types/node, @cloudflare/workers-types, React Native or nowhere.
 */

/** Options of both clients. */
export interface ClientOptions {
  /** URL of the service, such as `https://badges.example.com`; may have a path and a trailing slash. */
  baseUrl: string;
  applicationId: string;
  /** Maximum number of tries of a call, including the first. Default 4; 1 turns retries off. */
  maxTries?: number;
  /** Time limit of one try, at most 24 days. Default 15,000. */
  timeoutMilliseconds?: number;
  /** The call fails at once if `Retry-After` is longer than this, or than 24 days. Default 60. */
  maxRetryAfterSeconds?: number;
  /** For tests, and for runtimes without the global. Default: the runtime's `fetch`. */
  fetch?: Fetch;
  /** For tests. Default: a timer that rejects as soon as the signal aborts. */
  sleep?: (milliseconds: number, signal?: CallSignal) => Promise<void>;
  /** For tests: a number in [0, 1). Default `Math.random`. */
  random?: () => number;
  /** For tests: milliseconds since 1970-01-01 UTC. Default `Date.now`. */
  now?: () => number;
}

/** Options of every method. */
export interface CallOptions {
  /** Aborts the call, also between two tries: it rejects with the signal's reason. */
  signal?: CallSignal | undefined;
}

/** The part of an `AbortSignal` that the client uses. */
export interface CallSignal {
  readonly aborted: boolean;
  /** React Native has none. */
  readonly reason?: unknown;
  addEventListener(type: "abort", listener: () => void): void;
  removeEventListener(type: "abort", listener: () => void): void;
}

/** The part of `fetch` that the client uses. */
export type Fetch = (url: string, init: FetchInit) => Promise<FetchResponse>;

export interface FetchInit {
  method: string;
  headers: Record<string, string>;
  body?: string;
  redirect: "manual";
  signal: RuntimeAbortSignal;
}

/** The class that the runtime's own `fetch` requires. */
type RuntimeAbortSignal = typeof globalThis extends { fetch: (url: string, init?: infer Init) => unknown }
  ? NonNullable<Init> extends { signal?: infer Signal }
    ? NonNullable<Signal>
    : CallSignal
  : CallSignal;

export interface FetchResponse {
  readonly status: number;
  readonly headers: { get(name: string): string | null };
  text(): Promise<string>;
}
