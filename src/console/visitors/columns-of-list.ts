/** A column of a list of visitors that was pasted. */
export type GuestColumn = "name" | "user" | "from" | "until" | "host";

/** What a header may say, in English and German, without case. The first one stands for the column in messages. */
const HEADERS: Readonly<Record<GuestColumn, readonly string[]>> = {
  name: ["name", "visitor", "visitor name", "guest", "besucher", "besuchername", "besucherin", "gast"],
  user: ["user", "user id", "userid", "user-id", "benutzer", "benutzer-id", "benutzerkennung", "kennung"],
  from: ["from", "start", "starts", "arrival", "begin", "von", "ab", "beginn", "ankunft"],
  until: ["until", "end", "ends", "to", "departure", "bis", "ende", "abreise"],
  host: ["host", "visits", "contact", "gastgeber", "gastgeberin", "ansprechpartner", "ansprechpartnerin", "besucht"],
};

const COLUMNS = Object.keys(HEADERS).filter((name): name is GuestColumn => Object.hasOwn(HEADERS, name));

/** How the columns are named to somebody who has to write them. */
export const COLUMN_NAMES = COLUMNS.join(", ");

export const columnOf = (header: string): GuestColumn | undefined =>
  COLUMNS.find((column) => HEADERS[column].includes(header.trim().toLowerCase()));
