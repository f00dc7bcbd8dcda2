/** What the contract says of invitations and badges, without the service: who holds which number, and which is next. */

export interface ModelInvitation {
  token: string;
  number: number;
  /** Milliseconds. */
  expiresAt: number;
  end: { kind: "claimed"; by: string } | { kind: "revoked"; answer: unknown } | null;
  /** Whether the allocator has its number back. */
  isBack: boolean;
}

export class Model {
  readonly size: number;
  readonly reuseAfter: number;
  readonly invitations: ModelInvitation[] = [];
  /** The live badge of each user device. */
  readonly badges = new Map<string, number>();
  readonly retired: number[] = [];
  /** Every number that was ever handed out. */
  readonly known = new Set<number>();
  /** Oldest first. */
  free: { number: number; freedAt: number }[] = [];
  repeatLast: (() => Promise<void>) | null = null;

  /** @param reuseAfter milliseconds */
  constructor(size: number, reuseAfter: number) {
    this.size = size;
    this.reuseAfter = reuseAfter;
  }

  stateOf({ end, expiresAt }: ModelInvitation): "pending" | "claimed" | "revoked" | "expired" {
    return end?.kind ?? (expiresAt <= Date.now() ? "expired" : "pending");
  }

  /** The numbers of which the allocator must hand out one now: any fresh one, else one of the freed ones, or none. */
  findNext(): "fresh" | readonly number[] {
    if (this.known.size < this.size) return "fresh";
    this.endDue();
    return this.#findRested();
  }

  /** A number was handed out. */
  take(number: number): void {
    this.known.add(number);
    this.free = this.free.filter((entry) => entry.number !== number);
  }

  /** What the sweep does, and any request that meets an expired invitation. */
  endDue(): void {
    for (const invitation of this.invitations) {
      if (this.stateOf(invitation) === "expired") this.giveBack(invitation, invitation.expiresAt);
    }
  }

  giveBack(invitation: ModelInvitation, freedAt: number): void {
    if (invitation.isBack) return;
    invitation.isBack = true;
    this.free.push({ number: invitation.number, freedAt });
    this.free.sort((one, other) => one.freedAt - other.freedAt);
  }

  /** Makes a number the badge of a user device; the one it had is retired. */
  issue(userDevice: string, number: number): void {
    const old = this.badges.get(userDevice);
    if (old !== undefined) this.retired.push(old);
    this.badges.set(userDevice, number);
  }

  #findRested(): number[] {
    const rested = this.free.filter(({ freedAt }) => freedAt + this.reuseAfter <= Date.now());
    return rested.map(({ number }) => number);
  }
}
