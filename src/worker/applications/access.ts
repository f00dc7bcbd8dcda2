import * as z from "zod";
import type { accessPage } from "../../shared/application-responses.ts";
import type { ApplicationId } from "../../shared/identifiers.ts";
import { isoTime } from "../../shared/time.ts";
import type { Context } from "../context.ts";
import { cursorCodec } from "../cursor.ts";
import { listConsolePeople } from "../storage/console-secrets.ts";

/** Cursors have a page's last name. */
export const ACCESS_CURSOR = cursorCodec("access", z.string());

type AccessView = z.infer<typeof accessPage>["people"][number];

/** @returns a page of who has a console secret, and the name after which the next page starts */
export async function pageAccess(
  { db }: Context,
  applicationId: ApplicationId,
  page: { after: string | null; perPage: number },
): Promise<{ people: AccessView[]; next: string | null }> {
  const { items, last } = await listConsolePeople(db, applicationId, page);
  const people = items.map(({ name, role, createdAt }) => ({ name, role, createdAt: isoTime(createdAt) }));
  return { people, next: last?.name ?? null };
}
