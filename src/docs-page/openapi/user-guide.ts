import { PUBLIC_ERRORS, WRONG_TOKEN_CHALLENGE } from "../../shared/error-table.ts";
import { MAX_USER_TOKEN_CHARACTERS, USER_TOKEN_LEEWAY_SECONDS } from "../../shared/limits/user-token-limits.ts";
import { USER_TOKEN_ALGORITHMS } from "../../shared/openid/provider.ts";

const format = (number: number): string => new Intl.NumberFormat("en").format(number);

/** A section of the introduction, in Markdown. */
export const USER_GUIDE = `# Verified users

Every phone contains the application ID: with it alone, anybody can get a badge that names any user, bound to a key of their own. An application whose users log in with OpenID Connect can have an administrator name the identity provider. Then \`POST /v1/badge\` needs the token that the app got at login, as \`Authorization: Bearer <token>\`:

| | |
| --- | --- |
| token | an ID token, or an access token that is a JWT; at most ${format(MAX_USER_TOKEN_CHARACTERS)} characters |
| signature | ${USER_TOKEN_ALGORITHMS.join(", ")}, by a key of the provider's \`jwks_uri\` |
| \`iss\` | the provider, exactly as the administrator named it |
| \`aud\` | contains what the administrator named: for an ID token the app's client ID |
| \`exp\`, \`nbf\`, \`iat\` | \`exp\` has not passed; \`nbf\` and \`iat\` are not in the future; ${USER_TOKEN_LEEWAY_SECONDS} s of leeway |
| \`sub\`, or the claim that the administrator named | equals \`userId\` |
| \`cnf.jkt\`, if there is one | the key of the request's \`DPoP\` proof |

Anything else gets 401 \`INVALID_USERTOKEN\` with \`WWW-Authenticate: ${PUBLIC_ERRORS.INVALID_USERTOKEN.challenge}\`, and \`${WRONG_TOKEN_CHALLENGE}\` when a token was sent. The reason is in the service's log. \`POST /v1/badge/sign\` needs no user token, because the badge exists already.

With a token a person also looks after badges of their own, from any device: \`GET /v1/user/badges\`, and \`PATCH /v1/user/badges/{id}/suspend\` for a phone that is lost, at night too. Only the application's server resumes it. In the proof that a token with \`cnf.jkt\` needs there, \`ath\` is base64url of SHA-256 of the token, and \`htm\` the call's method.`;
