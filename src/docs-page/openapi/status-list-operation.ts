import { STATUS_LIST_ENTRIES, STATUS_LIST_TTL_SECONDS } from "../../shared/limits/status-list-limits.ts";
import { EXAMPLE_STATUS_LIST } from "../../shared/openapi-examples.ts";
import { APPLICATION_ID_IN_PATH, BY_ANYBODY } from "./components.ts";
import { commonHeaders, errorResponses } from "./parts.ts";
import type { Operation } from "./types.ts";

const STATUS_ROUTE = { anyOrigin: true };

export const getStatusList = (): Operation => ({
  operationId: "getStatusList",
  tags: ["Keys"],
  summary: "Which badges have ended, for offline doors",
  description: `An IETF Token Status List (draft-ietf-oauth-status-list), for applications that an administrator has given status lists. A badge signature then has a claim \`status.status_list\` with \`uri\`, the address of its list, and \`idx\`, its index there, which belongs to that badge for ever.

The response is a JWT, ES256 by the key that signs the application's new badges, of type \`statuslist+jwt\`:

* \`sub\`: the address of the list, equal to \`uri\`
* \`iat\`: when it was computed; \`exp\`: until when a door may use it; \`ttl\`: ${STATUS_LIST_TTL_SECONDS}, the seconds after \`iat\` when a door requests a newer one
* \`change\`: the last change that it contains, for a door that applies deltas (\`GET /v1/live\`)
* \`status_list\`: \`bits\`, 2, and \`lst\`, the ${STATUS_LIST_ENTRIES.toLocaleString("en")} entries, compressed with zlib (RFC 1950), as base64 for URLs. The first entry of a byte is in its lowest two bits.

An entry is 0 for an active badge, 1 for one that was revoked or replaced, 2 for one that is suspended or expired. A list is at most 30 seconds old when it is sent. A door checks the badge signature first, then that the list's \`sub\` is the signature's \`uri\` and its \`exp\` is ahead, and then the entry.

A disabled application keeps its lists. Lists of past times are not available.`,
  security: BY_ANYBODY,
  parameters: [
    APPLICATION_ID_IN_PATH,
    {
      name: "n",
      in: "path",
      description: "The number of the list: take the whole address from a badge signature.",
      required: true,
      schema: { type: "string", pattern: "^(0|[1-9][0-9]*)$" },
      example: "0",
    },
  ],
  responses: {
    "200": {
      description: "The list.",
      headers: commonHeaders({ ...STATUS_ROUTE, cacheControl: "CachedBriefly" }),
      content: {
        "application/statuslist+jwt": {
          schema: { type: "string", pattern: "^[\\w-]+\\.[\\w-]+\\.[\\w-]+$" },
          examples: { "no-badge-has-ended": { summary: "No badge has ended", value: EXAMPLE_STATUS_LIST } },
        },
      },
    },
    ...errorResponses(STATUS_ROUTE, ["UNKNOWN_STATUSLIST", "RATE_LIMITED", "NOT_IMPLEMENTED", "UNAVAILABLE"]),
  },
});
