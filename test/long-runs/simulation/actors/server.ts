import type { Outcome } from "../invariants/book.ts";
import { Part } from "../member.ts";
import { type ApplicationPlan, HOUR } from "../plan.ts";
import type { BadgePage, CallName, Credentials, RequestOf } from "../service/door.ts";
import type { Device } from "./device.ts";
import { Follower } from "./follower.ts";

const INVITATIONS_AT_ONCE = 3;
/** Keys are few, so that one is used for several requests. */
const IDEMPOTENCY_KEYS = ["visit-1", "visit-2"] as const;

const USERS = ["alice", "bob", "carol"] as const;

/** An application's server: invites, hands tokens to devices, revokes, ends badges, blocks and erases users, reads lists and changes. */
export class Server extends Part<{ application: ApplicationPlan; devices: readonly Device[] }> {
  readonly #application = this.subject.application;
  readonly #devices = this.subject.devices;
  readonly #dice = this.world.dice.of(`server of ${this.#application.id}`);
  readonly #tokens: string[] = [];
  /** The first reads at every chance; the second seldom, and then with an old cursor. */
  readonly followers = [
    new Follower(this.world, { application: this.#application, name: "eager" }),
    new Follower(this.world, { application: this.#application, name: "late" }),
  ] as const;

  async act(): Promise<void> {
    if (this.#dice.chance(0.3)) await this.followers[0].read();
    if (this.#dice.chance(0.08)) await this.followers[1].follow();
    if (this.#dice.chance(0.45)) {
      // Sometimes two at once.
      await Promise.all([this.#actOnBadge(), this.#dice.chance(0.3) && this.#actOnBadge()]);
      return;
    }
    const what = this.#dice.below(10);
    if (what < 1) return this.#dice.chance(0.5) ? this.#inviteOneDevice() : this.#inviteEachDevice();
    if (what < 5 || this.#tokens.length === 0) {
      return this.#invite(this.#dice.shuffled(this.#devices).slice(0, this.#dice.between(1, 3)));
    }
    if (what < 8) return this.#revoke();
    await this.walk(this.#dice.chance(0.3) ? "alice" : null);
  }

  /** Reads all pages of the list, of all badges or of one user's, unless one cannot be had. */
  async walk(userId: string | null): Promise<void> {
    const { told, timeline, clients, administrator } = this.world;
    const from = timeline.now;
    const perPage = this.#dice.between(1, 4);
    const numbers: number[] = [];
    let cursor: string | null = null;
    do {
      const credentials = administrator.credentialsOf(this.#application);
      const outcome: Outcome<BadgePage> = await clients.call("page", { ...credentials, userId, cursor, perPage });
      if (outcome.kind !== "granted") return;
      numbers.push(...outcome.granted.badges.map(({ id }) => Number(id)));
      cursor = outcome.granted.nextCursor;
    } while (cursor !== null);
    told.checkWalk(this.#application.id, userId, from, numbers);
  }

  /** @param devices that get the token */
  async #invite(devices: readonly Device[]): Promise<void> {
    const { timeline, plan, clients } = this.world;
    const soon = () => timeline.now + this.#dice.between(1, 1000 + 4 * plan.thinkMilliseconds);
    const { applicationId, secret } = this.#credentials();
    const request = {
      applicationId,
      secret: this.#dice.chance(0.7) ? secret : null,
      udid: "server",
      userId: this.#dice.chance(0.2) ? this.#dice.oneOf(USERS) : null,
      expiresAtTime: soon(),
      badgeExpiresAtTime: this.#dice.chance(0.25) ? soon() : null,
      idempotencyKey: this.#dice.chance(0.3) ? this.#dice.oneOf(IDEMPOTENCY_KEYS) : null,
    };
    // With a key it may be sent twice at once.
    const times = request.idempotencyKey !== null && this.#dice.chance(0.5) ? 2 : 1;
    const outcomes = await Promise.all(Array.from({ length: times }, () => clients.call("invite", request)));
    const granted = outcomes.find((outcome) => outcome.kind === "granted");
    if (!granted) return;
    const { id: token } = granted.granted;
    this.#tokens.push(token);
    for (const device of devices) device.hand(token);
  }

  /** One device gets several invitations, and its user opens all of them at once. */
  async #inviteOneDevice(): Promise<void> {
    const device = this.#dice.pick(this.#devices);
    await Promise.all(Array.from({ length: INVITATIONS_AT_ONCE }, () => this.#invite(device ? [device] : [])));
    await device?.presentAll();
  }

  /** Each device gets an invitation of its own, and all users open theirs at once: claims of several devices in one group. */
  async #inviteEachDevice(): Promise<void> {
    await Promise.all(this.#devices.map((device) => this.#invite([device])));
    await Promise.all(this.#devices.map((device) => device.presentAll()));
  }

  /** Suspends, resumes, revokes, sets an end, lets a badge be bound to another key, blocks, unblocks or erases. */
  async #actOnBadge(): Promise<void> {
    const { timeline, plan, book } = this.world;
    const credentials = this.#credentials();
    const what = this.#dice.below(14);
    if (what < 3) {
      const userId = this.#dice.oneOf(USERS);
      const kind = what === 0 ? "block" : this.#dice.chance(0.4) ? "erase" : "unblock";
      return this.#insist(kind, { ...credentials, userId });
    }
    const number = this.#dice.pick(book.numbersOf(this.#application.id)) ?? this.#application.firstNumber;
    if (what > 11) return this.#insist("rebind", { ...credentials, number });
    const aheads = [-1, this.#dice.between(1, 2000), HOUR, this.#dice.between(1, 4 * plan.thinkMilliseconds)] as const;
    const expiresAt = this.#dice.chance(0.2) ? null : timeline.now + this.#dice.oneOf(aheads);
    const kinds = ["suspend", "suspend", "resume", "resume", "revoke"] as const;
    const step = what < 6 ? ({ kind: "reschedule", expiresAt } as const) : { kind: this.#dice.oneOf(kinds) };
    const reason = `asked by ${this.#dice.oneOf(USERS)}`;
    await this.#insist("step", { ...credentials, number, step, ...(this.#dice.chance(0.3) && { reason }) });
  }

  async #revoke(): Promise<void> {
    const token = this.#dice.pick(this.#tokens);
    if (token === undefined) return;
    const { applicationId, secret } = this.#credentials();
    const udid = this.#dice.chance(0.8) ? "server" : "somebody else";
    await this.#insist("revoke", { applicationId, secret: this.#dice.chance(0.7) ? secret : null, udid, token });
  }

  /** Calls, and mostly once more when nobody answered. */
  async #insist<Name extends CallName>(name: Name, request: RequestOf<Name>): Promise<void> {
    const { kind } = await this.world.clients.call(name, request);
    if (kind === "lost" && this.#dice.chance(0.7)) await this.world.clients.call(name, request);
  }

  /** Mostly the current secret; sometimes another, which may not be current yet, or retired by now. */
  #credentials(): Credentials {
    const { administrator, history } = this.world;
    const current = administrator.credentialsOf(this.#application);
    const all = history.during("application_secret", { application_id: this.#application.id });
    const other = this.#dice.chance(0.15) ? this.#dice.pick(all) : undefined;
    return other === undefined ? current : { ...current, secret: String(other.row.sealed) };
  }
}
