import { BadgeServiceError, type DescribedInvitation, DeviceClient, webCryptoProofKey } from "../client/index.ts";
import { type Code, codeOf } from "./code.ts";
import { findIdentity, type Identity, isSuitable, keepIdentity } from "./identity.ts";
import type { Invited } from "./link.ts";
import { type State, stateAfter } from "./refusals.ts";

/** What the page shows. */
export interface Shown {
  state: State;
  /** Null: not known yet. */
  invitation: DescribedInvitation | null;
  /** Null: there is none to show. */
  code: Code | null;
  /** Whether the visitor has asked for the pass, and waits. */
  isClaiming: boolean;
}

/** The client signature that a code carries: it tells a building that the page made it. Doors need no other (contract section 3). */
const CLIENT_SIGNATURE = new TextEncoder().encode("pass");

/** After a failure that ends by itself, and while the pass may yet open: a suspended badge may be resumed. */
const RETRY_SECONDS = 5;
const LOOK_AGAIN_SECONDS = 30;
/** A visitor waits for each call; after a failed one the page tries again by itself. */
const CALLS = { maxTries: 2, maxRetryAfterSeconds: 2, timeoutMilliseconds: 10_000 };

/** States in which the last code is still shown: nothing says that it is not good. */
const KEEPS_CODE: readonly State[] = ["open", "offline", "busy"];
/** States in which calling again cannot help. */
const FINAL: readonly State[] = ["taken", "unsuitable", "unknown", "app"];

/** One visit in this browser: it shows what is known of the invitation, claims it when asked to, and keeps the code new. */
export class Visit {
  readonly #invited: Invited;
  readonly #baseUrl: string;
  readonly #onChange: (shown: Shown) => void;
  #shown: Shown = { state: "loading", invitation: null, code: null, isClaiming: false };
  #device: DeviceClient | null = null;
  #identity: Identity | null = null;
  #timer: ReturnType<typeof setTimeout> | undefined;
  /** When the next look is due, by the phone's clock. */
  #dueAt = 0;
  #isLooking = false;
  /** Whether the visitor asked for the pass during a look. */
  #isAsked = false;

  /** @param baseUrl of the service */
  constructor(invited: Invited, baseUrl: string, onChange: (shown: Shown) => void) {
    this.#invited = invited;
    this.#baseUrl = baseUrl;
    this.#onChange = onChange;
  }

  /** Begins, and goes on as often as the page comes into view. */
  start(): void {
    document.addEventListener("visibilitychange", () => this.#schedule());
    addEventListener("pageshow", () => this.#schedule());
    this.#schedule();
  }

  /** The visitor wants the pass: from now on it is this browser's. Nothing is claimed that this browser cannot keep. */
  async claim(): Promise<void> {
    if (this.#shown.isClaiming) return;
    this.#show({ isClaiming: true });
    try {
      this.#identity = await keepIdentity(this.#invited, this.#shown.invitation?.userId);
    } catch {
      return this.#show({ state: "unsuitable", isClaiming: false });
    }
    this.#isAsked = true;
    this.#dueAt = 0;
    this.#schedule();
  }

  #show(change: Partial<Shown>): void {
    this.#shown = { ...this.#shown, ...change };
    this.#onChange(this.#shown);
  }

  /** Waits until the next look is due. Nothing is asked while nobody looks at the page. */
  #schedule(): void {
    clearTimeout(this.#timer);
    if (document.visibilityState !== "visible" || this.#isLooking || FINAL.includes(this.#shown.state)) return;
    // A clock that was set back must not put the next look off.
    const wait = Math.min(this.#dueAt - Date.now(), LOOK_AGAIN_SECONDS * 1000);
    this.#timer = setTimeout(() => void this.#look(), Math.max(0, wait));
  }

  async #look(): Promise<void> {
    this.#isLooking = true;
    this.#isAsked = false;
    const seconds = await this.#step().catch((error: unknown) => this.#fail(error));
    this.#isLooking = false;
    this.#dueAt = this.#isAsked ? 0 : Date.now() + seconds * 1000;
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
    // Who has a pass wants it at once; what it is for may come later.
    if (this.#shown.invitation === null) void this.#describe().catch(() => undefined);
    return this.#renew(this.#identity);
  }

  #stop(state: State): number {
    this.#show({ state, code: null, isClaiming: false });
    return LOOK_AGAIN_SECONDS;
  }

  #fail(error: unknown): number {
    const state = stateAfter(error);
    this.#show({ state, isClaiming: false, ...(!KEEPS_CODE.includes(state) && { code: null }) });
    if (state !== "offline" && state !== "busy") return LOOK_AGAIN_SECONDS;
    const asked = error instanceof BadgeServiceError ? error.retryAfterSeconds : null;
    return Math.max(RETRY_SECONDS, asked ?? 0);
  }

  async #describe(): Promise<number> {
    const { applicationId, token } = this.#invited;
    const anybody = new DeviceClient({ ...CALLS, baseUrl: this.#baseUrl, applicationId, udid: "pass" });
    const invitation = await anybody.describeInvitation(token);
    this.#show({ invitation });
    if (this.#identity !== null) return 0;
    const states = { pending: "invited", claimed: "taken", revoked: "revoked", expired: "ended" } as const;
    this.#show({ state: states[invitation.state] });
    return LOOK_AGAIN_SECONDS;
  }

  /** A new code. The first one claims the invitation, also when its response was lost before. */
  async #renew(identity: Identity): Promise<number> {
    const device = await this.#deviceOf(identity);
    const jwt = await device.sign(CLIENT_SIGNATURE).catch(async (error: unknown) => {
      if (!(error instanceof BadgeServiceError && error.code === "UNKNOWN_BADGE")) throw error;
      await device.requestBadge({ userId: identity.userId, invitationToken: this.#invited.token });
      return device.sign(CLIENT_SIGNATURE);
    });
    const code = codeOf(jwt, Date.now());
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
