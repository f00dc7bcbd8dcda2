import { parseRetryAfter } from "../shared/retry-after.ts";
import type { Bookmarks } from "./bookmarks.ts";
import type { DpopSigner } from "./dpop-signer.ts";
import { BadgeServiceError, NoResponseError } from "./errors.ts";
import { isObject, parseJson } from "./json.ts";
import type { CallOptions, CallSignal, ClientOptions, FetchInit, FetchResponse } from "./options.ts";
import { waitBeforeRetry } from "./retry.ts";

const DEFAULT_MAX_TRIES = 4;
const DEFAULT_TIMEOUT_MILLISECONDS = 15_000;
/** Covers the service's own `Retry-After`: 2 s with UNAVAILABLE, 60 s with RATE_LIMITED. */
const DEFAULT_MAX_RETRY_AFTER_SECONDS = 60;
/** Just below what a timer can hold: a longer one would fire at once. */
const LONGEST_TIMER_SECONDS = 24 * 86_400;

/** One call to the service. */
export interface Call<T> extends CallOptions {
  method: "GET" | "POST" | "PATCH";
  /** Starts with `/v1/`. */
  path: string;
  headers?: Record<string, string>;
  body?: unknown;
  /** Makes a `DPoP` header for each request that is sent. */
  dpopSigner?: DpopSigner | null;
  /** Where the `bookmark` header of each request comes from. */
  bookmarks?: Bookmarks;
  /** False if a repeated call could undo what others have changed since the first; default true. */
  isRepeatable?: boolean;
  /** Reads a 2xx response; null if it violates the contract. */
  read: (response: JsonResponse) => T | null;
}

export interface JsonResponse {
  status: number;
  headers: FetchResponse["headers"];
  /** Undefined if the body is not JSON. */
  body: unknown;
  /** The body's `error`; undefined in a success. */
  error: unknown;
}

/** A request without the headers of each try. */
type PreparedRequest = Omit<FetchInit, "signal">;

/** Sends calls, and repeats them after temporary failures. */
export class Transport {
  readonly #baseUrl: string;
  readonly #options: Required<Omit<ClientOptions, "baseUrl">>;

  /** @throws RangeError for invalid options */
  constructor(options: ClientOptions) {
    if (!/^https?:\/\/[^/?#]+[^?#]*$/.test(options.baseUrl)) throw new RangeError("baseUrl is not an http(s) URL");
    this.#baseUrl = options.baseUrl.replace(/\/+$/, "");
    this.#options = {
      applicationId: options.applicationId,
      maxTries: atLeast(1, options.maxTries ?? DEFAULT_MAX_TRIES, "maxTries"),
      timeoutMilliseconds: Math.min(
        atLeast(1, options.timeoutMilliseconds ?? DEFAULT_TIMEOUT_MILLISECONDS, "timeoutMilliseconds"),
        LONGEST_TIMER_SECONDS * 1000,
      ),
      maxRetryAfterSeconds: Math.min(
        atLeast(0, options.maxRetryAfterSeconds ?? DEFAULT_MAX_RETRY_AFTER_SECONDS, "maxRetryAfterSeconds"),
        LONGEST_TIMER_SECONDS,
      ),
      // Wrapped, because browsers throw when `fetch` is called as a method of another object.
      fetch: options.fetch ?? ((url, init) => fetch(url, init)),
      sleep: options.sleep ?? sleep,
      random: options.random ?? Math.random,
      now: options.now ?? Date.now,
    };
  }

  /**
   * Sends a call, and repeats it after temporary failures.
   *
   * @throws BadgeServiceError for a response that refuses the call or is not the service's
   * @throws NoResponseError if there was no response
   * @throws the signal's reason after it aborted
   * @throws errors of the DPoP signer
   */
  async call<T>(call: Call<T>): Promise<T> {
    const { maxTries, maxRetryAfterSeconds, random } = this.#options;
    const { signal, isRepeatable = true } = call;
    // Outside the tries: a value that no header can carry is the caller's mistake and must not be retried.
    const init = this.#requestInit(call);
    for (let tries = 1; ; tries++) {
      throwIfAborted(signal);
      try {
        return await this.#try(call, init);
      } catch (error) {
        throwIfAborted(signal);
        const failure = { error, tries, maxTries, maxRetryAfterSeconds, random: random(), isRepeatable };
        const wait = waitBeforeRetry(failure);
        if (wait === null) throw error;
        await this.#options.sleep(wait, signal);
      }
    }
  }

  /** @throws TypeError for a value that no header can carry */
  #requestInit({ method, headers, body }: Call<unknown>): PreparedRequest {
    const all: Record<string, string> = {
      accept: "application/json",
      applicationid: this.#options.applicationId,
      ...(body !== undefined && { "content-type": "application/json" }),
      ...headers,
    };
    for (const [name, value] of Object.entries(all)) assertValue(name, value);
    // A followed redirect would take the application's secret to another host.
    return { method, headers: all, redirect: "manual", ...(body !== undefined && { body: JSON.stringify(body) }) };
  }

  async #try<T>(call: Call<T>, init: PreparedRequest): Promise<T> {
    const begun = call.bookmarks?.begin();
    const response = await this.#sendWithNonceRetry(call, init);
    const result = isSuccess(response.status) ? call.read(response) : null;
    if (result !== null) {
      if (begun) call.bookmarks?.take(response, begun);
      return result;
    }
    // A response that is not the service's own, or a 5xx, does not tell whether the call was carried out.
    if (isSuccess(response.status) || response.status >= 500) call.bookmarks?.drop();
    throw new BadgeServiceError({
      status: response.status,
      error: response.error,
      requestId: response.headers.get("x-request-id"),
      retryAfterSeconds: parseRetryAfter(response.headers.get("retry-after"), this.#timeOf(response)),
    });
  }

  /** The sender's time, because this device's clock may be wrong. Browsers hide it from pages of another origin. */
  #timeOf({ headers }: JsonResponse): number {
    const sentAt = Date.parse(headers.get("date") ?? "");
    return Number.isNaN(sentAt) ? this.#options.now() : sentAt;
  }

  /** Sends the request, and a second time if the service asks for a nonce in the proof. */
  async #sendWithNonceRetry(call: Call<unknown>, init: PreparedRequest): Promise<JsonResponse> {
    try {
      const response = await this.#sendProven(call, init);
      // Only once, because a third proof would be refused like the second.
      return call.dpopSigner?.takeNonce(response) ? await this.#sendProven(call, init) : response;
    } catch (error) {
      if (error instanceof NoResponseError) call.bookmarks?.drop();
      throw error;
    }
  }

  /** Sends one request, with a bookmark if there is one, and with a proof of its own if the call needs one. */
  async #sendProven(call: Call<unknown>, prepared: PreparedRequest): Promise<JsonResponse> {
    const { path, dpopSigner, bookmarks, signal } = call;
    const url = `${this.#baseUrl}${path}`;
    const bookmark = bookmarks?.current;
    const init = bookmark === undefined ? prepared : { ...prepared, headers: { ...prepared.headers, bookmark } };
    if (!dpopSigner) return this.#send(url, init, signal);
    const dpop = await dpopSigner.prove({ ...init, url });
    // The key may have asked its user.
    throwIfAborted(signal);
    return this.#send(url, { ...init, headers: { ...init.headers, dpop } }, signal);
  }

  /** Sends one request. The time limit includes reading the body. */
  async #send(url: string, init: PreparedRequest, signal: CallSignal | undefined): Promise<JsonResponse> {
    // React Native has neither AbortSignal.timeout nor AbortSignal.any.
    const controller = new AbortController();
    const abort = () => controller.abort(signal?.reason);
    const timer = setTimeout(() => controller.abort(new Error("timed out")), this.#options.timeoutMilliseconds);
    signal?.addEventListener("abort", abort);
    try {
      const { fetch } = this.#options;
      const response = await fetch(url, { ...init, signal: controller.signal });
      const { status, headers } = response;
      const body = parseJson(await response.text());
      return { status, headers, body, error: !isSuccess(status) && isObject(body) ? body.error : undefined };
    } catch (error) {
      throw new NoResponseError(error);
    } finally {
      clearTimeout(timer);
      signal?.removeEventListener("abort", abort);
    }
  }
}

const isSuccess = (status: number): boolean => status >= 200 && status <= 299;

function atLeast(least: number, value: number, name: string): number {
  // Negated to refuse NaN too, which would make every later comparison false.
  if (!(value >= least)) throw new RangeError(`${name} is not a number of at least ${least}`);
  return value;
}

function throwIfAborted(signal: CallSignal | undefined): void {
  if (signal?.aborted) throw reasonOf(signal);
}

function reasonOf(signal: CallSignal): unknown {
  return signal.reason ?? Object.assign(new Error("the call was aborted"), { name: "AbortError" });
}

function sleep(milliseconds: number, signal?: CallSignal): Promise<void> {
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

/** @throws TypeError that does not have the value, which may be a secret */
function assertValue(name: string, value: string): void {
  try {
    new Headers({ [name]: value });
  } catch {
    throw new TypeError(
      `no header can carry the value of ${name}: does it have a line break or another control character?`,
    );
  }
}
