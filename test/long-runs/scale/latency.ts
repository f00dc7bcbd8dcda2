/**
 * Consecutive round trips of a call. The time of the Worker and of D1 is the same everywhere, so it is left out.
 * `before`: if every query goes to the primary. `nearCopy`: with a replica beside the phone, as test/badges/near-trips.test.ts
 * counts them; `far` trips go to the primary or the object beside it. `nearPrimary`: if the primary is nearer than any replica.
 */
export const CALLS = [
  { name: "login, with a bookmark", before: 1, nearCopy: { copy: 1, far: 0 }, nearPrimary: 1 },
  { name: "signature, with a bookmark", before: 1, nearCopy: { copy: 1, far: 0 }, nearPrimary: 1 },
  { name: "login, no bookmark", before: 1, nearCopy: { copy: 1, far: 1 }, nearPrimary: 1 },
  { name: "signature, no bookmark", before: 1, nearCopy: { copy: 0, far: 1 }, nearPrimary: 1 },
  { name: "new badge", before: 2, nearCopy: { copy: 1, far: 1 }, nearPrimary: 2 },
  { name: "claim", before: 2, nearCopy: { copy: 1, far: 1 }, nearPrimary: 2 },
  { name: "invitation", before: 1, nearCopy: { copy: 0, far: 1 }, nearPrimary: 1 },
  { name: "key set, status list, cached", before: 1, nearCopy: { copy: 0, far: 0 }, nearPrimary: 0 },
];

/** Phone to edge and back. */
const EDGE_MILLISECONDS = 5;

/**
 * Assumed milliseconds from the edge to the primary and to the nearest replica, and back, for a home in western Europe. D1 has
 * replicas in North America, Europe, Asia-Pacific and Oceania. Without `copy`, the primary is nearer.
 */
const PLACES: { name: string; primary: number; copy?: number }[] = [
  { name: "Paris", primary: 10 },
  { name: "New York", primary: 85, copy: 10 },
  { name: "Singapore", primary: 160, copy: 10 },
  { name: "Sydney", primary: 270, copy: 10 },
  { name: "Dubai", primary: 120, copy: 80 },
  { name: "São Paulo", primary: 200, copy: 110 },
];

/** A table in Markdown: a row for each call, a column for each place, before → now. */
export function latencyTable(): string {
  const head = `| ms | ${PLACES.map(({ name }) => name).join(" | ")} |\n| --- |${" ---: |".repeat(PLACES.length)}\n`;
  const rows = CALLS.map(({ name, before, nearCopy, nearPrimary }) => {
    const cells = PLACES.map(({ primary, copy }) => {
      const now = copy === undefined ? nearPrimary * primary : nearCopy.copy * copy + nearCopy.far * primary;
      return `${EDGE_MILLISECONDS + before * primary} → ${EDGE_MILLISECONDS + now}`;
    });
    return `| ${name} | ${cells.join(" | ")} |\n`;
  });
  return head + rows.join("");
}
