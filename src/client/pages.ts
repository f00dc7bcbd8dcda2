import type {
  AccessPage,
  ConnectedDoor,
  ConsolePerson,
  DoorPage,
  EventPage,
  HistoryEntry,
  HistoryPage,
  InvitationPage,
  ListedEvent,
  ListedInvitation,
} from "./overview-types.ts";
import type { BadgePage, BlockedUserPage, ChangePage, ListedBadge, ListedBlockedUser } from "./types.ts";

type FetchPage<Page> = (cursor: string | null) => Promise<Page>;

/** The pages of a list. Each is fetched when the iteration reaches it. Every `for await` starts from the beginning. */
class Pages<Page extends { nextCursor: string | null }> implements AsyncIterable<Page> {
  readonly #fetchPage: FetchPage<Page>;

  constructor(fetchPage: FetchPage<Page>) {
    this.#fetchPage = fetchPage;
  }

  async *[Symbol.asyncIterator](): AsyncGenerator<Page, void, void> {
    let cursor: string | null = null;
    do {
      const page: Page = await this.#fetchPage(cursor);
      yield page;
      cursor = page.nextCursor;
    } while (cursor !== null);
  }
}

/**
 * Oldest badge first, unless the query asks for the newest first. Every badge that existed at the start, and has not
 * ended meanwhile, appears exactly once.
 */
export class BadgePages extends Pages<BadgePage> {
  /** Iterates over the badges of all pages. */
  async *badges(): AsyncGenerator<ListedBadge, void, void> {
    for await (const page of this) yield* page.badges;
  }
}

/** The people with a console secret, by name. */
export class AccessPages extends Pages<AccessPage> {
  /** Iterates over the people of all pages. */
  async *people(): AsyncGenerator<ConsolePerson, void, void> {
    for await (const page of this) yield* page.people;
  }
}

/** The doors with a secret, by name. */
export class DoorPages extends Pages<DoorPage> {
  /** Iterates over the doors of all pages. */
  async *doors(): AsyncGenerator<ConnectedDoor, void, void> {
    for await (const page of this) yield* page.doors;
  }
}

/** Newest invitation first, unless the query has a span of time. */
export class InvitationPages extends Pages<InvitationPage> {
  /** Iterates over the invitations of all pages. */
  async *invitations(): AsyncGenerator<ListedInvitation, void, void> {
    for await (const page of this) yield* page.invitations;
  }
}

/** The blocked users, in the order in which they were blocked. */
export class BlockedUserPages extends Pages<BlockedUserPage> {
  /** Iterates over the users of all pages. */
  async *users(): AsyncGenerator<ListedBlockedUser, void, void> {
    for await (const page of this) yield* page.users;
  }
}

/** Newest entry first. */
export class HistoryPages extends Pages<HistoryPage> {
  /** Iterates over the entries of all pages. */
  async *history(): AsyncGenerator<HistoryEntry, void, void> {
    for await (const page of this) yield* page.history;
  }
}

/** Newest event first. */
export class EventPages extends Pages<EventPage> {
  /** Iterates over the events of all pages. */
  async *events(): AsyncGenerator<ListedEvent, void, void> {
    for await (const page of this) yield* page.events;
  }
}

/**
 * The pages of changes that follow a cursor, until nothing more follows at that moment. There is at least one, which may
 * be empty. Every `for await` starts at the cursor that `changes` was given.
 */
export class ChangePages implements AsyncIterable<ChangePage> {
  readonly #fetchPage: FetchPage<ChangePage>;
  readonly #start: string | null;

  constructor(fetchPage: FetchPage<ChangePage>, start: string | null) {
    this.#fetchPage = fetchPage;
    this.#start = start;
  }

  async *[Symbol.asyncIterator](): AsyncGenerator<ChangePage, void, void> {
    for (let cursor = this.#start, more = true; more; ) {
      const page = await this.#fetchPage(cursor);
      yield page;
      ({ cursor, more } = page);
    }
  }
}
