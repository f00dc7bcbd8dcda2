import * as z from "zod";
import { accessPage, applicationView, doorPage } from "../../shared/application-responses.ts";
import { eventPage, replayedEvent } from "../../shared/event-responses.ts";
import { historyPage } from "../../shared/history-page.ts";
import { invitationPage } from "../../shared/invitation-page.ts";
import {
  badgeRequest,
  badgeTimesRequest,
  invitationRequest,
  invitationsRequest,
  metadata,
  reasonRequest,
  signRequest,
} from "../../shared/requests.ts";
import {
  badge,
  badgeChanged,
  badgeCreated,
  badgePage,
  badgeSignature,
  badgeView,
  blockedUserPage,
  blockedUserView,
  changePage,
  describedInvitation,
  erasedInvitation,
  erasedUser,
  existingBadge,
  health,
  invitation,
  invitationEnded,
  invitations,
  jwkSet,
  newBadge,
  ownBadges,
  publicJwk,
  revokedInvitation,
  userView,
  webhookTest,
} from "../../shared/responses.ts";
import { statistics } from "../../shared/statistics-response.ts";
import type { Schema } from "./types.ts";

/** The named schemas of the document. */
const NAMED = {
  BadgeRequest: badgeRequest,
  SignRequest: signRequest,
  InvitationRequest: invitationRequest,
  Metadata: metadata,
  NewBadge: newBadge,
  ExistingBadge: existingBadge,
  BadgeSignature: badgeSignature,
  Badge: badge,
  BadgePage: badgePage,
  Invitation: invitation,
  DescribedInvitation: describedInvitation,
  RevokedInvitation: revokedInvitation,
  PublicJwk: publicJwk,
  JwkSet: jwkSet,
  Health: health,
  BadgeCreated: badgeCreated,
  BadgeChanged: badgeChanged,
  InvitationEnded: invitationEnded,
  WebhookTest: webhookTest,
  BadgeTimesRequest: badgeTimesRequest,
  ReasonRequest: reasonRequest,
  InvitationsRequest: invitationsRequest,
  Invitations: invitations,
  BlockedUserPage: blockedUserPage,
  ErasedInvitation: erasedInvitation,
  ErasedUser: erasedUser,
  AccessPage: accessPage,
  DoorPage: doorPage,
  HistoryPage: historyPage,
  BadgeView: badgeView,
  OwnBadges: ownBadges,
  ChangePage: changePage,
  User: userView,
  BlockedUser: blockedUserView,
  Application: applicationView,
  InvitationPage: invitationPage,
  EventPage: eventPage,
  ReplayedEvent: replayedEvent,
  Statistics: statistics,
} satisfies Record<string, z.ZodType>;

type SchemaName = keyof typeof NAMED;

const uri = (name: string): string => `#/components/schemas/${name}`;

/** A reference to a named schema. */
export const schemaRef = (name: SchemaName): Schema => ({ $ref: uri(name) });

/** All named schemas as JSON Schema 2020-12. Nested ones are references. */
export function componentSchemas(): Record<string, Schema> {
  const registry = z.registry<{ id: string }>();
  for (const [id, schema] of Object.entries(NAMED)) registry.add(schema, { id });
  const { schemas } = z.toJSONSchema(registry, { io: "input", uri, override: tidy });
  return Object.fromEntries(Object.entries(schemas).map(([name, schema]) => [name, withoutIdentity(schema)]));
}

/** An unnamed schema, such as a parameter's. */
export function jsonSchema(schema: z.ZodType): Schema {
  return withoutIdentity(z.toJSONSchema(schema, { io: "input", override: tidy }));
}

/** Drops patterns that repeat a rule in a form that is hard to read. */
function tidy({ jsonSchema }: { jsonSchema: Schema }): void {
  if (jsonSchema.format === "date-time" || jsonSchema.type === "integer") delete jsonSchema.pattern;
}

/** The position in the document identifies a component, and `jsonSchemaDialect` applies to all. */
function withoutIdentity({ $schema: _dialect, $id: _id, ...schema }: Schema): Schema {
  return schema;
}
