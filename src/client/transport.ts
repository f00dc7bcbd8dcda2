import { parseRetryAfter } from "../shared/retry-after.ts";
import { BadgeServiceError, NoAnswerError } from "./errors.ts";
import { isObject, parseJson } from "./json.ts";
import { type Repeatable, waitBeforeRetry } from "./retry.ts";

const DEFAULT_MAX_TRIES = 4;
const DEFAULT_TIMEOUT_MILLISECONDS = 15_000;
/** Covers the service's own `Retry-After`s: 2 s when it is unavailable, 60 s when it is asked too often. */
const DEFAULT_LONGEST_WAIT_SECONDS = 60;

/** What both clients take. */
export interface ClientOptions {
  /** Where the service is, such as `https://badges.example.com`; a path and a slash at the end are allowed. */
  baseUrl: string;
  applicationId: string;
  /** Tries of one call in all, the first included. Default 4; 1 never repeats. */
  maxTries?: number;
  /** How long one try may take. Default 15,000. */
  timeoutMilliseconds?: number;
  /** A `Retry-After` over this is not waited for: the error says it. Default 60. */
  longestWaitSeconds?: number;
  /** Everything below is for tests and for runtimes that lack it. Default: the runtime's `fetch`. */
  fetch?: (url: string, init: RequestInit) => Promise<Response>;
  /** Default: a timer that ends early when the signal aborts. */
  sleep?: (milliseconds: number, signal?: AbortSignal) => Promise<void>;
  /** In [0, 1). Default `Math.random`. */
  random?: () => number;
  /** Milliseconds since 1970-01-01 UTC. Default `Date.now`. */
  now?: () => number;
}

/** What every method takes. */
export interface CallOptions {
  /** Ends the call, also between two tries: it rejects with the signal's reason. */
  signal?: AbortSignal | undefined;
}

/** One call of the service. */
export interface Call<T> extends CallOptions {
  method: "GET" | "POST" | "PATCH";
  /** From `/v1/…` on. */
  path: string;
  headers?: Record<string, string>;
  body?: unknown;
  repeatable: Repeatable;
  /** Takes what is needed from a 2xx answer; null when the answer is not what the contract says. */
  read: (answer: Answer) => T | null;
}

export interface Answer {
  status: number;
  headers: Headers;
  /** Parsed JSON; undefined when it is none. */
  body: unknown;
}

/** Sends calls, and sends them again where that is safe. */
export class Transport {
  readonly #baseUrl: string;
  readonly #options: Required<Omit<ClientOptions, "baseUrl">>;

  /** @throws RangeError for options that cannot work */
  constructor(options: ClientOptions) {
    if (!/^https?:\/\/[^/?#]+[^?#]*$/.test(options.baseUrl)) throw new RangeError("baseUrl is not an http(s) URL");
    this.#baseUrl = options.baseUrl.replace(/\/+$/, "");
    this.#options = {
      applicationId: options.applicationId,
      maxTries: atLeast(1, options.maxTries ?? DEFAULT_MAX_TRIES, "maxTries"),
      timeoutMilliseconds: atLeast(1, options.timeoutMilliseconds ?? DEFAULT_TIMEOUT_MILLISECONDS, "timeout"),
      longestWaitSeconds: atLeast(0, options.longestWaitSeconds ?? DEFAULT_LONGEST_WAIT_SECONDS, "longestWaitSeconds"),
      // Called by its own name: `fetch` called as a method of something else throws in browsers.
      fetch: options.fetch ?? ((url, init) => fetch(url, init)),
      sleep: options.sleep ?? sleep,
      random: options.random ?? Math.random,
      now: options.now ?? Date.now,
    };
  }

  /**
   * @throws BadgeServiceError for an answer that does not grant the call
   * @throws NoAnswerError when none came
   * @throws the signal's reason when it aborted
   */
  async call<T>(call: Call<T>): Promise<T> {
    const { maxTries, longestWaitSeconds, random } = this.#options;
    const { signal, repeatable } = call;
    // Made once and outside the tries: a value that no header can carry is the caller's mistake, not the network's.
    const init = this.#requestInit(call);
    for (let tries = 1; ; tries++) {
      throwIfAborted(signal);
      try {
        return await this.#try(call, init);
      } catch (error) {
        throwIfAborted(signal);
        const failure = { error, repeatable, tries, maxTries, longestWaitSeconds, random: random() };
        const wait = waitBeforeRetry(failure);
        if (wait === null) throw error;
        await this.#options.sleep(wait, signal);
      }
    }
  }

  #requestInit({ method, headers, body }: Call<unknown>): RequestInit {
    const all = new Headers({ accept: "application/json", applicationid: this.#options.applicationId, ...headers });
    if (body !== undefined) all.set("content-type", "application/json");
    // A redirect would carry the application's secret to wherever it leads.
    return { method, headers: all, redirect: "manual", ...(body !== undefined && { body: JSON.stringify(body) }) };
  }

  async #try<T>(call: Call<T>, init: RequestInit): Promise<T> {
    const answer = await this.#send(`${this.#baseUrl}${call.path}`, init, call.signal);
    const isGranted = answer.status >= 200 && answer.status <= 299;
    const read = isGranted ? call.read(answer) : null;
    if (read !== null) return read;
    throw new BadgeServiceError({
      status: answer.status,
      error: !isGranted && isObject(answer.body) ? answer.body.error : undefined,
      requestId: answer.headers.get("x-request-id"),
      retryAfterSeconds: parseRetryAfter(answer.headers.get("retry-after"), this.#options.now()),
    });
  }

  /** One request. The time limit covers the body, too. */
  async #send(url: string, init: RequestInit, signal: AbortSignal | undefined): Promise<Answer> {
    // By hand, because React Native has neither AbortSignal.timeout nor AbortSignal.any.
    const controller = new AbortController();
    const abort = () => controller.abort(signal?.reason);
    const timer = setTimeout(() => controller.abort(new Error("timed out")), this.#options.timeoutMilliseconds);
    signal?.addEventListener("abort", abort);
    try {
      const { fetch } = this.#options;
      const response = await fetch(url, { ...init, signal: controller.signal });
      return { status: response.status, headers: response.headers, body: parseJson(await response.text()) };
    } catch (error) {
      throw new NoAnswerError(error);
    } finally {
      clearTimeout(timer);
      signal?.removeEventListener("abort", abort);
    }
  }
}

function atLeast(least: number, value: number, name: string): number {
  // Every comparison with NaN is false: it would turn the bound off.
  if (!(value >= least)) throw new RangeError(`${name} is not a number of at least ${least}`);
  return value;
}

function throwIfAborted(signal: AbortSignal | undefined): void {
  if (signal?.aborted) throw reasonOf(signal);
}

/** The signal's reason, which React Native does not know. */
function reasonOf(signal: AbortSignal): unknown {
  return signal.reason ?? Object.assign(new Error("the call was aborted"), { name: "AbortError" });
}

function sleep(milliseconds: number, signal?: AbortSignal): Promise<void> {
  return new Promise((resolve, reject) => {
    const abort = () => {
      clearTimeout(timer);
      reject(signal && reasonOf(signal));
    };
    const timer = setTimeout(() => {
      signal?.removeEventListener("abort", abort);
      resolve();
    }, milliseconds);
    signal?.addEventListener("abort", abort);
  });
}
