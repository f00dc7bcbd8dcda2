import type { World } from "../world.ts";
import { type KnownInvitation, keyOf, type UserDevice } from "./book.ts";

/** Who was answered a number. */
interface Holder {
  name: string;
  /** The user device that has a badge with it; null for an invitation, which can end. */
  userDevice: string | null;
  /** The invitation itself; of a user device those that it may have the number from. */
  invitations: readonly KnownInvitation[];
  to: number;
}

/** No number ever belongs to two at once, and one that was issued belongs to its user device for ever (section 1). */
export class Holders {
  readonly #world: World;
  readonly #byNumber = new Map<number, Holder[]>();

  constructor(world: World) {
    this.#world = world;
  }

  reserved(invitation: KnownInvitation): void {
    const { token, number, createdTo: to } = invitation;
    this.#add(number, { name: `invitation ${token}`, userDevice: null, invitations: [invitation], to });
  }

  issued(number: number, owner: UserDevice, to: number): void {
    const { book } = this.#world;
    const key = keyOf(owner);
    if (this.#byNumber.get(number)?.some(({ userDevice }) => userDevice === key)) return;
    const presented = book.attemptsOf(owner).flatMap(({ request }) => book.invitations.get(request.token ?? "") ?? []);
    const invitations = presented.filter((invitation) => invitation.number === number);
    this.#add(number, { name: key, userDevice: key, invitations, to });
  }

  #add(number: number, holder: Holder): void {
    const known = this.#byNumber.get(number) ?? [];
    for (const other of known) {
      const isKept = this.#mayBoth(holder, other);
      this.#world.verdict.expect(isKept, "a number is never given to two", number, other.name, holder.name);
    }
    this.#byNumber.set(number, [...known, holder]);
  }

  #mayBoth(one: Holder, other: Holder): boolean {
    if (one.userDevice !== null && other.userDevice !== null) return false;
    if (one.invitations.some((invitation) => other.invitations.includes(invitation))) return true;
    return this.#endedBefore(one, other) || this.#endedBefore(other, one);
  }

  /** Whether the first may have ended before the second got the number. */
  #endedBefore({ userDevice, invitations: [invitation] }: Holder, { to }: Holder): boolean {
    const { plan, book } = this.#world;
    if (userDevice !== null || !invitation) return false;
    // Two clocks may differ by twice the error of one.
    const isPast = invitation.expiresAtTime <= to + 2 * plan.clockErrorMilliseconds;
    return isPast || book.revokesOf(invitation.token).some(({ from }) => from <= to);
  }
}
