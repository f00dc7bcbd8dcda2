import { drizzle } from "drizzle-orm/d1";
import { makeConsoleSecret } from "../../../src/shared/credentials.ts";
import type { Role } from "../../../src/shared/roles.ts";
import { consoleSecret } from "../../../src/shared/schema.ts";
import type { TestApplication } from "../../support/application.ts";
import { homeDatabase } from "../../support/home.ts";

/** The headers of somebody who has signed in with a console secret of this role. */
export async function signIn({ id: applicationid }: TestApplication, role: Role): Promise<Record<string, string>> {
  const { row, secret } = await makeConsoleSecret();
  // Of a name of its own: an application may have several people of a role.
  const values = { ...row, applicationId: applicationid, name: `The ${role} ${row.id}`, role, createdAt: 1 };
  await drizzle(homeDatabase()).insert(consoleSecret).values(values);
  return { applicationid, applicationsecret: secret, udid: "console" };
}
