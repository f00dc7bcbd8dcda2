import { eq } from "drizzle-orm";
import type { ApplicationId } from "../../shared/identifiers.ts";
import { requiresSecret } from "../../shared/required-secret.ts";
import { application } from "../../shared/schema.ts";
import type { Database } from "./database.ts";
import { orm, type Placeholders, statement } from "./statement.ts";

const SELECT_SETTINGS = statement((p: Placeholders<{ id: ApplicationId }>) =>
  orm
    .select({
      applicationId: application.id,
      name: application.name,
      firstNumber: application.firstNumber,
      lastNumber: application.lastNumber,
      requireSecret: application.requireSecret,
      requireProof: application.requireProof,
      statusList: application.statusList,
      signatureLifetimeSeconds: application.signatureLifetimeSeconds,
      reuseAfterSeconds: application.reuseAfterSeconds,
      webhookUrl: application.webhookUrl,
      invitationLink: application.invitationLink,
      userIssuer: application.userIssuer,
    })
    .from(application)
    .where(eq(application.id, p.id)),
);

/** An application's settings that its own server may see (contract section 19). One round trip. */
export async function findSettings(db: Database, id: ApplicationId) {
  const [settings] = await db.all(SELECT_SETTINGS, { id });
  if (!settings) return undefined;
  // Callers do not see the issuer, only that invitations require the secret.
  const { userIssuer, ...shown } = settings;
  return { ...shown, requireSecret: requiresSecret({ requireSecret: shown.requireSecret, userIssuer }) };
}
