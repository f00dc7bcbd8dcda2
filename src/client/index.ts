/** The client of the badge distribution service. It needs `fetch`; `verifyWebhook` also needs WebCrypto. */
export type { BadgePages } from "./badge-pages.ts";
export { DeviceClient, type DeviceClientOptions } from "./device-client.ts";
export { BadgeServiceError, ERROR_CODES, type ErrorCode, NoResponseError } from "./errors.ts";
export type { CallOptions, CallSignal, ClientOptions, Fetch, FetchInit, FetchResponse } from "./options.ts";
export { type ListQuery, type NewInvitation, ServerClient, type ServerClientOptions } from "./server-client.ts";
export type {
  BadgeCreatedEvent,
  BadgePage,
  BadgeRequest,
  Invitation,
  IssuedBadge,
  ListedBadge,
  Metadata,
  RevokedInvitation,
} from "./types.ts";
export {
  type VerifiedWebhook,
  verifyWebhook,
  type WebhookFailure,
  type WebhookRefused,
  type WebhookToVerify,
} from "./webhook.ts";
export type { WebhookBody } from "./webhook-body.ts";
