import type { ApplicationId } from "../../shared/identifiers.ts";
import { type Statistics, viewStatistics } from "../../shared/statistics.ts";
import { ApiError } from "../api-error.ts";
import type { Context } from "../context.ts";
import { readCounts } from "../storage/statistics-counts.ts";

/** An application's statistics as of now: the allocator keeps the counts. @throws Unavailable */
export async function readStatistics({ db, now }: Context, applicationId: ApplicationId): Promise<Statistics> {
  const counts = await readCounts(db, applicationId, now());
  if (!counts) throw new ApiError("INVALID_CREDENTIALS");
  const { application, metadata, deliveries } = counts;
  const { withToken, withoutToken, withWrongToken, ...counted } = application;
  const logins = { withToken, withoutToken, withWrongToken };
  return viewStatistics({ ...counted, applicationId, logins }, metadata, deliveries, now());
}
