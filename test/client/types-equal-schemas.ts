import type { z } from "zod";
import type * as client from "../../src/client/index.ts";
import type * as types from "../../src/client/types.ts";
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
  Same<client.Metadata, z.input<typeof metadata>>,
  Same<types.BadgeRequest, z.input<typeof badgeRequest>>,
  Same<types.InvitationRequest, z.input<typeof invitationRequest>>,
  Same<types.NewBadge, z.infer<typeof responses.newBadge>>,
  Same<types.ExistingBadge, z.infer<typeof responses.existingBadge>>,
  Same<client.ListedBadge, z.infer<typeof responses.badge>>,
  Same<client.Invitation, z.infer<typeof responses.invitation>>,
  Same<client.DescribedInvitation, z.infer<typeof responses.describedInvitation>>,
  Same<client.RevokedInvitation, z.infer<typeof responses.revokedInvitation>>,
  Same<client.Badge, z.infer<typeof responses.badgeView>>,
  Same<types.BadgeTimesRequest, z.input<typeof badgeTimesRequest>>,
  Same<client.BadgeChange, z.infer<typeof responses.changePage>["changes"][number]>,
  Same<Omit<client.ChangePage, "cursor">, z.infer<typeof responses.changePage>>,
  Same<client.User, z.infer<typeof responses.userView>>,
  Same<client.BlockedUser, z.infer<typeof responses.blockedUserView>>,
  Same<Omit<client.BlockedUserPage, "nextCursor">, z.infer<typeof responses.blockedUserPage>>,
  Same<client.ErasedUser, z.infer<typeof responses.erasedUser>>,
  Same<client.Application, z.infer<typeof applicationView>>,
  Same<Omit<client.AccessPage, "nextCursor">, z.infer<typeof accessPage>>,
  Same<Omit<client.DoorPage, "nextCursor">, z.infer<typeof doorPage>>,
  Same<Omit<client.InvitationPage, "nextCursor">, z.infer<typeof invitationPage>>,
  Same<Omit<client.EventPage, "nextCursor">, z.infer<typeof eventPage>>,
  Same<Omit<client.HistoryPage, "nextCursor">, z.infer<typeof historyPage>>,
  Same<client.ReplayedEvent, z.infer<typeof replayedEvent>>,
  Same<client.Statistics, z.infer<typeof statistics>>,
  Same<client.BadgeCreatedEvent, z.infer<typeof responses.badgeCreated>>,
  Same<client.BadgeChangedEvent, z.infer<typeof responses.badgeChanged>>,
  Same<client.InvitationEndedEvent, z.infer<typeof responses.invitationEnded>>,
  Same<client.WebhookEvent["event"], (typeof SUBSCRIBABLE_EVENTS)[number]>,
  Same<
    client.RefusedBadgeCode,
    "SUSPENDED_BADGE" | "REVOKED_BADGE" | "EXPIRED_BADGE" | "EARLY_BADGE" | "BLOCKED_USER" | "WRONG_USER"
  >,
];

/** A constraint error unless the two types are identical. */
type Same<A, B extends Identical<Flat<A>, Flat<B>> extends true ? unknown : never> = [A, B];

/** The compiler relates two deferred conditional types only if their `extends` types are identical. */
type Identical<A, B> = (<T>() => T extends A ? 1 : 2) extends <T>() => T extends B ? 1 : 2 ? true : false;

/** The members of a type and of its members, whether they were declared in an interface, a mapping or by inheritance. */
type Flat<T> = T extends object ? { [Member in keyof T]: Flat<T[Member]> } : T;
