import { BadgeServiceError, type DescribedInvitation, DeviceClient, webCryptoProofKey } from "../client/index.ts";
import { type Code, codeOf } from "./code.ts";
import { findIdentity, type Identity, isSuitable, keepIdentity } from "./identity.ts";
import type { Invited } from "./link.ts";
import { type State, stateAfter } from "./refusals.ts";

/** What the page shows. */
export interface Shown {
  state: State;
  /** Null if not known yet. */
  invitation: DescribedInvitation | null;
  /** Null if there is none to show. */
  code: Code | null;
  /** Whether the visitor has tapped the button and is waiting. */
  isClaiming: boolean;
}

/** The client signature in a code, by which a building can tell that it is from this page. Doors need no other. */
const CLIENT_SIGNATURE = new TextEncoder().encode("pass");

/** After a temporary failure. */
const RETRY_SECONDS = 5;
/** While the state may change, because a suspended badge may be resumed. */
const POLL_SECONDS = 30;
/** Short limits, because a visitor waits for each call. After a failed one, the page retries by itself. */
const CALLS = { maxTries: 2, maxRetryAfterSeconds: 2, timeoutMilliseconds: 10_000 };

/** States in which the last code is still shown, because it may still be valid. */
const KEEPS_CODE: readonly State[] = ["open", "offline", "busy"];
/** Doors with `--max-age 60` refuse older codes (contract section 27). */
const MAX_CODE_AGE_SECONDS = 60;
/** States in which calling again cannot help. An application that is unknown may be enabled again. */
const FINAL: readonly State[] = ["taken", "unsuitable", "app"];

/** One visit in this browser: it shows the invitation, claims it on request, and renews the code. */
export class Visit {
  readonly #invited: Invited;
  readonly #baseUrl: string;
  readonly #onChange: (shown: Shown) => void;
  #shown: Shown = { state: "loading", invitation: null, code: null, isClaiming: false };
  #device: DeviceClient | null = null;
  #identity: Identity | null = null;
  #timer: ReturnType<typeof setTimeout> | undefined;
  /** When the next update is due, by the phone's clock. */
  #dueAt = 0;
  /** Between the last update and the next one. */
  #pauseMilliseconds = 0;
  #isUpdating = false;
  /** Whether the visitor tapped the button during an update. */
  #isAsked = false;
  /** Whether the page has come into view since the facts of the visit were read, which reception may have changed. */
  #isBack = false;

  /** @param baseUrl of the service */
  constructor(invited: Invited, baseUrl: string, onChange: (shown: Shown) => void) {
    this.#invited = invited;
    this.#baseUrl = baseUrl;
    this.#onChange = onChange;
  }

  /** Starts, and continues whenever the page comes into view. */
  start(): void {
    document.addEventListener("visibilitychange", () => {
      this.#isBack = true;
      this.#schedule();
    });
    addEventListener("pageshow", () => this.#schedule());
    this.#schedule();
  }

  /** Claims the pass for this browser, unless the browser cannot keep it. */
  async claim(): Promise<void> {
    if (this.#shown.isClaiming) return;
    this.#show({ isClaiming: true });
    try {
      this.#identity = await keepIdentity(this.#invited, this.#shown.invitation?.userId);
    } catch {
      this.#show({ state: "unsuitable", isClaiming: false });
      return this.#schedule();
    }
    this.#isAsked = true;
    this.#dueAt = 0;
    this.#schedule();
  }

  #show(change: Partial<Shown>): void {
    this.#shown = { ...this.#shown, ...change };
    this.#onChange(this.#shown);
  }

  /** Schedules the next update. While the page is hidden, there is none. */
  #schedule(): void {
    clearTimeout(this.#timer);
    if (document.visibilityState !== "visible") return;
    this.#markStale();
    if (this.#isUpdating || FINAL.includes(this.#shown.state)) return;
    // A clock that was set back must not delay the next update.
    const wait = Math.min(this.#dueAt - Date.now(), this.#pauseMilliseconds);
    this.#timer = setTimeout(() => void this.#update(), Math.max(0, wait));
  }

  /** After an hour in a pocket, a slow network must not make the last code look new. */
  #markStale(): void {
    const { state, code } = this.#shown;
    if (state === "open" && code !== null && isStale(code)) this.#show({ state: "busy" });
  }

  async #update(): Promise<void> {
    this.#isUpdating = true;
    this.#isAsked = false;
    const seconds = await this.#step().catch((error: unknown) => this.#fail(error));
    this.#isUpdating = false;
    this.#pauseMilliseconds = seconds * 1000;
    this.#dueAt = this.#isAsked ? 0 : Date.now() + this.#pauseMilliseconds;
    this.#schedule();
  }

  /** @returns seconds until the next step */
  async #step(): Promise<number> {
    if (!isSuitable()) return this.#stop("unsuitable");
    try {
      this.#identity ??= await findIdentity(this.#invited);
    } catch {
      return this.#stop("unsuitable");
    }
    if (this.#identity === null) return this.#describe();
    const { state, invitation } = this.#shown;
    // The code comes first; the facts of the visit may come later. While there is no code, they may change.
    if (invitation === null || this.#isBack || !KEEPS_CODE.includes(state))
      void this.#describe().catch(() => undefined);
    this.#isBack = false;
    return this.#renew(this.#identity);
  }

  #stop(state: State): number {
    this.#show({ state, code: null, isClaiming: false });
    return POLL_SECONDS;
  }

  #fail(error: unknown): number {
    const state = stateAfter(error);
    this.#show({ state, isClaiming: false, ...(!KEEPS_CODE.includes(state) && { code: null }) });
    if (state !== "offline" && state !== "busy") return POLL_SECONDS;
    const asked = error instanceof BadgeServiceError ? error.retryAfterSeconds : null;
    return Math.max(RETRY_SECONDS, asked ?? 0);
  }

  async #describe(): Promise<number> {
    const { applicationId, token } = this.#invited;
    const anybody = new DeviceClient({ ...CALLS, baseUrl: this.#baseUrl, applicationId, udid: "pass" });
    const invitation = await anybody.describeInvitation(token);
    this.#show({ invitation });
    // Another tab may just have claimed it.
    if (invitation.state === "claimed") this.#identity ??= await findIdentity(this.#invited);
    if (this.#identity !== null) return 0;
    const states = { pending: "invited", claimed: "taken", revoked: "revoked", expired: "expired" } as const;
    this.#show({ state: states[invitation.state] });
    return POLL_SECONDS;
  }

  /** Gets a new code. The first call claims the invitation, and may be repeated if its response was lost. */
  async #renew(identity: Identity): Promise<number> {
    const device = await this.#deviceOf(identity);
    let askedAt = Date.now();
    const jwt = await device.sign(CLIENT_SIGNATURE).catch(async (error: unknown) => {
      if (!(error instanceof BadgeServiceError && error.code === "UNKNOWN_BADGE")) throw error;
      await device.requestBadge({ userId: identity.userId, invitationToken: this.#invited.token });
      askedAt = Date.now();
      return device.sign(CLIENT_SIGNATURE);
    });
    const code = codeOf(jwt, askedAt);
    // The page was suspended meanwhile: this code is as old as the one before.
    if (isStale(code)) return 0;
    this.#show({ state: "open", code, isClaiming: false });
    return code.renewAfterSeconds;
  }

  async #deviceOf({ udid, keys }: Identity): Promise<DeviceClient> {
    const { applicationId } = this.#invited;
    const proofKey = await webCryptoProofKey(keys);
    this.#device ??= new DeviceClient({ ...CALLS, baseUrl: this.#baseUrl, applicationId, udid, proofKey });
    return this.#device;
  }
}

const isStale = ({ takenAt }: Code): boolean => Date.now() - takenAt > MAX_CODE_AGE_SECONDS * 1000;
