import type { ApplicationId } from "../../shared/identifiers.ts";
import {
  type DeliveryCount,
  type MetadataCount,
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
const SELECT_DELIVERIES = statement((p: Placeholders<{ id: ApplicationId }>) => selectDeliveries(orm, p.id));

/** What an application's statistics are made of. Two round trips. @param now milliseconds */
export async function readCounts(db: Database, id: ApplicationId, now: number) {
  const [application] = await db.all(SELECT_COUNTED, { id, now });
  if (!application) return undefined;
  const after = sampledAfter(application.lastPosition);
  const [metadata, deliveries] = await db.run((d1) =>
    d1.batch([SELECT_METADATA.bind(d1, { id, after }), SELECT_DELIVERIES.bind(d1, { id })]),
  );
  const rows: { metadata: MetadataCount[]; deliveries: DeliveryCount[] } = {
    metadata: SELECT_METADATA.rows(metadata),
    deliveries: SELECT_DELIVERIES.rows(deliveries),
  };
  return { application, ...rows };
}
