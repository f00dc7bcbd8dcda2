import type { ApplicationId } from "../../../../src/shared/identifiers.ts";
import type { BadgePage } from "../../../../src/worker/badges/list.ts";
import type { Dice } from "../../dice.ts";
import { Member } from "../member.ts";
import type { ApplicationPlan } from "../plan.ts";
import type { CallName, RequestOf } from "../service/door.ts";
import type { World } from "../world.ts";
import type { Device } from "./device.ts";
import { Follower } from "./follower.ts";

const MAX_PAGE_TRIES = 4;
const INVITATIONS_AT_ONCE = 3;
/** Keys are few, so that one is used for several requests. */
const IDEMPOTENCY_KEYS = ["visit-1", "visit-2"] as const;
const HOUR = 3_600_000;

/** An application's server: invites, hands tokens to devices, revokes, ends badges, blocks users, reads lists and changes. */
export class Server extends Member {
  readonly #dice: Dice;
  readonly #application: ApplicationPlan;
  readonly #devices: readonly Device[];
  readonly #tokens: string[] = [];
  readonly #secrets = new Set<string>();
  /** The first reads at every chance; the second seldom, and then with an old cursor. */
  readonly followers: readonly [Follower, Follower];

  constructor(world: World, application: ApplicationPlan, devices: readonly Device[]) {
    super(world);
    this.#dice = world.dice.of(`server of ${application.id}`);
    this.#application = application;
    this.#devices = devices;
    const credentials = () => ({ applicationId: application.id, secret: this.#currentSecret() });
    const follower = (name: string) => new Follower(world, application, name, credentials);
    this.followers = [follower("eager"), follower("late")];
  }

  async act(): Promise<void> {
    if (this.#dice.chance(0.3)) await this.followers[0].read();
    if (this.#dice.chance(0.08)) await this.followers[1].follow();
    if (this.#dice.chance(0.45)) return this.#actOnBadges();
    const what = this.#dice.below(10);
    if (what < 1) return this.#inviteOneDevice();
    if (what < 5 || this.#tokens.length === 0) return this.#invite(this.#someDevices());
    if (what < 8) return this.#revoke();
    await this.walk(this.#dice.chance(0.3) ? "alice" : null);
  }

  /**
   * Reads all pages of the list.
   *
   * @returns the badges, or null when a page could not be had
   */
  async walk(userId: string | null): Promise<BadgePage["badges"] | null> {
    const { timeline, rows } = this.world;
    const { id: applicationId } = this.#application;
    const from = timeline.now;
    const perPage = this.#dice.between(1, 4);
    const badges: BadgePage["badges"] = [];
    for (let cursor: string | null = null; ; ) {
      const page = await this.#page({ userId, cursor, perPage });
      if (!page) return null;
      badges.push(...page.badges);
      cursor = page.nextCursor;
      if (cursor === null) break;
    }
    const numbers = badges.map(({ id }) => Number(id));
    rows.checkWalk(applicationId, userId, from, numbers);
    return badges;
  }

  async #page(page: { userId: string | null; cursor: string | null; perPage: number }) {
    for (let tries = 0; tries < MAX_PAGE_TRIES; tries++) {
      const credentials = { applicationId: this.#application.id, secret: this.#currentSecret() };
      const outcome = await this.world.clients.call("page", { ...credentials, ...page });
      if (outcome.kind === "granted") return outcome.granted;
    }
    return null;
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
      expiresAtTime: soon(),
      badgeExpiresAtTime: this.#dice.chance(0.25) ? soon() : null,
      idempotencyKey: this.#dice.chance(0.3) ? this.#dice.oneOf(IDEMPOTENCY_KEYS) : null,
    };
    const first = clients.call("invite", request);
    // With a key it may be sent twice at once; what was not answered is sent again.
    const isRepeated = request.idempotencyKey !== null && this.#dice.chance(0.5);
    const second = isRepeated ? await clients.call("invite", request) : null;
    let outcome = await first;
    if (outcome.kind !== "granted" && second) outcome = second;
    if (outcome.kind !== "granted") return;
    const { id: token } = outcome.granted;
    this.#tokens.push(token);
    for (const device of devices) device.hand(token);
  }

  /** One device gets several invitations, and its user opens all of them at once. */
  async #inviteOneDevice(): Promise<void> {
    const device = this.#dice.pick(this.#devices);
    if (!device) return;
    await Promise.all(Array.from({ length: INVITATIONS_AT_ONCE }, () => this.#invite([device])));
    await device.presentAll();
  }

  /** Suspends, resumes, revokes, sets ends, lets badges be bound to another key, blocks and unblocks, sometimes two at once. */
  async #actOnBadges(): Promise<void> {
    await Promise.all([this.#endSomething(), this.#dice.chance(0.3) && this.#endSomething()]);
  }

  async #endSomething(): Promise<void> {
    const { timeline, plan, book } = this.world;
    const credentials = this.#credentials();
    const what = this.#dice.below(14);
    if (what < 3) {
      const userId = this.#dice.oneOf(["alice", "bob", "carol"] as const);
      const name = what === 0 ? "block" : "unblock";
      return this.#insist(name, { ...credentials, userId });
    }
    const number = this.#dice.pick(book.numbersOf(this.#application.id)) ?? this.#application.firstNumber;
    const moments = [timeline.now - 1, timeline.now + this.#dice.between(1, 2000), timeline.now + HOUR, null] as const;
    const ends = [...moments, timeline.now + this.#dice.between(1, 4 * plan.thinkMilliseconds)] as const;
    const kinds = ["suspend", "suspend", "resume", "resume", "revoke"] as const;
    const step =
      what < 6
        ? ({ kind: "set-end", expiresAt: this.#dice.pick(ends) ?? null } as const)
        : ({ kind: this.#dice.oneOf(kinds) } as const);
    if (what > 11) return this.#insist("rebind", { ...credentials, number });
    await this.#insist("step", { ...credentials, number, step });
  }

  /** Calls, and mostly once more when nobody answered. */
  async #insist<Name extends CallName>(name: Name, request: RequestOf<Name>): Promise<void> {
    const { kind } = await this.world.clients.call(name, request);
    if (kind === "lost" && this.#dice.chance(0.7)) await this.world.clients.call(name, request);
  }

  #someDevices(): Device[] {
    return this.#dice.shuffled(this.#devices).slice(0, this.#dice.between(1, 3));
  }

  async #revoke(): Promise<void> {
    const token = this.#dice.pick(this.#tokens);
    if (token === undefined) return;
    const { applicationId, secret } = this.#credentials();
    const udid = this.#dice.chance(0.8) ? "server" : "somebody else";
    await this.#insist("revoke", { applicationId, secret: this.#dice.chance(0.7) ? secret : null, udid, token });
  }

  /** Tries every secret that it ever used, retired ones too. */
  async trySecrets(): Promise<void> {
    const { id: applicationId } = this.#application;
    const firstBadge = { userId: null, cursor: null, perPage: 1 };
    for (const secret of this.#secrets) await this.world.clients.call("page", { applicationId, secret, ...firstBadge });
  }

  #currentSecret(): string {
    const secret = this.world.administrator.secretOf(this.#application);
    this.#secrets.add(secret);
    return secret;
  }

  /** Mostly the current secret; sometimes one from before, which may be retired by now. */
  #credentials(): { applicationId: ApplicationId; secret: string } {
    const current = this.#currentSecret();
    const secret = this.#dice.chance(0.15) ? (this.#dice.pick([...this.#secrets]) ?? current) : current;
    return { applicationId: this.#application.id, secret };
  }
}
