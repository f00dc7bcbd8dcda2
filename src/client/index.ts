/** The client of the badge distribution service. It needs `fetch`; `verifyWebhook` also needs WebCrypto. */
export {
  DeviceClient,
  type DeviceClientOptions,
  type LoginRequest,
  type PersonOptions,
  type SignOptions,
} from "./device-client.ts";
export { createDoorResponse, type DoorChallenge } from "./door-response.ts";
export {
  BadgeServiceError,
  ERROR_CODES,
  type ErrorCode,
  isExpiredCursor,
  isRefusedBadge,
  isRefusedUserToken,
  NoResponseError,
  type RefusedBadgeCode,
  type RefusedBadgeError,
} from "./errors.ts";
export type { CallOptions, CallSignal, ClientOptions, Fetch, FetchInit, FetchResponse } from "./options.ts";
export type {
  Application,
  EventPage,
  EventState,
  InvitationPage,
  InvitationState,
  ListedEvent,
  ListedInvitation,
  ReplayedEvent,
  Statistics,
  ValueCounts,
} from "./overview-types.ts";
export type { BadgePages, ChangePages, EventPages, InvitationPages } from "./pages.ts";
export { createProof, type ProvenRequest } from "./proof.ts";
export {
  type ProofKey,
  type PublicJwk,
  rawSignatureFromDer,
  type WebCryptoKey,
  type WebCryptoKeyPair,
  webCryptoProofKey,
} from "./proof-key.ts";
export {
  type ChangesQuery,
  type EventQuery,
  type InvitationQuery,
  type ListQuery,
  type NewInvitation,
  type PageOptions,
  ServerClient,
  type ServerClientOptions,
} from "./server-client.ts";
export type {
  Badge,
  BadgeChange,
  BadgePage,
  BadgeRequest,
  BadgeState,
  BlockedUser,
  ChangePage,
  Invitation,
  IssuedBadge,
  ListedBadge,
  Metadata,
  RevokedInvitation,
  User,
} from "./types.ts";
export {
  type VerifiedWebhook,
  verifyWebhook,
  type WebhookFailure,
  type WebhookRefused,
  type WebhookToVerify,
} from "./webhook.ts";
export type { WebhookBody } from "./webhook-body.ts";
export type {
  BadgeChangedEvent,
  BadgeCreatedEvent,
  InvitationEndedEvent,
  WebhookEvent,
} from "./webhook-events.ts";
