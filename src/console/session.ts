import { type Application, BadgeServiceError, type Permission, roleAllows, ServerClient } from "../client/index.ts";

import type { Invited } from "./visitors/send-invitations.ts";

/** Few and short retries, because a person waits for each call. */
const MAX_TRIES = 3;
const LONGEST_WAIT_SECONDS = 5;

const UDID_RANDOM_BYTES = 16;

/** Why a session ended. `refused`: the service no longer accepts the secret. `left`: the tab has shown another page. */
export type SessionEnd = "signed-out" | "idle" | "refused" | "left";

/** Thrown when the session has ended meanwhile. Nobody sees the result. */
export class SessionEnded extends Error {
  override readonly name = "SessionEnded";
}

interface Credentials {
  applicationId: string;
  applicationSecret: string;
}

/** One sign-in. Only this object holds the secret, in memory, until the session ends; a reload ends it. */
export class Session {
  readonly application: Application;
  /**
   * The udid for `POST /v1/invitation`. There is no phone, so it is random for each sign-in: nobody without the secret can
   * revoke the invitation as its creator.
   */
  readonly udid = `console-${randomHex(UDID_RANDOM_BYTES)}`;
  /** New passes. Their codes are shown only once, so they stay while the user visits other views, until "Done". */
  invited: Invited | null = null;
  /** How many calls for new passes have no response yet. */
  inviting = 0;
  /** Called when there are new passes, possibly after the form that asked for them was closed. */
  onInvited = (): void => {};
  /** The numbers of those that were revoked since. */
  revoked: ReadonlySet<string> = new Set();
  #server: ServerClient | null;
  readonly #calls = new AbortController();
  readonly #onEnd: (end: SessionEnd) => void;

  private constructor(server: ServerClient, application: Application, onEnd: (end: SessionEnd) => void) {
    this.#server = server;
    this.application = application;
    this.#onEnd = onEnd;
  }

  /** @throws what `ServerClient.getApplication` throws, such as INVALID_CREDENTIALS */
  static async signIn(credentials: Credentials, onEnd: (end: SessionEnd) => void): Promise<Session> {
    const server = new ServerClient({
      ...credentials,
      baseUrl: location.origin,
      maxTries: MAX_TRIES,
      maxRetryAfterSeconds: LONGEST_WAIT_SECONDS,
    });
    return new Session(server, await server.getApplication(), onEnd);
  }

  /** Whether the signed-in person's role allows this. The service decides; the page only hides what it would refuse. */
  may(permission: Permission): boolean {
    const { signedIn } = this.application;
    return signedIn === undefined || roleAllows(signedIn.role, permission);
  }

  /** Whether codes of new passes would be lost with the session. */
  get hasNewCodes(): boolean {
    return this.invited !== null || this.inviting > 0;
  }

  /** Adds to the new passes that are not "Done". */
  addInvited({ passes, refused }: Invited): void {
    const { passes: earlier = [], refused: others = [] } = this.invited ?? {};
    const numbers = new Set(passes.map(({ invitation }) => invitation.badgeId));
    // A pass that was revoked may have lost its number to a new one.
    const kept = earlier.filter(({ invitation }) => !numbers.has(invitation.badgeId));
    this.invited = { passes: [...kept, ...passes], refused: [...others, ...refused] };
    this.revoked = new Set([...this.revoked].filter((number) => !numbers.has(number)));
    this.onInvited();
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

  /** Forgets the secret, and aborts running calls. */
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
