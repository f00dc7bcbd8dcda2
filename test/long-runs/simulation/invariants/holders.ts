import type { Book, KnownInvitation, UserDevice } from "./book.ts";
import { keyOf } from "./book.ts";
import type { Verdict } from "./verdict.ts";

/** Who was answered a number. */
interface Holder {
  name: string;
  /** The user device that has a badge with it; null for an invitation, which can end. */
  userDevice: string | null;
  /** The invitation itself; of a user device those that it may have the number from. */
  invitations: readonly KnownInvitation[];
  from: number;
  to: number;
}

/** No number ever belongs to two at once, and one that was issued belongs to its user device for ever (section 1). */
export class Holders {
  readonly #book: Book;
  readonly #verdict: Verdict;
  readonly #clockErrorMilliseconds: number;
  readonly #byNumber = new Map<number, Holder[]>();

  constructor(parts: { book: Book; verdict: Verdict; clockErrorMilliseconds: number }) {
    this.#book = parts.book;
    this.#verdict = parts.verdict;
    this.#clockErrorMilliseconds = parts.clockErrorMilliseconds;
  }

  reserved(invitation: KnownInvitation): void {
    const { token, number, createdFrom: from, createdTo: to } = invitation;
    this.#add(number, { name: `invitation ${token}`, userDevice: null, invitations: [invitation], from, to });
  }

  issued(number: number, to: UserDevice, span: { from: number; to: number }): void {
    const key = keyOf(to);
    const known = this.#byNumber.get(number) ?? [];
    if (known.some(({ userDevice }) => userDevice === key)) return;
    const presented = this.#book.attemptsOf(to).map(({ request }) => this.#book.invitations.get(request.token ?? ""));
    const invitations = presented.filter((invitation) => invitation !== undefined && invitation.number === number);
    this.#add(number, { name: key, userDevice: key, invitations, ...span });
  }

  #add(number: number, holder: Holder): void {
    const known = this.#byNumber.get(number) ?? [];
    for (const other of known) {
      this.#verdict.expect(this.#mayBoth(holder, other), "a number is never given to two", () => {
        return `${number}: ${other.name}, and ${holder.name}`;
      });
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
    if (userDevice !== null || !invitation) return false;
    const isPast = invitation.expiresAtTime <= to + this.#clockErrorMilliseconds;
    return isPast || this.#book.revokesOf(invitation.token).some(({ from }) => from <= to);
  }
}
