import { PUBLIC_ERRORS, WRONG_TOKEN_CHALLENGE } from "../../shared/error-table.ts";
import { MAX_PROOF_CHARACTERS, NONCE_LIFETIME_SECONDS } from "../../shared/limits/key-limits.ts";
import { RATE_LIMIT_WINDOW_SECONDS } from "../../shared/limits/platform-limits.ts";
import { MAX_NAME_CHARACTERS, MAX_UDID_CHARACTERS, PUBLIC_CACHE_SECONDS } from "../../shared/limits/request-limits.ts";
import { STATUS_LIST_TTL_SECONDS } from "../../shared/limits/status-list-limits.ts";
import {
  EXAMPLE_APPLICATION_ID,
  EXAMPLE_BADGE,
  EXAMPLE_BOOKMARK,
  EXAMPLE_REQUEST_ID,
  EXAMPLE_SECRET,
  EXAMPLE_UDID,
} from "../../shared/openapi-examples.ts";
import { REQUEST_ID, udid } from "../../shared/requests.ts";
import { jsonSchema, schemaRef } from "./json-schemas.ts";
import { json } from "./parts.ts";
import type { Header, Operation, Parameter, Schema, SecurityScheme } from "./types.ts";

const REQUEST_ID_SCHEMA = { type: "string", pattern: REQUEST_ID.source } as const;

const RETRY_AFTER_SCHEMA = { type: "string", pattern: "^[0-9]+$" } as const;

/** Response headers. */
export const HEADERS: Record<string, Header> = {
  RequestId: {
    description:
      "Identifies this request in the service's log: quote it when you report a problem. A request may choose its own ID with a header of the same name (letters, digits, `_`, `-` and `=`, at most 255 characters). Otherwise, and in responses that may be cached, it is a UUID.",
    required: true,
    schema: REQUEST_ID_SCHEMA,
    example: EXAMPLE_REQUEST_ID,
  },
  NoStore: {
    description: "Responses must not be cached.",
    required: true,
    schema: { type: "string", const: "no-store" },
    example: "no-store",
  },
  Cached: {
    description: "Any cache may keep this response for this many seconds.",
    required: true,
    schema: { type: "string", const: `public, max-age=${PUBLIC_CACHE_SECONDS}` },
    example: `public, max-age=${PUBLIC_CACHE_SECONDS}`,
  },
  CachedBriefly: {
    description: "Any cache may keep this response for this many seconds.",
    required: true,
    schema: { type: "string", const: `public, max-age=${STATUS_LIST_TTL_SECONDS}` },
    example: `public, max-age=${STATUS_LIST_TTL_SECONDS}`,
  },
  AnyOrigin: {
    description: "Web pages of any origin may read the response.",
    required: true,
    schema: { type: "string", const: "*" },
    example: "*",
  },
  Allow: {
    description: "The methods that the path supports.",
    required: true,
    schema: { type: "string", pattern: "^[A-Z]+(, [A-Z]+)*$" },
    example: "GET, HEAD",
  },
  RetryAfter: {
    description: "Seconds to wait before the request is sent again.",
    required: true,
    schema: RETRY_AFTER_SCHEMA,
    example: String(RATE_LIMIT_WINDOW_SECONDS),
  },
  RetryAfterSometimes: {
    description: "Seconds to wait before the request is sent again. Comes with `UNAVAILABLE`.",
    required: false,
    schema: RETRY_AFTER_SCHEMA,
    example: "2",
  },
  WwwAuthenticate: {
    description:
      "What is wrong with the proof (RFC 9449) or the user token (RFC 6750). Comes with `INVALID_PROOF`, `USE_DPOP_NONCE` and `INVALID_USERTOKEN`.",
    required: false,
    schema: {
      type: "string",
      enum: [...Object.values(PUBLIC_ERRORS).flatMap(({ challenge }) => challenge ?? []), WRONG_TOKEN_CHALLENGE],
    },
    example: PUBLIC_ERRORS.USE_DPOP_NONCE.challenge ?? "",
  },
  DpopNonce: {
    description: `The \`nonce\` of the next proof; it may be used as often as needed for ${NONCE_LIFETIME_SECONDS} s. Comes with \`USE_DPOP_NONCE\`.`,
    required: false,
    schema: { type: "string", pattern: "^[A-Za-z0-9._-]+$" },
    example: "1800000000.jq0Qd0yXb1m2Z3c4V5b6Nw",
  },
  Bookmark: {
    description:
      "How new the database is that this response comes from. Send it back as `bookmark` of the device's next call, which can then be served nearby.",
    required: true,
    schema: { type: "string", pattern: "^[1-9][0-9]{0,2}\\.[0-9a-f]{8}-[0-9a-f]{8}-[0-9a-f]{8}-[0-9a-f]{32}$" },
    example: EXAMPLE_BOOKMARK,
  },
  BadgeTag: {
    description: "The number of the badge's last change, in quotation marks: send it back as `If-Match`.",
    required: true,
    schema: { type: "string", pattern: '^"[0-9]+"$' },
    example: '"42"',
  },
  FileTag: {
    description: "Identifies this version of the file, for `If-None-Match`.",
    required: false,
    schema: { type: "string", pattern: '^(W/)?"[^"]*"$' },
    example: '"f3c1a7"',
  },
};

/** The headers that identify the caller. */
export const SECURITY_SCHEMES: Record<string, SecurityScheme> = {
  applicationid: {
    type: "apiKey",
    in: "header",
    name: "applicationid",
    description: `The application ID that an administrator issued, such as \`${EXAMPLE_APPLICATION_ID}\`. It is public, because every installed application contains it.`,
  },
  applicationsecret: {
    type: "apiKey",
    in: "header",
    name: "applicationsecret",
    description:
      "The application secret. For servers only: never put it into an application that users install, or into a web page.",
  },
  udid: {
    type: "apiKey",
    in: "header",
    name: "udid",
    description: `The unique device identifier: 1 to ${MAX_UDID_CHARACTERS} printable ASCII characters that stay the same as long as the application is installed. Anybody who knows the application ID and the udid can sign as the device: use at least 128 random bits and keep it in the device's secure storage. The service stores only a keyed digest.`,
  },
  authorization: {
    type: "http",
    scheme: "bearer",
    bearerFormat: "JWT",
    description:
      "A user token: an ID token or JWT access token of the application's identity provider (OpenID Connect), if an administrator has named one. It says which user has logged in.",
  },
};

/** The same headers as parameters: shape and example. */
const CREDENTIALS: Record<string, { schema: Schema; example: string }> = {
  applicationid: { schema: { type: "string", minLength: 1 }, example: EXAMPLE_APPLICATION_ID },
  applicationsecret: { schema: { type: "string", minLength: 1 }, example: EXAMPLE_SECRET },
  udid: { schema: { minLength: 1, ...jsonSchema(udid) }, example: EXAMPLE_UDID },
};

/**
 * The headers that `security` names, as parameters. Generators of typed clients drop security schemes, so only a parameter
 * makes a call without its `udid` a type error. A parameter is required if every alternative needs it. `Authorization` cannot be
 * a parameter (OpenAPI 3.1 section 4.8.12.2).
 */
export function credentialParameters(security: Operation["security"]): Parameter[] {
  return Object.entries(CREDENTIALS)
    .filter(([name]) => security.some((schemes) => name in schemes))
    .map(([name, { schema, example }]) => ({
      name,
      in: "header",
      description: SECURITY_SCHEMES[name]?.description ?? "",
      required: security.every((schemes) => name in schemes),
      schema,
      example,
    }));
}

/** The header with a device's proof. */
export const PROOF_PARAMETER: Parameter = {
  name: "DPoP",
  in: "header",
  description:
    "A proof of possession (RFC 9449) for exactly this request; see the guide. Needed for a badge that is bound to a key, and by applications that require proofs. Blank counts as missing.",
  required: false,
  schema: { type: "string", maxLength: MAX_PROOF_CHARACTERS },
};

/** The header that lets a replica of the database near the device respond. */
export const BOOKMARK_PARAMETER: Parameter = {
  name: "bookmark",
  in: "header",
  description:
    "The `bookmark` of the device's last response; see the guide. Blank, malformed, or of an application elsewhere, it counts as missing.",
  required: false,
  schema: { type: "string" },
  example: EXAMPLE_BOOKMARK,
};

/** The person for whom a server calls. */
export const ACTOR_PARAMETER: Parameter = {
  name: "actor",
  in: "header",
  description: `For whom the server calls, such as the name of who has signed in there: 1 to ${MAX_NAME_CHARACTERS} characters, percent-encoded UTF-8. \`GET /v1/history\` shows it. Ignored with a console secret, which has a name. Blank counts as missing.`,
  required: false,
  schema: { type: "string", maxLength: 12 * MAX_NAME_CHARACTERS },
  example: "Ann%20Lee",
};

/** Makes a change depend on what the caller has seen (RFC 9110 section 13.1.1). */
export const IF_MATCH_PARAMETER: Parameter = {
  name: "If-Match",
  in: "header",
  description:
    "The `ETag` of the badge as it was read. If it has changed since, the response is 412 `CHANGED_BADGE`, and nothing is done. Absent: the change is made in any case.",
  required: false,
  schema: { type: "string" },
  example: '"42"',
};

/** A device calls: it has no secret. */
export const BY_DEVICE = [{ applicationid: [], udid: [] }];
/** The same with a user token, for an application that has its users verified. */
export const BY_DEVICE_WITH_USER = [{ applicationid: [], udid: [], authorization: [] }];
/** A person calls, from any device. */
export const BY_USER = [{ applicationid: [], authorization: [] }];
/** The application's server calls. */
export const BY_SERVER = [{ applicationid: [], applicationsecret: [] }];
/** Anybody may call. */
export const BY_ANYBODY: [] = [];

/** The application in the path of a route without credentials. */
export const APPLICATION_ID_IN_PATH: Parameter = {
  name: "applicationId",
  in: "path",
  description: "The application ID.",
  required: true,
  schema: { type: "string", minLength: 1 },
  example: EXAMPLE_APPLICATION_ID,
};

/** The badge in the path of a route. */
export const BADGE_ID: Parameter = {
  name: "id",
  in: "path",
  description: "The badge number.",
  required: true,
  schema: { type: "string", minLength: 1 },
  example: EXAMPLE_BADGE,
};

export const READ_AS_JSON = "It is parsed as JSON, regardless of `Content-Type`; unknown fields are ignored.";

/** The optional body of a call that needs none. @param reason an example */
export const reasonBody = (reason: string): NonNullable<Operation["requestBody"]> => ({
  description: `Why, for \`GET /v1/history\`. ${READ_AS_JSON}`,
  required: false,
  content: json(schemaRef("ReasonRequest"), { "A reason": { reason } }),
});
