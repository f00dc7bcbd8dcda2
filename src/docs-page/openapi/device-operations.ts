import {
  EXAMPLE_BADGE,
  EXAMPLE_CLIENT_SIGNATURE,
  EXAMPLE_KEY_THUMBPRINT,
  EXAMPLE_METADATA,
  EXAMPLE_PUBLIC_KEY,
  EXAMPLE_SIGNATURE,
  EXAMPLE_SIGNATURE_CLAIMS,
  EXAMPLE_SIGNATURE_HEADER,
  EXAMPLE_TOKEN,
} from "../../shared/openapi-examples.ts";
import {
  BOOKMARK_PARAMETER,
  BY_DEVICE,
  BY_DEVICE_WITH_USER,
  credentialParameters,
  PROOF_PARAMETER,
  READ_AS_JSON,
} from "./components.ts";
import { schemaRef } from "./json-schemas.ts";
import { commonHeaders, errorResponses, headerRef, json } from "./parts.ts";
import type { Operation } from "./types.ts";

/** Routes of devices. */

const DEVICE_ROUTE = { anyOrigin: true };

/** The headers of every response that is not an error. */
const grantedHeaders = () => ({ ...commonHeaders(DEVICE_ROUTE), bookmark: headerRef("Bookmark") });

export const issueBadge = (): Operation => ({
  operationId: "issueBadge",
  tags: ["Devices"],
  summary: "Get a badge number",
  description: `The application on a device calls this after every login, as often as it likes. Badges are identified by application, device and user: **a user device has one badge**, and its number never changes hands.

* **201** the first time: the badge is new, and one \`badge:created\` webhook follows. Keep \`publicKey\` if something on the device verifies signatures; later it is available only from the application's key set.
* **200** every later time: the same number, even if two requests raced, or if the first one failed half-way or its response was lost. So treat 200 and 201 alike, and retry when no response arrives.
* Another user on the same device gets another number, and the same user on another device too: logging in never moves a number to another user.

The badge in the last successful response is the device's **current** badge, and \`POST /v1/badge/sign\` signs for it. So call this at every login, not only at the first.

If \`metadata\` differs from the stored metadata, it replaces it as a whole. If it is left out, nothing changes.

### When the badge has ended

The application's server can suspend or revoke a badge, give it an end, and block a user. From then on this call and \`POST /v1/badge/sign\` get 403: \`SUSPENDED_BADGE\`, \`REVOKED_BADGE\` or \`EXPIRED_BADGE\`. A suspended badge may be resumed and an expired one may get a later end; a revoked one never comes back by logging in. A blocked user who has no badge on this device gets \`BLOCKED_USER\`, and no number is used up. None of these is worth a retry: tell the user.

### With an invitation token

\`invitationToken\` is the \`id\` of an invitation. With a valid one, the response contains the number that the invitation reserved: 201 when it is claimed, 200 when the same user device sends it again. If the user device has an active or expired badge, the invitation's badge replaces it. The old number is retired: it is never reissued and no longer listed, and the webhook names it as \`replacedBadgeId\`. If the user device has a revoked badge, it gets the invitation's badge as well, provided that the invitation was created with the secret; otherwise 403 \`REVOKED_BADGE\`. If the badge is suspended or the user blocked, the claim gets 403 \`SUSPENDED_BADGE\` or \`BLOCKED_USER\`. A refused claim does not use up the invitation. When a later invitation has replaced the badge, the older token still gives 200, with **the badge that the user device has now**: a retired number opens no door.

The claim and the new badge are one transaction: a failed request does not use up the invitation, and if two devices race for a token, one gets the badge and the other 409.

### With a verified user

An application ID is public, so without more anybody can get a badge that names any user. If an administrator has named the application's identity provider, this call needs \`Authorization: Bearer\` with a token of that provider for this \`userId\`; see the guide. With an invitation that was created with the application's secret it needs none: the server vouches for its visitor.

### With a key of the device

A request with a proof in \`DPoP\` that gets 201 **binds** the new badge to the key of the proof. From then on this call and \`POST /v1/badge/sign\` need a proof by the same key for it; any other call gets 401 \`INVALID_PROOF\`. A badge that exists is not bound by a proof, unless the application's server has called \`PATCH /v1/badges/{id}/rebind\` or an administrator lets first proofs bind badges. A claim that would replace a bound badge needs its key. If the invitation was created with the application's secret and names this \`userId\`, any valid proof is enough instead. A lost 201 is repeated with the same key and gets 200.

### What is checked first

The service reports the first error in this order:

1. application ID, \`udid\`, body, required fields
2. the form of \`udid\`, \`userId\`, \`metadata\` and \`invitationToken\`
3. the user token (\`INVALID_USERTOKEN\`), unless an invitation token was sent
4. the proof (\`INVALID_PROOF\`, \`USE_DPOP_NONCE\`)
5. the user token, if the invitation does not replace it; then the invitation
6. a blocked user who presents an unclaimed token (\`BLOCKED_USER\`)
7. the key of the badge (\`INVALID_PROOF\`)
8. the state of the badge and of the user

A missing application ID is 422 here, and 401 on the other routes.`,
  security: [...BY_DEVICE, ...BY_DEVICE_WITH_USER],
  parameters: [...credentialParameters(BY_DEVICE), PROOF_PARAMETER, BOOKMARK_PARAMETER],
  requestBody: {
    description: `The user who has logged in. ${READ_AS_JSON}`,
    required: true,
    content: json(schemaRef("BadgeRequest"), {
      "A user who has logged in": { userId: "alice", metadata: EXAMPLE_METADATA },
      "A user who was invited": { userId: "alice", invitationToken: EXAMPLE_TOKEN },
    }),
  },
  responses: {
    "200": {
      description: "The badge that this user device has already.",
      headers: grantedHeaders(),
      content: json(schemaRef("ExistingBadge"), {
        "An existing badge": { badgeId: EXAMPLE_BADGE },
        "One that is bound to a key": { badgeId: EXAMPLE_BADGE, keyThumbprint: EXAMPLE_KEY_THUMBPRINT },
      }),
    },
    "201": {
      description: "A new badge, or the badge of the invitation that was just claimed.",
      headers: grantedHeaders(),
      content: json(schemaRef("NewBadge"), {
        "A new badge": { badgeId: EXAMPLE_BADGE, publicKey: EXAMPLE_PUBLIC_KEY },
        "One that is bound to a key": {
          badgeId: EXAMPLE_BADGE,
          publicKey: EXAMPLE_PUBLIC_KEY,
          keyThumbprint: EXAMPLE_KEY_THUMBPRINT,
        },
      }),
    },
    ...errorResponses(DEVICE_ROUTE, [
      "INVALID_JSON",
      "INVALID_APPLICATIONID",
      "INVALID_USERTOKEN",
      "INVALID_PROOF",
      "USE_DPOP_NONCE",
      "SUSPENDED_BADGE",
      "REVOKED_BADGE",
      "EXPIRED_BADGE",
      "WRONG_USER",
      "BLOCKED_USER",
      "UNKNOWN_INVITATION",
      "CLAIMED_INVITATION",
      "TOO_MANY_BADGES",
      "EXPIRED_INVITATION",
      "REVOKED_INVITATION",
      "PAYLOAD_TOO_LARGE",
      "UNDEFINED_APPLICATIONID",
      "UNDEFINED_UDID",
      "UNDEFINED_USERID",
      "INVALID_UDID",
      "INVALID_USERID",
      "INVALID_METADATA",
      "INVALID_INVITATIONTOKEN",
      "RATE_LIMITED",
      "NUMBERS_EXHAUSTED",
      "UNAVAILABLE",
    ]),
  },
});

export const signBadge = (): Operation => ({
  operationId: "signBadge",
  tags: ["Devices"],
  summary: "Exchange the client's signature for the service's",
  description: `The device signs as the building requires, sends the result, and stores the response securely: it is what doors check.

\`signature\` is a JWT (RFC 7519; compact JWS, ES256) that any JOSE library verifies **offline**, with the \`publicKey\` of the badge or the key of the application's key set that \`kid\` names. The example contains:

\`\`\`json
${JSON.stringify(EXAMPLE_SIGNATURE_HEADER)}
${JSON.stringify(EXAMPLE_SIGNATURE_CLAIMS)}
\`\`\`

* \`sub\`: badge number
* \`aud\`: application ID
* \`iat\`: when it was signed, in seconds since 1970-01-01 UTC
* \`nbf\`: the badge's start, if it has one
* \`exp\`: when the signature's lifetime or the badge ends, whichever is earlier; absent if the application sets no lifetime and the badge has no end
* \`client_signature\`: the \`base64\` of the request, unchanged
* \`cnf\`, if the badge is bound to a key: \`cnf.jwk\` is that key (RFC 7800), so a door can have the phone prove, offline, that it holds it
* \`status\`, if the application has status lists: \`status_list.uri\` and \`status_list.idx\` say where a door finds out whether the badge has ended since

**What it proves: which badge presented which client signature, and when. The service does not verify the client signature**, whose content each building defines. If you rely on it, verify both: the JWT with the application's key, and \`client_signature\` with the key that the building expects.

A verifier requires \`alg\` ES256 and \`typ\` \`badge-signature+jwt\` before anything else, then the signature, then \`aud\`, then the times. Without \`exp\` it decides by \`iat\` whether the signature is too old. The service keeps no signatures; each call makes a new one.

**Which badge signs.** Without a proof: the device's current badge, which its last successful \`POST /v1/badge\` returned; if that is bound to a key, 401 \`INVALID_PROOF\`. With a proof: the badge of the proof's key that was returned last; if there is none, the unbound badge that was returned last. A device that has only badges of other keys gets 401 \`INVALID_PROOF\`. With \`badgeId\`: exactly that badge of this device, or a refusal: 404 \`UNKNOWN_BADGE\` for anything else, also for a value that is no badge number. Null and blank count as missing.

A badge that is not active, or has not started, signs nothing: 403 \`SUSPENDED_BADGE\`, \`REVOKED_BADGE\`, \`EXPIRED_BADGE\` or \`EARLY_BADGE\`. Signatures that were made before stay valid until their \`exp\`, because doors verify offline.

A missing application ID is 401 here.`,
  security: BY_DEVICE,
  parameters: [...credentialParameters(BY_DEVICE), PROOF_PARAMETER, BOOKMARK_PARAMETER],
  requestBody: {
    description: `The client's signature. ${READ_AS_JSON}`,
    required: true,
    content: json(schemaRef("SignRequest"), {
      "A client signature": { base64: EXAMPLE_CLIENT_SIGNATURE },
      "For one badge of the device": { base64: EXAMPLE_CLIENT_SIGNATURE, badgeId: EXAMPLE_BADGE },
    }),
  },
  responses: {
    "200": {
      description: "The signature of the service.",
      headers: grantedHeaders(),
      content: json(schemaRef("BadgeSignature"), { "A signature": { signature: EXAMPLE_SIGNATURE } }),
    },
    ...errorResponses(DEVICE_ROUTE, [
      "INVALID_JSON",
      "INVALID_APPLICATIONID",
      "INVALID_PROOF",
      "USE_DPOP_NONCE",
      "SUSPENDED_BADGE",
      "REVOKED_BADGE",
      "EXPIRED_BADGE",
      "EARLY_BADGE",
      "UNKNOWN_BADGE",
      "PAYLOAD_TOO_LARGE",
      "UNDEFINED_UDID",
      "UNDEFINED_BASE64",
      "INVALID_UDID",
      "INVALID_BASE64",
      "RATE_LIMITED",
      "UNAVAILABLE",
    ]),
  },
});
