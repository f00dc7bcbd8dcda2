import type { Badge, BlockedUser, User } from "../client/index.ts";

/**
 * The badges and users that a session has seen, each as the service described it last. Whatever shows one draws it from
 * here, so a step, or its undo, changes every place where the badge is shown.
 */
export class Known {
  readonly #badges = new Map<string, Badge>();
  readonly #blocked = new Map<string, boolean>();
  readonly #listeners = new Set<() => void>();

  badge(id: string): Badge | undefined {
    return this.#badges.get(id);
  }

  badgesOf(userId: string): Badge[] {
    return [...this.#badges.values()].filter((badge) => badge.userId === userId);
  }

  /** Undefined: nobody has asked. */
  isBlocked(userId: string): boolean | undefined {
    return this.#blocked.get(userId);
  }

  learnBadge(badge: Badge): Badge {
    this.#badges.set(badge.id, badge);
    this.#tell();
    return badge;
  }

  learnUser({ userId, blocked }: User): void {
    this.#blocked.set(userId, blocked);
    this.#tell();
  }

  /** A user who was blocked, and the badges that this revoked. */
  learnBlocked({ userId, blocked, revoked }: BlockedUser): void {
    for (const id of revoked) {
      const badge = this.#badges.get(id) ?? { id, userId, issuedAt: "", changedAt: "" };
      this.#badges.set(id, { ...badge, state: "revoked" });
    }
    this.learnUser({ userId, blocked });
  }

  /** @returns stops telling */
  subscribe(onChange: () => void): () => void {
    this.#listeners.add(onChange);
    return () => this.#listeners.delete(onChange);
  }

  #tell(): void {
    for (const listener of this.#listeners) listener();
  }
}
