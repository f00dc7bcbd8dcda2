import { PUBLIC_ERRORS } from "../../shared/error-table.ts";
import {
  MAX_JTI_CHARACTERS,
  MAX_PROOF_CHARACTERS,
  NONCE_LIFETIME_SECONDS,
  PROOF_WINDOW_SECONDS,
  REBIND_WINDOW_HOURS,
} from "../../shared/limits/key-limits.ts";

/** A section of the introduction, in Markdown. */
export const PROOF_GUIDE = `# Badges bound to a key

Without a key, anybody who knows the application ID and a \`udid\` can sign as that device. A phone can have its badge bound to a key that never leaves its secure hardware, by sending a proof of possession (RFC 9449, DPoP) with \`POST /v1/badge\` and \`POST /v1/badge/sign\`. Proofs are optional unless the application requires them (\`requireProof\` of \`GET /v1/application\`). For devices without a key nothing changes.

The \`DPoP\` header is a JWT (compact JWS, at most ${MAX_PROOF_CHARACTERS} characters), created for each request:

| | |
| --- | --- |
| header | \`typ\` \`dpop+jwt\`, \`alg\` \`ES256\`, \`jwk\` the public P-256 key: \`kty\`, \`crv\`, \`x\`, \`y\` and no private member |
| \`aud\` | the application ID |
| \`jti\` | a random text of 1 to ${MAX_JTI_CHARACTERS} characters; it is not remembered |
| \`htm\` | \`POST\` |
| \`htu\` | the URL that was called, without query; where the deployment has a public URL, that one and the path, and no other |
| \`iat\` | now, in seconds since 1970-01-01 UTC |
| \`ath\` | base64url of SHA-256 of the \`udid\`, which takes the place of an access token here |
| \`body_hash\` | base64url of SHA-256 of the body's bytes |
| \`nonce\` | the last \`DPoP-Nonce\` that the service sent, if it is not older than ${NONCE_LIFETIME_SECONDS} s |

**Is the phone's clock wrong?** A proof is fresh if its \`nonce\` was given at most ${NONCE_LIFETIME_SECONDS} s ago or, without a \`nonce\`, if its \`iat\` is within ${PROOF_WINDOW_SECONDS} s of the service's clock. Otherwise the response is 401 \`USE_DPOP_NONCE\` with a \`DPoP-Nonce\` header: send the request again with a new proof that has that \`nonce\`. The phone's clock does not matter then.

\`WWW-Authenticate\` of the two refusals is \`${PUBLIC_ERRORS.INVALID_PROOF.challenge}\` and \`${PUBLIC_ERRORS.USE_DPOP_NONCE.challenge}\`.

**When is a badge bound?** By the 201 of \`POST /v1/badge\`, never later by a proof alone. After \`PATCH /v1/badges/{id}/rebind\`, the first login with another key within ${REBIND_WINDOW_HOURS} hours binds it. An administrator can also let the first proof bind unbound badges until a certain time (\`--bind-until\`). \`keyThumbprint\` (RFC 7638) in the badge, in \`GET /v1/changes\` and in \`badge:created\` says which key it is: compare it with the key that you saw at login.

**Is the badge this phone's own?** The 200 and 201 of a bound badge have its \`keyThumbprint\`. If it is not that of the phone's key, or is missing although the application binds every badge, somebody else was first. Do not use the badge; have the application's server rebind or revoke it.

**What is the door's part?** A signature for a bound badge has \`cnf.jwk\`. A door that challenges the phone checks, offline, that it holds the key; a copied signature is useless there. \`createChallenge\` and \`verifyPossession\` of the door kit do it.

Calls with a valid proof are limited by application, \`udid\` and key, so a stranger who knows the \`udid\` cannot lock its owner out.`;
