/**
 * How long a call takes a phone in some place, modelled from counted round trips and assumed distances. What the Worker and D1
 * take for themselves is left out: some milliseconds, which are the same everywhere.
 */

/** The trips that a call makes one after the other; test/badges/near-trips.test.ts counts them. */
export interface Call {
  name: string;
  /** When every query went to the primary, and the application's object was on one of the two sides. */
  before: number;
  /** Beside a copy of D1: to that copy, and to the primary or the object, which is beside it. */
  nearCopy: { copy: number; far: number };
  /** Where the primary is nearer than any copy. */
  nearPrimary: number;
}

export const CALLS: readonly Call[] = [
  { name: "login, with a bookmark", before: 1, nearCopy: { copy: 1, far: 0 }, nearPrimary: 1 },
  { name: "signature, with a bookmark", before: 1, nearCopy: { copy: 1, far: 0 }, nearPrimary: 1 },
  { name: "login, without", before: 1, nearCopy: { copy: 1, far: 1 }, nearPrimary: 1 },
  { name: "signature, without", before: 1, nearCopy: { copy: 0, far: 1 }, nearPrimary: 1 },
  { name: "new badge", before: 2, nearCopy: { copy: 1, far: 1 }, nearPrimary: 2 },
  { name: "claim", before: 2, nearCopy: { copy: 1, far: 1 }, nearPrimary: 2 },
  { name: "invitation", before: 1, nearCopy: { copy: 0, far: 1 }, nearPrimary: 1 },
  { name: "key set, status list, cached", before: 1, nearCopy: { copy: 0, far: 0 }, nearPrimary: 0 },
];

/** From a phone to the edge and back. */
const EDGE_MILLISECONDS = 5;

/** From the edge there and back, in milliseconds: assumed. D1 has copies in North America, Europe, Asia-Pacific and Oceania. */
interface Place {
  name: string;
  primary: number;
  /** Null: the primary is nearer. */
  copy: number | null;
}

/** Of applications whose home is in western Europe. */
const PLACES: readonly Place[] = [
  { name: "Paris", primary: 10, copy: null },
  { name: "New York", primary: 85, copy: 10 },
  { name: "Singapore", primary: 160, copy: 10 },
  { name: "Sydney", primary: 270, copy: 10 },
  { name: "Dubai", primary: 120, copy: 80 },
  { name: "São Paulo", primary: 200, copy: 110 },
];

const millisecondsBefore = ({ before }: Call, { primary }: Place): number => EDGE_MILLISECONDS + before * primary;

function millisecondsNow({ nearCopy, nearPrimary }: Call, { primary, copy }: Place): number {
  if (copy === null) return EDGE_MILLISECONDS + nearPrimary * primary;
  return EDGE_MILLISECONDS + nearCopy.copy * copy + nearCopy.far * primary;
}

/** A table in Markdown: a row for each call, a column for each place, before → now. */
export function latencyTable(): string {
  const row = (cells: readonly string[]) => `| ${cells.join(" | ")} |\n`;
  const rows = CALLS.map((call) =>
    row([call.name, ...PLACES.map((place) => `${millisecondsBefore(call, place)} → ${millisecondsNow(call, place)}`)]),
  );
  return [row(["ms", ...PLACES.map(({ name }) => name)]), row(["---", ...PLACES.map(() => "---:")]), ...rows].join("");
}
