/** The client of the badge distribution service. It needs `fetch`; `verifyWebhook` also needs WebCrypto. */
export type {
  BadgePage,
  BadgeRequest,
  Invitation,
  IssuedBadge,
  ListedBadge,
  Metadata,
  RevokedInvitation,
} from "./answers.ts";
export type { BadgePages } from "./badge-pages.ts";
export { DeviceClient, type DeviceClientOptions } from "./device-client.ts";
export { BadgeServiceError, ERROR_CODES, type ErrorCode, NoAnswerError } from "./errors.ts";
export { type ListQuery, type NewInvitation, ServerClient, type ServerClientOptions } from "./server-client.ts";
export type { CallOptions, ClientOptions } from "./transport.ts";
export {
  type VerifiedWebhook,
  verifyWebhook,
  type WebhookFailure,
  type WebhookRefused,
  type WebhookToVerify,
} from "./webhook.ts";
export type { BadgeCreatedEvent, WebhookBody } from "./webhook-body.ts";
