/** A column of a pasted list of visitors. */
export type GuestColumn = "name" | "user" | "from" | "until" | "host";

/** The names that a header may have, in English and German, in any case. */
const HEADERS: Readonly<Record<GuestColumn, readonly string[]>> = {
  name: ["name", "visitor", "visitor name", "guest", "besucher", "besuchername", "besucherin", "gast"],
  user: ["user", "user id", "userid", "user-id", "benutzer", "benutzer-id", "benutzerkennung", "kennung"],
  from: ["from", "start", "starts", "arrival", "begin", "von", "ab", "beginn", "ankunft"],
  until: ["until", "end", "ends", "to", "departure", "bis", "ende", "abreise"],
  host: ["host", "visits", "contact", "gastgeber", "gastgeberin", "ansprechpartner", "ansprechpartnerin", "besucht"],
};

const COLUMNS = Object.keys(HEADERS).filter((name): name is GuestColumn => Object.hasOwn(HEADERS, name));

/** The names of the columns, for messages. */
export const COLUMN_NAMES = COLUMNS.join(", ");

export const columnOf = (header: string): GuestColumn | undefined =>
  COLUMNS.find((column) => HEADERS[column].includes(header.trim().toLowerCase()));
