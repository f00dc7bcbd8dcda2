import * as z from "zod";
import { actor, badgeNumber, described, time } from "./responses.ts";

/** The schema of who did what. */

export const historyPage = z.object({
  history: z
    .array(
      z.object({
        at: described(time, "When.", "2027-01-15T08:00:00.500Z"),
        action: described(z.string(), "What was done.", "badge:revoked"),
        actor,
        badgeId: badgeNumber.optional(),
        userId: described(z.string(), "The user concerned.", "alice").optional(),
        requestId: described(
          z.string(),
          "`X-Request-Id` of the call.",
          "4a5b6c7d-0001-4e2f-8a9b-000000000001",
        ).optional(),
        reason: described(z.string(), "As the caller gave it.", "Left the company").optional(),
        detail: z
          .record(z.string(), z.unknown())
          .meta({ description: "What else there is to know, by action." })
          .optional(),
      }),
    )
    .meta({ description: "Newest first." }),
});
