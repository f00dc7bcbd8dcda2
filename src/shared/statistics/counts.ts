import * as z from "zod";
import { parseMetadata } from "../badge-life/view.ts";
import { STATISTICS_VALUES_COUNTED } from "../limits.ts";
import type { MetadataField } from "../metadata-fields.ts";
import { EVENT_STATES } from "../schema.ts";

const count = z.int().nonnegative();
const countsByName = z.record(z.string(), count);

/** How many badges have which value of a metadata field, most frequent first; null: not sent. */
const valueCounts = z.array(z.object({ value: z.string().nullable(), badges: count }));

/** An application's rows, counted chunk by chunk. D1 keeps it as JSON, finished or not. */
export const countsSchema = z.object({
  /** When counting began, in milliseconds: all states are those of this time. */
  startedAt: z.int(),
  /** The kind of rows that is being counted, and the last of them so far; null: none of this kind. */
  counting: z.enum(["badges", "invitations", "events", "nothing"]),
  after: z.union([z.string(), z.int()]).nullable(),
  numbers: z.object({ used: count, issued: count, reserved: count, retired: count }),
  badgesByState: countsByName,
  /** By number of days since 1970-01-01. */
  badgesByDay: countsByName,
  fields: z.object({ deviceModel: valueCounts, os: valueCounts, osVersion: valueCounts, sdkVersion: valueCounts }),
  invitations: countsByName,
  /** Numbers of ended invitations that cannot be issued yet. */
  resting: count,
  deliveries: z.array(z.object({ state: z.enum(EVENT_STATES), outcome: z.string().nullable(), events: count })),
});

export type Counts = z.infer<typeof countsSchema>;

/** What a chunk adds, and the last row of it; null: there are no more rows of its kind. */
export interface Chunk {
  last: string | number | null;
  numbers?: Counts["numbers"];
  badgesByState?: Record<string, number>;
  badgesByDay?: Record<string, number>;
  /** JSON text of badges that have not been replaced, and how many have it. */
  metadata?: { metadata: string | null; badges: number }[];
  invitations?: Record<string, number>;
  resting?: number;
  deliveries?: Counts["deliveries"];
}

export const noCounts = (startedAt: number): Counts => ({
  startedAt,
  counting: "badges",
  after: null,
  numbers: { used: 0, issued: 0, reserved: 0, retired: 0 },
  badgesByState: {},
  badgesByDay: {},
  fields: { deviceModel: [], os: [], osVersion: [], sdkVersion: [] },
  invitations: {},
  resting: 0,
  deliveries: [],
});

const NEXT_KIND = { badges: "invitations", invitations: "events", events: "nothing", nothing: "nothing" } as const;

export function addChunk(counts: Counts, chunk: Chunk): Counts {
  const { used, issued, reserved, retired } = chunk.numbers ?? { used: 0, issued: 0, reserved: 0, retired: 0 };
  const { numbers, counting, fields } = counts;
  return {
    ...counts,
    counting: chunk.last === null ? NEXT_KIND[counting] : counting,
    after: chunk.last,
    numbers: {
      used: numbers.used + used,
      issued: numbers.issued + issued,
      reserved: numbers.reserved + reserved,
      retired: numbers.retired + retired,
    },
    badgesByState: sums(counts.badgesByState, chunk.badgesByState),
    badgesByDay: sums(counts.badgesByDay, chunk.badgesByDay),
    fields: chunk.metadata ? addMetadata(fields, chunk.metadata) : fields,
    invitations: sums(counts.invitations, chunk.invitations),
    resting: counts.resting + (chunk.resting ?? 0),
    deliveries: addDeliveries(counts.deliveries, chunk.deliveries ?? []),
  };
}

function sums(one: Record<string, number>, other: Record<string, number> = {}): Record<string, number> {
  const total = { ...one };
  for (const [name, added] of Object.entries(other)) total[name] = (total[name] ?? 0) + added;
  return total;
}

function addMetadata(fields: Counts["fields"], rows: NonNullable<Chunk["metadata"]>): Counts["fields"] {
  const parsed = rows.map(({ metadata, badges }) => ({ metadata: parseMetadata(metadata), badges }));
  const add = (field: MetadataField) => {
    const badgesOf = new Map(fields[field].map(({ value, badges }) => [value, badges]));
    for (const { metadata, badges } of parsed) {
      const value = metadata?.[field] ?? null;
      badgesOf.set(value, (badgesOf.get(value) ?? 0) + badges);
    }
    return [...badgesOf]
      .map(([value, badges]) => ({ value, badges }))
      .sort((one, other) => other.badges - one.badges || compare(one.value, other.value))
      .slice(0, STATISTICS_VALUES_COUNTED);
  };
  const [deviceModel, os, osVersion, sdkVersion] = [add("deviceModel"), add("os"), add("osVersion"), add("sdkVersion")];
  return { deviceModel, os, osVersion, sdkVersion };
}

/** Values that were not sent come first. */
function compare(one: string | null, other: string | null): number {
  if (one === null || other === null) return Number(one !== null) - Number(other !== null);
  return one < other ? -1 : Number(one > other);
}

function addDeliveries(one: Counts["deliveries"], other: Counts["deliveries"]): Counts["deliveries"] {
  const total = one.map((delivery) => ({ ...delivery }));
  for (const added of other) {
    const same = total.find(({ state, outcome }) => state === added.state && outcome === added.outcome);
    if (same) same.events += added.events;
    else total.push({ ...added });
  }
  return total.sort((first, second) => second.events - first.events);
}
