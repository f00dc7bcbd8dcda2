import type * as z from "zod";
import type { EventName } from "../../shared/events.ts";
import { SLOW_RETRY_SECONDS } from "../../shared/limits/webhook-limits.ts";
import {
  EXAMPLE_BADGE,
  EXAMPLE_EXPIRES_AT,
  EXAMPLE_METADATA,
  EXAMPLE_OTHER_BADGE,
  EXAMPLE_TOKEN,
  EXAMPLE_WEBHOOK,
  EXAMPLE_WEBHOOK_HEADERS,
} from "../../shared/openapi-examples.ts";
import type * as responses from "../../shared/responses.ts";
import { BY_ANYBODY } from "./components.ts";
import { schemaRef } from "./json-schemas.ts";
import { json } from "./parts.ts";
import type { Json, Operation, Parameter, PathItem, ResponseObject, Schema } from "./types.ts";

/** The calls from the service to an application's server: one for each kind of event. */

type BadgeChange = z.infer<typeof responses.badgeChanged>["event"];
type InvitationEnd = z.infer<typeof responses.invitationEnded>["event"];

function webhookHeader(name: keyof typeof EXAMPLE_WEBHOOK_HEADERS, description: string): Parameter {
  return {
    name,
    in: "header",
    description,
    required: true,
    schema: { type: "string" },
    example: EXAMPLE_WEBHOOK_HEADERS[name],
  };
}

const WEBHOOK_HEADERS: Parameter[] = [
  webhookHeader("User-Agent", "Identifies the service, but proves nothing: check the signature."),
  webhookHeader("Signature", "Base64 of HMAC-SHA1 over the body, by the application secret that webhooks use."),
  webhookHeader("webhook-id", "The event's ID: `id` of the body."),
  webhookHeader("webhook-timestamp", "When this attempt was made: seconds since 1970-01-01 UTC. Refuse old ones."),
  webhookHeader("webhook-signature", "Standard Webhooks: one `v1,…` entry for each live secret, separated by blanks."),
];

const RESPONSES: Record<string, ResponseObject> = {
  "2XX": { description: "Received. The event is delivered." },
  "410": { description: "The endpoint is gone: nothing more is sent until an administrator's test succeeds." },
  "429": { description: `Too much at once: the next attempt waits ${SLOW_RETRY_SECONDS} seconds or longer.` },
  default: { description: "Not received: another attempt follows." },
};

/** @param examples summary to body */
const webhook = (
  about: Pick<Operation, "operationId" | "summary" | "description">,
  body: { description: string; schema: Schema; examples: Record<string, Json> },
): Operation => ({
  ...about,
  tags: ["Webhooks"],
  security: BY_ANYBODY,
  parameters: WEBHOOK_HEADERS,
  requestBody: { description: body.description, required: true, content: json(body.schema, body.examples) },
  responses: RESPONSES,
});

const badgeCreated = webhook(
  {
    operationId: "badgeCreated",
    summary: "A badge was created",
    description:
      "Once for every badge, when it is issued or claimed, not when it is reserved. Every application is subscribed to it until an administrator changes that.",
  },
  {
    description: "The badge. Ignore fields that you do not know.",
    schema: schemaRef("BadgeCreated"),
    examples: {
      "A new badge": EXAMPLE_WEBHOOK,
      "An invitation was claimed by a user device that had a badge": {
        id: "evt_01mcc5s1q9x0v6kz3y7n2gq4hw",
        event: "badge:created",
        createdAt: "2027-01-15T08:10:00.000Z",
        data: {
          id: EXAMPLE_BADGE,
          userId: "alice",
          metadata: EXAMPLE_METADATA,
          invitationId: EXAMPLE_TOKEN,
          replacedBadgeId: EXAMPLE_OTHER_BADGE,
        },
      },
    },
  },
);

const ACTIVE = {
  id: EXAMPLE_BADGE,
  userId: "alice",
  state: "active",
  metadata: EXAMPLE_METADATA,
  issuedAt: "2027-01-15T08:00:00.500Z",
  changedAt: "2027-01-15T08:30:00.250Z",
};

/** A change of a badge. */
function badgeChanged(
  event: BadgeChange,
  about: Pick<Operation, "operationId" | "summary" | "description">,
  data: Record<string, Json>,
): Operation {
  return webhook(about, {
    description: "The badge after the change. Ignore fields that you do not know.",
    schema: schemaRef("BadgeChanged"),
    examples: {
      [about.summary]: {
        id: "evt_01mcc6k3v8t4w9d2x7h5r1nqpz",
        event,
        createdAt: "2027-01-15T08:30:00.250Z",
        data: { ...ACTIVE, ...data },
      },
    },
  });
}

function invitationEnded(
  event: InvitationEnd,
  about: Pick<Operation, "operationId" | "summary" | "description">,
): Operation {
  return webhook(about, {
    description: "The number that was reserved. Ignore fields that you do not know.",
    schema: schemaRef("InvitationEnded"),
    examples: {
      [about.summary]: {
        id: "evt_01mcd0z5c2b8m4k6q1t9y3xwhe",
        event,
        createdAt: "2027-01-22T17:00:30.000Z",
        data: { id: EXAMPLE_BADGE, expiresAt: EXAMPLE_EXPIRES_AT },
      },
    },
  });
}

const webhookTest = webhook(
  {
    operationId: "webhookTest",
    summary: "An administrator tests the webhook URL",
    description:
      "Sent once, when an administrator asks for it, and signed like every webhook. Check the signature and respond 2xx, which also releases held deliveries.",
  },
  {
    description: "A test.",
    schema: schemaRef("WebhookTest"),
    examples: {
      "A test": {
        id: "evt_01mcc5s9tdw3j8r6m1x4bk7nqe",
        event: "webhook:test",
        createdAt: "2027-01-15T08:15:00.000Z",
        data: {},
      },
    },
  },
);

/** These events have no change number, and an issued number is never reserved again. */
const LATE =
  "If it comes late, somebody else may have the number already: ignore it if `GET /v1/badges/{id}` finds a badge, or an invitation that is newer than the event's `createdAt` has the number.";

/** Every event that the service sends. */
const OPERATIONS: Record<EventName, Operation> = {
  "badge:created": badgeCreated,
  "badge:suspended": badgeChanged(
    "badge:suspended",
    {
      operationId: "badgeSuspended",
      summary: "A badge was suspended",
      description:
        "It opens no door until it is resumed. Also sent when a badge that was suspended and has expired since gets a later end.",
    },
    { state: "suspended", change: 42 },
  ),
  "badge:resumed": badgeChanged(
    "badge:resumed",
    {
      operationId: "badgeResumed",
      summary: "A badge is active again",
      description: "A suspended badge was resumed, or an expired one got a later end.",
    },
    { change: 43 },
  ),
  "badge:revoked": badgeChanged(
    "badge:revoked",
    {
      operationId: "badgeRevoked",
      summary: "A badge was revoked",
      description: "For ever, by a call or because its user was blocked: take its access away.",
    },
    { state: "revoked", change: 44 },
  ),
  "badge:expired": badgeChanged(
    "badge:expired",
    {
      operationId: "badgeExpired",
      summary: "A badge has expired",
      description:
        "Its end has passed, or was moved to a time that has passed. Device calls are refused from that moment on; the event follows within about a minute.",
    },
    { state: "expired", expiresAt: "2027-01-15T08:30:00.000Z", change: 45 },
  ),
  "badge:replaced": badgeChanged(
    "badge:replaced",
    {
      operationId: "badgeReplaced",
      summary: "A badge was replaced",
      description:
        "The user device has claimed an invitation, whose badge took this one's place: take its access away. The `badge:created` of the new badge names this one as `replacedBadgeId`.",
    },
    { id: EXAMPLE_OTHER_BADGE, state: "replaced", change: 46 },
  ),
  "invitation:revoked": invitationEnded("invitation:revoked", {
    operationId: "invitationRevoked",
    summary: "An invitation was revoked",
    description: `Nobody had claimed it: take the access of its number away, because somebody else may get the number. ${LATE}`,
  }),
  "invitation:expired": invitationEnded("invitation:expired", {
    operationId: "invitationExpired",
    summary: "An invitation has expired",
    description: `Nobody claimed it in time: take the access of its number away, because somebody else may get the number. The event follows within about a minute. ${LATE}`,
  }),
  "webhook:test": webhookTest,
};

/** The `webhooks` of the document. */
export const webhooks = (): Record<string, PathItem> =>
  Object.fromEntries(Object.entries(OPERATIONS).map(([event, operation]) => [event, { post: operation }]));
