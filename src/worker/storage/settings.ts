import { eq } from "drizzle-orm";
import type { ApplicationId } from "../../shared/identifiers.ts";
import { application } from "../../shared/schema.ts";
import type { Database } from "./database.ts";

/** An application's settings that its own server may see (contract section 19). One round trip. */
export function findSettings(db: Database, applicationId: ApplicationId) {
  return db.run((orm) =>
    orm
      .select({
        applicationId: application.id,
        name: application.name,
        firstNumber: application.firstNumber,
        lastNumber: application.lastNumber,
        requireSecret: application.requireSecret,
        requireProof: application.requireProof,
        statusList: application.statusList,
        reuseAfterSeconds: application.reuseAfterSeconds,
        webhookUrl: application.webhookUrl,
        invitationLink: application.invitationLink,
      })
      .from(application)
      .where(eq(application.id, applicationId))
      .get(),
  );
}
