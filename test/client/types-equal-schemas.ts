import type { z } from "zod";
import type {
  AccessPage,
  Application,
  Badge,
  BadgeChange,
  BadgeChangedEvent,
  BadgeCreatedEvent,
  BlockedUser,
  BlockedUserPage,
  ChangePage,
  DescribedInvitation,
  DoorPage,
  ErasedUser,
  EventPage,
  HistoryPage,
  Invitation,
  InvitationEndedEvent,
  InvitationPage,
  ListedBadge,
  Metadata,
  RefusedBadgeCode,
  ReplayedEvent,
  RevokedInvitation,
  Statistics,
  User,
  WebhookEvent,
} from "../../src/client/index.ts";
import type {
  BadgeRequest,
  BadgeTimesRequest,
  ExistingBadge,
  InvitationRequest,
  NewBadge,
} from "../../src/client/types.ts";
import type { accessPage, applicationView, doorPage } from "../../src/shared/application-responses.ts";
import type { eventPage, replayedEvent } from "../../src/shared/event-responses.ts";
import type { SUBSCRIBABLE_EVENTS } from "../../src/shared/events.ts";
import type { historyPage } from "../../src/shared/history-page.ts";
import type { invitationPage } from "../../src/shared/invitation-page.ts";
import type { badgeRequest, badgeTimesRequest, invitationRequest, metadata } from "../../src/shared/requests.ts";
import type * as responses from "../../src/shared/responses.ts";
import type { statistics } from "../../src/shared/statistics-response.ts";

/**
 * Holds the client's plain types against the service's schemas: a field that is missing, has another type, or is
 * optional on one side only, is an error of `npm run typecheck` here. A new type of the client gets a line.
 */
export type Checks = [
  Same<Metadata, z.input<typeof metadata>>,
  Same<BadgeRequest, z.input<typeof badgeRequest>>,
  Same<InvitationRequest, z.input<typeof invitationRequest>>,
  Same<NewBadge, z.infer<typeof responses.newBadge>>,
  Same<ExistingBadge, z.infer<typeof responses.existingBadge>>,
  Same<ListedBadge, z.infer<typeof responses.badge>>,
  Same<Invitation, z.infer<typeof responses.invitation>>,
  Same<DescribedInvitation, z.infer<typeof responses.describedInvitation>>,
  Same<RevokedInvitation, z.infer<typeof responses.revokedInvitation>>,
  Same<Badge, z.infer<typeof responses.badgeView>>,
  Same<BadgeTimesRequest, z.input<typeof badgeTimesRequest>>,
  Same<BadgeChange, z.infer<typeof responses.changePage>["changes"][number]>,
  Same<Omit<ChangePage, "cursor">, z.infer<typeof responses.changePage>>,
  Same<User, z.infer<typeof responses.userView>>,
  Same<BlockedUser, z.infer<typeof responses.blockedUserView>>,
  Same<Omit<BlockedUserPage, "nextCursor">, z.infer<typeof responses.blockedUserPage>>,
  Same<ErasedUser, z.infer<typeof responses.erasedUser>>,
  Same<Application, z.infer<typeof applicationView>>,
  Same<Omit<AccessPage, "nextCursor">, z.infer<typeof accessPage>>,
  Same<Omit<DoorPage, "nextCursor">, z.infer<typeof doorPage>>,
  Same<Omit<InvitationPage, "nextCursor">, z.infer<typeof invitationPage>>,
  Same<Omit<EventPage, "nextCursor">, z.infer<typeof eventPage>>,
  Same<Omit<HistoryPage, "nextCursor">, z.infer<typeof historyPage>>,
  Same<ReplayedEvent, z.infer<typeof replayedEvent>>,
  Same<Statistics, z.infer<typeof statistics>>,
  Same<BadgeCreatedEvent, z.infer<typeof responses.badgeCreated>>,
  Same<BadgeChangedEvent, z.infer<typeof responses.badgeChanged>>,
  Same<InvitationEndedEvent, z.infer<typeof responses.invitationEnded>>,
  Same<WebhookEvent["event"], (typeof SUBSCRIBABLE_EVENTS)[number]>,
  Same<
    RefusedBadgeCode,
    "SUSPENDED_BADGE" | "REVOKED_BADGE" | "EXPIRED_BADGE" | "EARLY_BADGE" | "BLOCKED_USER" | "WRONG_USER"
  >,
];

/** A constraint error unless the two types are identical. */
type Same<A, B extends Identical<Flat<A>, Flat<B>> extends true ? unknown : never> = [A, B];

/** The compiler relates two deferred conditional types only if their `extends` types are identical. */
type Identical<A, B> = (<T>() => T extends A ? 1 : 2) extends <T>() => T extends B ? 1 : 2 ? true : false;

/** The members of a type and of its members, whether they were declared in an interface, a mapping or by inheritance. */
type Flat<T> = T extends object ? { [Member in keyof T]: Flat<T[Member]> } : T;
