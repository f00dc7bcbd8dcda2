import { LIVE_HOLD_MILLISECONDS, MAX_DELTA_CHANGES } from "../../shared/limits/live-limits.ts";
import { MAX_DOOR_SECRETS } from "../../shared/limits/request-limits.ts";
import { EXAMPLE_STATUS_DELTA } from "../../shared/openapi-examples.ts";
import { BY_SERVER, credentialParameters } from "./components.ts";
import { schemaRef } from "./json-schemas.ts";
import { PAGINATION_CURSOR, pageParameters } from "./list-operations.ts";
import { commonHeaders, errorResponses, json, serverErrors } from "./parts.ts";
import type { Operation } from "./types.ts";

/** Routes for connected doors. */

const SERVER_ROUTE = { anyOrigin: false };

export const waitForChanges = (): Operation => ({
  operationId: "waitForChanges",
  tags: ["Keys"],
  summary: "Which badges have changed, for connected doors",
  description: `A door with a secret of its own (\`secret add ID --door NAME\`) has every change of status within two seconds. The call responds as soon as a badge's status has changed after \`have\`, else after ${LIVE_HOLD_MILLISECONDS / 1000} seconds; the door calls again at once with the \`change\` of the response. \`applicationsecret\` is a door's secret, or any other of the application. A second call with the same door's secret takes the place of the first, which gets 429.

The response is a JWT, ES256 by the key that signs the application's new badges, of type \`statusdelta+jwt\`:

* \`sub\`: the address of the application's lists without the last slash and the number; \`iat\`: when it was computed
* \`since\` and \`change\`: it covers the changes after \`since\` and up to \`change\`
* \`entries\`: \`[[list, index, status], …]\`, the present status of every badge with a change of status in that span

Apply it to a list whose claim \`change\` is at least \`since\`. If \`since\` is above your \`have\`, or \`change\` is below it, this delta is not enough: download the lists again. Then you lack more than ${MAX_DELTA_CHANGES.toLocaleString("en")} changes, or the service has replaced or lost changes that you have. While the door is not connected, it uses the lists.`,
  security: BY_SERVER,
  parameters: [
    ...credentialParameters(BY_SERVER),
    {
      name: "have",
      in: "query",
      description:
        "The last change that you have: of a response, or the lowest `change` of your lists. Absent or 0: you have none, and the call responds at once.",
      required: false,
      schema: { type: "integer", minimum: 0, maximum: Number.MAX_SAFE_INTEGER },
      example: 0,
    },
  ],
  responses: {
    "200": {
      description: `What has changed; nothing, after ${LIVE_HOLD_MILLISECONDS / 1000} seconds.`,
      headers: commonHeaders(SERVER_ROUTE),
      content: {
        "application/statusdelta+jwt": {
          schema: { type: "string", pattern: "^[\\w-]+\\.[\\w-]+\\.[\\w-]+$" },
          examples: { "a-badge-is-suspended": { summary: "A badge is suspended", value: EXAMPLE_STATUS_DELTA } },
        },
      },
    },
    ...errorResponses(SERVER_ROUTE, [
      "INVALID_CREDENTIALS",
      "UNKNOWN_STATUSLIST",
      "INVALID_CURSOR",
      "RATE_LIMITED",
      "UNAVAILABLE",
    ]),
  },
});

export const listDoors = (): Operation => ({
  operationId: "listDoors",
  tags: ["Overview"],
  summary: "List the doors that have a secret",
  description: `By name, with when each has called last and whether it has the last change of status. At most ${MAX_DOOR_SECRETS.toLocaleString("en")} doors of an application have a secret.`,
  security: BY_SERVER,
  parameters: [...credentialParameters(BY_SERVER), ...pageParameters()],
  responses: {
    "200": {
      description: "A page of doors.",
      headers: { ...commonHeaders(SERVER_ROUTE), "pagination-cursor": PAGINATION_CURSOR },
      content: json(schemaRef("DoorPage"), {
        "A connected door, and a new one": {
          doors: [
            {
              name: "Main entrance",
              createdAt: "2027-01-15T08:00:00.500Z",
              seenAt: "2027-01-15T09:30:12.000Z",
              change: 4711,
              isCurrent: true,
            },
            { name: "North gate", createdAt: "2027-01-15T09:00:00.500Z", isCurrent: false },
          ],
        },
      }),
    },
    ...serverErrors("INVALID_PER_PAGE", "INVALID_CURSOR"),
  },
});
