import {
  blockUser,
  eraseUser,
  getBadge,
  getUser,
  listBlockedUsers,
  listChanges,
  rebindBadge,
  resumeBadge,
  revokeBadge,
  setBadgeTimes,
  suspendBadge,
  unblockUser,
} from "./badge-lifecycle-operations.ts";
import { HEADERS, SECURITY_SCHEMES } from "./components.ts";
import { issueBadge, signBadge } from "./device-operations.ts";
import { guide } from "./guide.ts";
import {
  createInvitation,
  createInvitations,
  describeInvitation,
  eraseInvitation,
  revokeInvitation,
} from "./invitation-operations.ts";
import { componentSchemas } from "./json-schemas.ts";
import { listBadges, listUserBadges } from "./list-operations.ts";
import { listDoors, waitForChanges } from "./live-operations.ts";
import {
  getApplication,
  getStatistics,
  listAccess,
  listEvents,
  listHistory,
  listInvitations,
  replayEvent,
} from "./overview-operations.ts";
import { getDocs, getHealth, getKeySet, getOpenApi } from "./service-operations.ts";
import { getStatusList } from "./status-list-operation.ts";
import type { OpenApiDocument } from "./types.ts";
import { listOwnBadges, suspendOwnBadge } from "./user-operations.ts";
import { WEBHOOK_GUIDE } from "./webhook-guide.ts";
import { webhooks } from "./webhooks.ts";

const TAGS = [
  {
    name: "Devices",
    description: "What the application on a user's device calls, with its application ID and `udid`.",
  },
  {
    name: "Own badges",
    description: "What a person calls, from any device and with a user token, to see and stop badges of their own.",
  },
  {
    name: "Badges",
    description:
      "What the application's server calls to read and follow its badges, to suspend, revoke and end them, and to block users.",
  },
  {
    name: "Invitations",
    description:
      "What the application's server calls to reserve badges for visitors, and a visitor's phone to see for what.",
  },
  { name: "Overview", description: "What the people who run an application look at." },
  { name: "Keys", description: "What door controllers need to verify signatures offline." },
  { name: "Webhooks", description: WEBHOOK_GUIDE },
  { name: "Service", description: "The state of the service, and this reference." },
];

/**
 * The API as an OpenAPI 3.1 document (contract section 11). Shapes and limits come from the schemas that validate requests;
 * statuses and codes come from the error table.
 *
 * @param now in milliseconds, because times in examples that are sent to the service must lie ahead
 */
export function openApiDocument(now: number): OpenApiDocument {
  return {
    openapi: "3.1.0",
    info: {
      title: "Badge Distribution Service",
      version: "1.0.0",
      summary: "Badge numbers that are unique across buildings, and signatures that doors check offline.",
      description: guide(),
    },
    jsonSchemaDialect: "https://json-schema.org/draft/2020-12/schema",
    servers: [{ url: "/", description: "The service that this document came from." }],
    security: [],
    tags: TAGS,
    paths: {
      "/v1/badge": { post: issueBadge() },
      "/v1/badge/sign": { post: signBadge() },
      "/v1/user/badges": { get: listOwnBadges() },
      "/v1/user/badges/{id}/suspend": { patch: suspendOwnBadge() },
      "/v1/badges": { get: listBadges() },
      "/v1/badges/{id}": { get: getBadge(), patch: setBadgeTimes() },
      "/v1/badges/{id}/suspend": { patch: suspendBadge() },
      "/v1/badges/{id}/resume": { patch: resumeBadge() },
      "/v1/badges/{id}/revoke": { patch: revokeBadge() },
      "/v1/badges/{id}/rebind": { patch: rebindBadge() },
      "/v1/changes": { get: listChanges() },
      "/v1/users": { get: listBlockedUsers() },
      "/v1/users/{id}": { get: getUser() },
      "/v1/users/{id}/badges": { get: listUserBadges() },
      "/v1/users/{id}/block": { patch: blockUser() },
      "/v1/users/{id}/unblock": { patch: unblockUser() },
      "/v1/users/{id}/erase": { patch: eraseUser() },
      "/v1/invitation": { get: describeInvitation(), post: createInvitation(now) },
      "/v1/invitation/{id}/revoke": { patch: revokeInvitation() },
      "/v1/invitation/{id}/erase": { patch: eraseInvitation() },
      "/v1/application": { get: getApplication() },
      "/v1/invitations": { get: listInvitations(), post: createInvitations(now) },
      "/v1/access": { get: listAccess() },
      "/v1/doors": { get: listDoors() },
      "/v1/history": { get: listHistory() },
      "/v1/events": { get: listEvents() },
      "/v1/events/{id}/replay": { post: replayEvent() },
      "/v1/stats": { get: getStatistics() },
      "/v1/applications/{applicationId}/jwks.json": { get: getKeySet() },
      "/v1/applications/{applicationId}/status/{n}": { get: getStatusList() },
      "/v1/live": { get: waitForChanges() },
      "/health": { get: getHealth() },
      "/openapi.json": { get: getOpenApi() },
      "/docs": { get: getDocs() },
    },
    webhooks: webhooks(),
    components: {
      schemas: componentSchemas(),
      headers: HEADERS,
      securitySchemes: SECURITY_SCHEMES,
    },
  };
}
