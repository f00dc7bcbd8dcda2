import { DEFAULT_PER_PAGE, MAX_PER_PAGE, MIN_SEARCH_CHARACTERS } from "../../shared/limits/request-limits.ts";
import { EXAMPLE_BADGE, EXAMPLE_METADATA, EXAMPLE_OTHER_BADGE } from "../../shared/openapi-examples.ts";
import { badgePageQuery, pageQuery } from "../../shared/requests.ts";
import { BY_SERVER, credentialParameters } from "./components.ts";
import { jsonSchema, schemaRef } from "./json-schemas.ts";
import { commonHeaders, json, serverErrors } from "./parts.ts";
import type { Header, Json, Operation, Parameter, ResponseObject } from "./types.ts";

/** Routes by which an application's server pages its badges. */

const SERVER_ROUTE = { anyOrigin: false };
const CURSOR = "YWZ0ZXI6MTAw";

export const pageParameters = (): Parameter[] => [
  {
    name: "per_page",
    in: "query",
    description: `Items on a page, at most. More than ${MAX_PER_PAGE} counts as ${MAX_PER_PAGE}.`,
    required: false,
    schema: { ...jsonSchema(pageQuery.shape.per_page), default: DEFAULT_PER_PAGE },
    example: 250,
  },
  {
    name: "cursor",
    in: "query",
    // No example, because /docs would send it when somebody tries the call.
    description: `Where the page starts: the \`pagination-cursor\` header of the page before, such as \`${CURSOR}\`. Absent: the first page.`,
    required: false,
    schema: jsonSchema(pageQuery.shape.cursor),
  },
];

/** An optional parameter of a list. */
export const parameter = (name: string, description: string, schema: Parameter["schema"]): Parameter => ({
  name,
  in: "query",
  description,
  required: false,
  schema,
});

export const SEARCH = `Only those whose user ID or name contains this, in any case: at least ${MIN_SEARCH_CHARACTERS} characters, else 422 \`INVALID_NAME\`.`;

const searchParameters = (): Parameter[] => {
  const { state, q, endsBefore, order } = badgePageQuery.shape;
  return [
    parameter("state", "Only badges in this state. Absent: active and suspended ones.", jsonSchema(state)),
    parameter("q", SEARCH, jsonSchema(q)),
    parameter(
      "endsBefore",
      "Only badges that have an end, before this time: ISO 8601 with a zone.",
      jsonSchema(endsBefore),
    ),
    parameter("order", "Newest first. Absent: oldest first.", jsonSchema(order)),
  ];
};

/** Why a page of a filtered list may be short (contract section 24). */
export const partialPage = (items: string): string =>
  `A page reads a limited number of rows, so it may have fewer ${items} than \`per_page\`, or none, although more follow. Follow the cursor until a page has none.`;

export const PAGINATION_CURSOR: Header = {
  description: "Where the next page starts. Present exactly when more follow.",
  required: false,
  schema: { type: "string", pattern: "^[\\w-]+$" },
  example: CURSOR,
};

const PAGING = `To read all, call without \`cursor\`, then again with each \`pagination-cursor\` header as \`cursor\` until a response has none. A badge that exists when you start appears exactly once, no matter what is issued meanwhile; new badges come last. A cursor is opaque text, safe in a URL. Every page costs the same, regardless of its position and of the number of badges.`;

export const listBadges = (): Operation => ({
  operationId: "listBadges",
  tags: ["Badges"],
  summary: "List all badges of the application",
  description: `Lists the active and the suspended badges, oldest first. Reserved numbers and badges that were revoked, replaced or have expired are left out. An item has \`state\` only while it is suspended, and \`expiresAt\` only if it has an end. In a list with \`state\`, \`q\`, \`endsBefore\` or \`order\`, which may be combined, an item also has \`issuedAt\` and \`changedAt\`, and its \`state\` unless it is active. A person's secret also gets who made the last change (\`changedBy\`). ${partialPage("badges")} \`GET /v1/badges/{id}\` shows a badge in any state. To keep a mirror up to date, follow \`GET /v1/changes\` instead: it has only what changed.

${PAGING}`,
  security: BY_SERVER,
  parameters: [...credentialParameters(BY_SERVER), ...searchParameters(), ...pageParameters()],
  responses: {
    "200": pageResponse({
      "A page": [
        { id: EXAMPLE_BADGE, userId: "alice", metadata: EXAMPLE_METADATA },
        { id: EXAMPLE_OTHER_BADGE, userId: "bob" },
      ],
      "A suspended badge, and one with an end": [
        { id: EXAMPLE_BADGE, userId: "alice", metadata: EXAMPLE_METADATA, state: "suspended" },
        { id: EXAMPLE_OTHER_BADGE, userId: "bob", expiresAt: "2027-01-22T23:00:00.000Z" },
      ],
      "Visitors, with a query": [
        {
          id: EXAMPLE_BADGE,
          userId: "alice",
          name: "Ann Lee",
          startsAt: "2027-01-22T07:00:00.000Z",
          expiresAt: "2027-01-22T17:00:00.000Z",
          issuedAt: "2027-01-15T08:00:00.500Z",
          changedAt: "2027-01-15T09:30:00.250Z",
          changedBy: { kind: "person", name: "Tom" },
        },
      ],
      "No badges": [],
    }),
    ...serverErrors("INVALID_STATE", "INVALID_NAME", "INVALID_EXPIRESAT", "INVALID_PER_PAGE", "INVALID_CURSOR"),
  },
});

export const listUserBadges = (): Operation => ({
  operationId: "listUserBadges",
  tags: ["Badges"],
  summary: "List the badges of one user",
  description: `The application's server calls this to see on which devices a user has badges: one for each user device, in the order they were issued, active and suspended ones. An unknown user has none: 200 with an empty list, because the service knows users only by their badges.

${PAGING}`,
  security: BY_SERVER,
  parameters: [
    ...credentialParameters(BY_SERVER),
    {
      name: "id",
      in: "path",
      description:
        "The application's user ID, percent-encoded (`a/b` is `a%2Fb`). `.` and `..` are no user IDs: every HTTP client resolves them in a path, so `/v1/users/../badges` is `/v1/badges` before it is sent.",
      required: true,
      schema: { type: "string", minLength: 1 },
      example: "alice",
    },
    ...pageParameters(),
  ],
  responses: {
    "200": pageResponse({
      "Two devices": [
        { id: EXAMPLE_BADGE, userId: "alice", metadata: EXAMPLE_METADATA },
        { id: EXAMPLE_OTHER_BADGE, userId: "alice" },
      ],
      "A user without badges": [],
    }),
    ...serverErrors("INVALID_PER_PAGE", "INVALID_CURSOR"),
  },
});

/** @param pages summary to badges */
function pageResponse(pages: Record<string, Json[]>): ResponseObject {
  const examples = Object.entries(pages).map(([summary, badges]) => [summary, { badges }]);
  return {
    description: "A page of badges.",
    headers: { ...commonHeaders(SERVER_ROUTE), "pagination-cursor": PAGINATION_CURSOR },
    content: json(schemaRef("BadgePage"), Object.fromEntries(examples)),
  };
}
