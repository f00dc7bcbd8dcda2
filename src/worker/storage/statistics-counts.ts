import type { ApplicationId } from "../../shared/identifiers.ts";
import {
  countDeliveries,
  countMetadata,
  eventsCounted,
  sampledAfter,
  selectCounted,
  selectDeliveries,
  selectMetadata,
} from "../../shared/statistics.ts";
import type { Database } from "./database.ts";
import { orm, type Placeholders, statement } from "./statement.ts";

const SELECT_COUNTED = statement((p: Placeholders<{ id: ApplicationId; now: number }>) =>
  selectCounted(orm, p.id, p.now),
);
const SELECT_METADATA = statement((p: Placeholders<{ id: ApplicationId; after: number }>) =>
  selectMetadata(orm, p.id, p.after),
);
const SELECT_DELIVERIES = statement((p: Placeholders<{ id: ApplicationId; limit: number }>) =>
  selectDeliveries(orm, p.id, p.limit),
);

/**
 * The data of an application's statistics. Two round trips, which read at most 60,000 rows. @param now milliseconds
 */
export async function readCounts(db: Database, id: ApplicationId, now: number) {
  const [application] = await db.all(SELECT_COUNTED, { id, now });
  if (!application) return undefined;
  const after = sampledAfter(application.lastOrdinal);
  const limit = eventsCounted(application.coolingDown);
  const [metadata, deliveries] = await db.run((d1) =>
    d1.batch([SELECT_METADATA.bind(d1, { id, after }), SELECT_DELIVERIES.bind(d1, { id, limit })]),
  );
  return {
    application,
    metadata: countMetadata(SELECT_METADATA.rows(metadata)),
    deliveries: countDeliveries(SELECT_DELIVERIES.rows(deliveries)),
  };
}
