/** The client of the badge distribution service. It needs `fetch`; bound badges, invitations and `verifyWebhook` also need WebCrypto. */
export { type Permission, type Role, roleAllows } from "../shared/roles.ts";
export {
  DeviceClient,
  type DeviceClientOptions,
  type LoginRequest,
  type SignOptions,
  type UserCallOptions,
} from "./device-client.ts";
export { createDoorResponse, type DoorChallenge } from "./door-response.ts";
export {
  BadgeServiceError,
  ERROR_CODES,
  type ErrorCode,
  isExpiredCursor,
  isRefusedBadge,
  isRefusedUserToken,
  KeyMismatchError,
  NoResponseError,
  type RefusedBadgeCode,
  type RefusedBadgeError,
} from "./errors.ts";
export type { CallOptions, CallSignal, ClientOptions, Fetch, FetchInit, FetchResponse } from "./options.ts";
export type {
  AccessPage,
  Application,
  ConnectedDoor,
  ConsolePerson,
  DoorPage,
  EventPage,
  EventState,
  HistoryEntry,
  HistoryPage,
  InvitationPage,
  InvitationState,
  ListedEvent,
  ListedInvitation,
  ReplayedEvent,
  Statistics,
  ValueCounts,
} from "./overview-types.ts";
export type {
  AccessPages,
  BadgePages,
  BlockedUserPages,
  ChangePages,
  DoorPages,
  EventPages,
  HistoryPages,
  InvitationPages,
} from "./pages.ts";
export { createDpopProof, type ProvenRequest } from "./proof.ts";
export {
  type ProofKey,
  type PublicJwk,
  rawSignatureFromDer,
  type WebCryptoKey,
  type WebCryptoKeyPair,
  webCryptoProofKey,
} from "./proof-key.ts";
export {
  type ActingOptions,
  type BadgeSearch,
  type BadgeStepOptions,
  type ChangeOptions,
  type ChangesQuery,
  type EventQuery,
  type HistoryQuery,
  type InvitationInput,
  type InvitationQuery,
  type InvitingOptions,
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
  BlockedUserPage,
  ChangePage,
  CurrentBadge,
  DescribedInvitation,
  ErasedInvitation,
  ErasedUser,
  HistoryActor,
  Invitation,
  IssuedBadge,
  ListedBadge,
  ListedBlockedUser,
  Metadata,
  RefusedInvitation,
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
