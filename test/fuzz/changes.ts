import { z } from "zod";
import type { Exchange } from "../support/documented.ts";

/** Rows of tables, by name. */
type Stored = Record<string, unknown[]>;

const linesOf = (stored: Stored): Set<string> =>
  new Set(Object.entries(stored).flatMap(([table, rows]) => rows.map((row) => `${table} ${JSON.stringify(row)}`)));

/**
 * Changes of storage that no granted request of a batch explains. A granted request that changes something names a badge
 * number, a user or an event, in its path or its response, and every row that it writes has that, or comes with one that does:
 * the event of a claim names the number that it replaced, and an erased user's badges get another user ID. Only the
 * application's head and its allocator's log and erasures name nobody.
 */
export function unexplainedChanges(before: Stored, after: Stored, batch: readonly Exchange[]): string[] {
  const granted = grantedNames(batch);
  const [old, fresh] = [linesOf(before), linesOf(after)];
  const changes = [...[...old].filter((row) => !fresh.has(row)), ...[...fresh].filter((row) => !old.has(row))];
  const isNamed = (row: string, names = granted) => namesIn(row).some((name) => names.has(name));
  const tellingMore = changes.filter((row) => /^(webhook_event|badge) /.test(row) && isNamed(row));
  const explained = new Set([...granted, ...tellingMore.flatMap(badgeNumbersIn)]);
  return changes.filter((row) => {
    return /^(application_head |(entry|erasure) of )/.test(row) ? granted.size === 0 : !isNamed(row, explained);
  });
}

const text = z.string();
const named = z.object({ badgeId: text, id: text, userId: text, revoked: z.array(text) }).partial();
const namedMany = named.extend({ invitations: z.array(named).optional() });

/** Badge numbers, users and events of the requests that were granted something. Reading changes nothing. */
function grantedNames(batch: readonly Exchange[]): Set<unknown> {
  const granted = batch.filter(({ method, status }) => status < 300 && !["GET", "HEAD", "OPTIONS"].includes(method));
  return new Set(
    granted.flatMap(({ path, body }) => {
      const { invitations = [], ...own } = namedMany.parse(JSON.parse(body));
      const [, user] = /^\/v1\/users\/([^/]+)\//.exec(path) ?? [];
      return [own, ...invitations]
        .flatMap((each) => Object.values(each).flat())
        .concat(user === undefined ? [] : decodeURIComponent(user));
    }),
  );
}

/** Whole values of the row, such as a user, and the badge numbers and events in them. */
const namesIn = (row: string): unknown[] =>
  Object.values<unknown>(JSON.parse(row.slice(row.indexOf("{")))).concat(
    badgeNumbersIn(row),
    row.match(/\bevt_\w+/g) ?? [],
  );

/** The ranges of tests have numbers of ten digits. */
const badgeNumbersIn = (row: string): string[] => row.match(/\b\d{10}\b/g) ?? [];
