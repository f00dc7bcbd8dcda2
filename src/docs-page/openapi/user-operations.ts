import { EXAMPLE_BADGE, EXAMPLE_METADATA, EXAMPLE_OTHER_BADGE } from "../../shared/openapi-examples.ts";
import { BADGE_ID, BY_USER, credentialParameters, PROOF_PARAMETER, reasonBody } from "./components.ts";
import { schemaRef } from "./json-schemas.ts";
import { commonHeaders, errorResponses, headerRef, json } from "./parts.ts";
import type { Operation } from "./types.ts";

/** Routes by which people manage their own badges. */

const USER_ROUTE = { anyOrigin: true };

const ISSUED = { issuedAt: "2027-01-15T08:00:00.500Z", changedAt: "2027-01-15T08:00:00.500Z" };
const BADGE = { id: EXAMPLE_BADGE, userId: "alice", state: "active", metadata: EXAMPLE_METADATA, ...ISSUED };
const SUSPENDED = { ...BADGE, state: "suspended" };

const PROOF = {
  ...PROOF_PARAMETER,
  description:
    "A proof of possession (RFC 9449), needed if the user token is bound to a key (`cnf.jkt`); see the guide.",
};

const ERRORS = [
  "INVALID_APPLICATIONID",
  "INVALID_USERTOKEN",
  "INVALID_PROOF",
  "USE_DPOP_NONCE",
  "RATE_LIMITED",
  "UNAVAILABLE",
] as const;

export const listOwnBadges = (): Operation => ({
  operationId: "listOwnBadges",
  tags: ["Own badges"],
  summary: "List one's own badges",
  description: "All active and suspended badges of the user whom the token names, on all devices, newest first.",
  security: BY_USER,
  parameters: [...credentialParameters(BY_USER), PROOF],
  responses: {
    "200": {
      description: "The user's badges.",
      headers: commonHeaders(USER_ROUTE),
      content: json(schemaRef("OwnBadges"), {
        "Two phones, one of them lost": { badges: [BADGE, { ...SUSPENDED, id: EXAMPLE_OTHER_BADGE }] },
      }),
    },
    // Its proof covers the body.
    ...errorResponses(USER_ROUTE, [...ERRORS, "PAYLOAD_TOO_LARGE"]),
  },
});

export const suspendOwnBadge = (): Operation => ({
  operationId: "suspendOwnBadge",
  tags: ["Own badges"],
  summary: "Suspend a badge of one's own",
  description:
    "For a phone that is lost: its badge signs nothing from now on. Only the application's server resumes it. A badge of another user is unknown here. A call that changes nothing gets the same response and sends no event. The body may have a `reason`; none is needed.",
  security: BY_USER,
  parameters: [...credentialParameters(BY_USER), PROOF, BADGE_ID],
  requestBody: reasonBody("Lost his phone"),
  responses: {
    "200": {
      description: "The badge as it is now.",
      headers: { ...commonHeaders(USER_ROUTE), ETag: headerRef("BadgeTag") },
      content: json(schemaRef("BadgeView"), { "A suspended badge": SUSPENDED }),
    },
    ...errorResponses(USER_ROUTE, [...ERRORS, "UNKNOWN_BADGE", "ENDED_BADGE", "PAYLOAD_TOO_LARGE"]),
  },
});
