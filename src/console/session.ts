import { type Application, BadgeServiceError, ServerClient } from "../client/index.ts";
import { Known } from "./known.ts";

/** After so long without a key or a pointer the tab forgets the secret (contract section 19). */
export const IDLE_LIMIT_MILLISECONDS = 60 * 60 * 1000;

/** A person waits for each call, so a failure shows after seconds. */
const MAX_TRIES = 3;
const LONGEST_WAIT_SECONDS = 5;

const UDID_RANDOM_BYTES = 16;

/** Why a session ended. `refused`: the service no longer accepts the secret. `left`: the tab showed another page. */
export type SessionEnd = "signed-out" | "idle" | "refused" | "left";

/** The work of a session that has ended meanwhile. Nobody sees its result. */
export class SessionEnded extends Error {
  override readonly name = "SessionEnded";
}

/** One sign-in. It is the only place that holds the secret, in memory, until it ends. */
export class Session {
  readonly application: Application;
  readonly known = new Known();
  /**
   * Who invites, for `POST /v1/invitation` (contract section 5). No phone does: it names this sign-in, at random, so that
   * nobody who lacks the secret can revoke the invitation as its creator.
   */
  readonly udid = `console-${randomHex(UDID_RANDOM_BYTES)}`;
  #server: ServerClient | null;
  readonly #calls = new AbortController();
  readonly #onEnd: (end: SessionEnd) => void;

  private constructor(server: ServerClient, application: Application, onEnd: (end: SessionEnd) => void) {
    this.#server = server;
    this.application = application;
    this.#onEnd = onEnd;
  }

  /** @throws what `ServerClient.getApplication` throws, INVALID_CREDENTIALS among them */
  static async signIn(
    { applicationId, applicationSecret }: { applicationId: string; applicationSecret: string },
    onEnd: (end: SessionEnd) => void,
  ): Promise<Session> {
    const server = new ServerClient({
      baseUrl: location.origin,
      applicationId,
      applicationSecret,
      maxTries: MAX_TRIES,
      longestWaitSeconds: LONGEST_WAIT_SECONDS,
    });
    return new Session(server, await server.getApplication(), onEnd);
  }

  /** Calls the service. A secret that is no longer accepted ends the session. @throws SessionEnded */
  async run<T>(work: (server: ServerClient, signal: AbortSignal) => Promise<T>): Promise<T> {
    if (this.#server === null) throw new SessionEnded();
    try {
      return await work(this.#server, this.#calls.signal);
    } catch (error) {
      if (this.#calls.signal.aborted) throw new SessionEnded();
      if (error instanceof BadgeServiceError && error.status === 401) this.end("refused");
      throw error;
    }
  }

  /** Forgets the secret, and stops what is under way. */
  end(end: SessionEnd): void {
    if (this.#server === null) return;
    this.#server = null;
    this.#calls.abort();
    this.#onEnd(end);
  }
}

/** Works without HTTPS too, unlike `crypto.randomUUID`. */
export function randomHex(bytes: number): string {
  return Array.from(crypto.getRandomValues(new Uint8Array(bytes)), (byte) => byte.toString(16).padStart(2, "0")).join(
    "",
  );
}

/**
 * Calls back once nobody has used the page for an hour. Two clocks count: the one stands still while a computer sleeps,
 * the other can be set back.
 *
 * @returns stops watching
 */
export function watchIdle(onIdle: () => void): () => void {
  const now = () => [Date.now(), performance.now()] as const;
  let last = now();
  const isIdle = () => now().some((time, clock) => time - (last[clock] ?? 0) >= IDLE_LIMIT_MILLISECONDS);
  const check = () => {
    if (isIdle()) onIdle();
  };
  // A key that wakes the computer must not count before the hour is checked.
  const use = () => {
    check();
    last = now();
  };
  const uses = ["pointerdown", "pointermove", "keydown", "wheel", "touchstart"] as const;
  const wakes = ["visibilitychange", "pageshow", "focus"] as const;
  for (const type of uses) addEventListener(type, use, { capture: true, passive: true });
  for (const type of wakes) addEventListener(type, check, true);
  const timer = setInterval(check, 10_000);
  return () => {
    for (const type of uses) removeEventListener(type, use, true);
    for (const type of wakes) removeEventListener(type, check, true);
    clearInterval(timer);
  };
}
