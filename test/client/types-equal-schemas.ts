import type { z } from "zod";
import type {
  BadgeCreatedEvent,
  Invitation,
  ListedBadge,
  Metadata,
  RevokedInvitation,
} from "../../src/client/index.ts";
import type { BadgeRequest, ExistingBadge, InvitationRequest, NewBadge } from "../../src/client/types.ts";
import type { badgeRequest, invitationRequest, metadata } from "../../src/shared/requests.ts";
import type * as responses from "../../src/shared/responses.ts";

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
  Same<RevokedInvitation, z.infer<typeof responses.revokedInvitation>>,
  Same<BadgeCreatedEvent, z.infer<typeof responses.badgeCreated>>,
];

/** A constraint error unless the two types are identical. */
type Same<A, B extends Identical<Flat<A>, Flat<B>> extends true ? unknown : never> = [A, B];

/** The compiler relates two deferred conditional types only if their `extends` types are identical. */
type Identical<A, B> = (<T>() => T extends A ? 1 : 2) extends <T>() => T extends B ? 1 : 2 ? true : false;

/** The members of a type and of its members, whether they were declared in an interface, a mapping or by inheritance. */
type Flat<T> = T extends object ? { [Member in keyof T]: Flat<T[Member]> } : T;
