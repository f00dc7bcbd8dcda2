import * as z from "zod";
import { badgeRequest, invitationRequest, metadata, signRequest } from "../../shared/requests.ts";
import {
  badge,
  badgeCreated,
  badgePage,
  badgeSignature,
  existingBadge,
  health,
  invitation,
  jwkSet,
  newBadge,
  publicJwk,
  revokedInvitation,
  webhookTest,
} from "../../shared/responses.ts";
import type { Schema } from "./types.ts";

/** The schemas that have a name in the document, under the name they have there. */
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
  RevokedInvitation: revokedInvitation,
  PublicJwk: publicJwk,
  JwkSet: jwkSet,
  Health: health,
  BadgeCreated: badgeCreated,
  WebhookTest: webhookTest,
} satisfies Record<string, z.ZodType>;

type SchemaName = keyof typeof NAMED;

const uri = (name: string): string => `#/components/schemas/${name}`;

/** A named schema where the document uses it. */
export const schemaRef = (name: SchemaName): Schema => ({ $ref: uri(name) });

/** All named schemas as JSON Schema 2020-12. Where one is part of another, it is referred to. */
export function componentSchemas(): Record<string, Schema> {
  const registry = z.registry<{ id: string }>();
  for (const [id, schema] of Object.entries(NAMED)) registry.add(schema, { id });
  const { schemas } = z.toJSONSchema(registry, { io: "input", uri, override: tidy });
  return Object.fromEntries(Object.entries(schemas).map(([name, schema]) => [name, withoutIdentity(schema)]));
}

/** A schema that has no name, such as a parameter's. */
export function jsonSchema(schema: z.ZodType): Schema {
  return withoutIdentity(z.toJSONSchema(schema, { io: "input", override: tidy }));
}

/** Drops what says a rule a second time, in a form that no person reads. */
function tidy({ jsonSchema }: { jsonSchema: Schema }): void {
  if (jsonSchema.format === "date-time" || jsonSchema.type === "integer") delete jsonSchema.pattern;
}

/** A component is known by its place in the document, whose `jsonSchemaDialect` holds for all. */
function withoutIdentity({ $schema: _dialect, $id: _id, ...schema }: Schema): Schema {
  return schema;
}
