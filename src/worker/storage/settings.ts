import * as z from "zod";
import { type ApplicationId, applicationId } from "../../shared/identifiers.ts";
import { requiresSecret } from "../../shared/required-secret.ts";
import { application } from "../../shared/schema.ts";
import { selectOf } from "./columns.ts";
import type { Database } from "./database.ts";
import { flag } from "./rows.ts";

const settingsRow = z.object({
  name: z.string(),
  firstNumber: z.number(),
  lastNumber: z.number(),
  requireSecret: flag,
  requireProof: flag,
  statusList: flag,
  reuseAfterSeconds: z.number(),
  webhookUrl: z.string().nullable(),
  invitationLink: z.string().nullable(),
  userIssuer: z.string().nullable(),
});

/** Of an issuer, which requires the secret for invitations, callers learn nothing more. */
const settings = z.object({ applicationId, ...settingsRow.shape }).transform(({ userIssuer, ...shown }) => ({
  ...shown,
  requireSecret: requiresSecret({ requireSecret: shown.requireSecret, userIssuer }),
}));

const SELECT_SETTINGS = `
  SELECT id AS applicationId, ${selectOf(application, "application", settingsRow)} FROM application WHERE id = ?1`;

/** An application's settings that its own server may see (contract section 19). One round trip. */
export async function findSettings(db: Database, id: ApplicationId): Promise<z.infer<typeof settings> | undefined> {
  const [row] = await db.rows(settings, SELECT_SETTINGS, [id]);
  return row;
}
