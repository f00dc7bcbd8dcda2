import { isAnswered, type Outcome } from "../invariants/book.ts";
import { Part } from "../member.ts";
import type { ApplicationPlan, DevicePlan } from "../plan.ts";
import type { GrantedBy, RequestOf } from "../service/door.ts";

const MAX_REPEATS = 3;
export const NEWEST_TOKENS = 3;

/** A phone: asks for badges of the users who log in, presents invitation tokens, signs, and repeats what failed. */
export class Device extends Part<{ application: ApplicationPlan; plan: DevicePlan }> {
  readonly #application = this.subject.application;
  readonly udid = this.subject.plan.udid;
  readonly #dice = this.world.dice.of(`${this.#application.id} ${this.udid}`);
  /** Null: it proved none yet. The last one is the one that it uses; a part of the app may still have an older one. */
  readonly #keys: [string | null, ...string[]] = [this.subject.plan.key];
  readonly #tokens: string[] = [];
  /** Of the last response; old clients send none. */
  #bookmark: string | null = null;
  readonly #keepsBookmarks = this.#dice.chance(0.8);
  #metadata = 0;

  /** Somebody gives the user an invitation. */
  hand(token: string): void {
    this.#tokens.push(token);
  }

  async act(): Promise<void> {
    if (this.#dice.chance(0.12)) this.#keys.push(`key ${this.#keys.length} of ${this.udid}`);
    const what = this.#dice.below(10);
    if (what < 2) return this.sign();
    if (what < 4) return this.presentAll();
    const request = this.#badgeRequest();
    const first = this.#ask(request);
    if (what < 6) {
      // The user taps twice, or opens an invitation, or another user logs in while the first request is under way.
      const other = this.#badgeRequest();
      await this.#ask(this.#dice.oneOf([request, other, { ...other, userId: request.userId, user: request.userId }]));
    }
    await first;
  }

  /** The user opens all invitations at once: claims that meet in one group of the allocator. */
  async presentAll(): Promise<void> {
    const request = this.#badgeRequest();
    const tokens = [null, ...this.#tokens.slice(-NEWEST_TOKENS)];
    await Promise.all(tokens.map((token) => this.#ask({ ...request, token })));
  }

  #badgeRequest(): RequestOf<"badge"> {
    const { id: applicationId } = this.#application;
    const userId = this.#dice.oneOf(this.subject.plan.userIds);
    // Sometimes one that nobody created.
    const tokens = this.#dice.chance(0.06) ? ["inv_unknown"] : this.#tokens.slice(-NEWEST_TOKENS);
    const token = this.#dice.chance(0.5) ? this.#dice.pick(tokens) : null;
    const metadata = this.#dice.chance(0.3) ? JSON.stringify({ osVersion: String(++this.#metadata) }) : null;
    // Whoever logs in on a phone has a token of their own.
    return { applicationId, udid: this.udid, userId, user: userId, token: token ?? null, metadata, ...this.#proof() };
  }

  #proof(): { key: string | null; bookmark: string | null } {
    const key = this.#dice.chance(0.15) ? this.#dice.pick(this.#keys) : this.#keys.at(-1);
    return { key: key ?? null, bookmark: this.#bookmark };
  }

  /** A client that missed a response does not know what it missed. */
  async #call<Name extends "badge" | "sign">(name: Name, request: RequestOf<Name>): Promise<Outcome<GrantedBy<Name>>> {
    const outcome = await this.world.clients.call(name, request);
    if (outcome.kind === "lost") this.#bookmark = null;
    if (outcome.kind === "granted" && this.#keepsBookmarks) this.#bookmark = outcome.bookmark;
    return outcome;
  }

  async #ask(request: RequestOf<"badge">): Promise<void> {
    for (let repeat = 0; repeat <= MAX_REPEATS; repeat++) {
      const outcome = await this.#call("badge", { ...request, bookmark: this.#bookmark });
      if (isAnswered(outcome) || this.#dice.chance(0.3)) return;
      await this.world.timeline.sleep(this.#dice.below(3000));
    }
  }

  async sign(): Promise<void> {
    const base64 = Buffer.from(`signature ${this.#dice.below(1000)}`).toString("base64");
    const request = { applicationId: this.#application.id, udid: this.udid, base64, ...this.#proof() };
    const told = this.world.book.granted("badge", { applicationId: this.#application.id, udid: this.udid });
    const badge = this.#dice.chance(0.3) ? this.#dice.pick(told) : undefined;
    await this.#call("sign", { ...request, badgeNumber: badge?.outcome.granted.number ?? null });
  }
}
