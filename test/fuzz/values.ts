import fc, { type Arbitrary } from "fast-check";
import type { Json, Schema } from "../../src/docs-page/openapi/types.ts";

/** Values for one place of a request, as a schema of the document has them. */
export interface Values {
  /** The document allows these. */
  sound: Arbitrary<Json>;
  /** At the edges of what is allowed, or outside: nothing is said of which. */
  odd: Arbitrary<Json>;
}

/** Longest text that is made where the document sets no limit. */
const UNLIMITED_CHARACTERS = 300;

/** Names that objects inherit, and texts that mean something to one interpreter or another. */
const TRAPS = [
  ...["__proto__", "constructor", "toString", "then", "undefined", "null", "NaN", "-0", "0x10", "1e999", "true"],
  ...["' OR 1=1 --", '"; DROP TABLE badge', "../../etc/passwd", "%00", "%2e%2e%2f", "{{7*7}}", "<script>", "$ne", "*"],
  ...[".", "..", "a\u007fb", "line\nbreak", "aGVsbG9=", "AB==", "prototype", "hasOwnProperty", "valueOf", "length"],
  ...["Infinity", "[object Object]", "..\\..", "%252F", "%u0041"],
];

/** Text of any characters, also such as no text should have: NUL, halves of surrogate pairs, marks of direction. */
export const anyText = fc.oneof(
  fc.constantFrom(...TRAPS),
  fc.string({ unit: "binary", maxLength: 30 }),
  fc.array(fc.integer({ min: 0, max: 0xffff }), { maxLength: 10 }).map((units) => String.fromCharCode(...units)),
  { weight: 1, arbitrary: fc.integer({ min: 257, max: 9000 }).map((length) => "x".repeat(length)) },
);

const blank = fc.constantFrom("", " ", "\t", " \t\n", "\u00a0", "\u2003");

const wrongKind: Arbitrary<Json> = fc.oneof(
  fc.constantFrom<Json>(null, 0, -0, 1.5, -1, 2 ** 53, 1e300, true, false, [], {}, [[]], [null], ["text"]),
  fc.constantFrom<Json>({ toString: 1 }, { length: 5 }, { valueOf: null }),
);

/** @param known values that mean something to the service as it is now, by the name of the place */
export function valuesOf(
  schema: Schema,
  schemas: Record<string, Schema>,
  known: (name: string) => readonly string[],
  name = "",
): Values {
  const { $ref, type, anyOf } = schema;
  if ($ref !== undefined) return valuesOf(schemaNamed($ref, schemas), schemas, known, name);
  const [one, none] = anyOf ?? [];
  if (typeof one === "object" && typeof none === "object" && none.type === "null") {
    const { sound, odd } = valuesOf(one, schemas, known, name);
    return { sound: fc.oneof({ weight: 4, arbitrary: sound }, { weight: 1, arbitrary: fc.constant(null) }), odd };
  }
  if (type === "object") return objectsOf(schema, schemas, known);
  if (type === "string") return textsOf(schema, known(name));
  if (type === "integer") return integersOf(schema);
  throw new Error(`no values are made for ${JSON.stringify(schema)}`);
}

export function schemaNamed(reference: string, schemas: Record<string, Schema>): Schema {
  const schema = schemas[reference.replace("#/components/schemas/", "")];
  if (schema === undefined) throw new Error(`the document has no ${reference}`);
  return schema;
}

function objectsOf(schema: Schema, schemas: Record<string, Schema>, known: (name: string) => readonly string[]) {
  const fields = Object.entries(schema.properties ?? {}).map(([name, property]) => {
    if (typeof property === "boolean") throw new Error("a field has a schema");
    return { name, isRequired: schema.required?.includes(name) === true, ...valuesOf(property, schemas, known, name) };
  });
  const requiredKeys = fields.filter(({ isRequired }) => isRequired).map(({ name }) => name);
  const unknown = fc.dictionary(anyText.filter(isNone(fields)), fc.oneof(wrongKind, anyText), { maxKeys: 2 });
  const sound = fc
    .tuple(
      fc.record(Object.fromEntries(fields.map(({ name, sound }) => [name, sound])), { requiredKeys }),
      fc.oneof({ weight: 4, arbitrary: fc.constant({}) }, { weight: 1, arbitrary: unknown }),
    )
    .map(([own, others]): Json => ({ ...others, ...own }));
  // One field is odd, the others are as they may be.
  const oneOdd = fields.map(({ name, odd }) =>
    fc.tuple(sound, fc.option(odd, { nil: undefined })).map(([value, oddValue]) => withField(value, name, oddValue)),
  );
  return { sound, odd: fc.oneof(wrongKind, anyText, ...oneOdd.map((arbitrary) => ({ weight: 4, arbitrary }))) };
}

const isNone = (fields: readonly { name: string }[]) => (text: string) => !fields.some(({ name }) => name === text);

/** @param value undefined leaves the field out */
function withField(object: Json, name: string, value: Json | undefined): Json {
  if (typeof object !== "object" || object === null || Array.isArray(object)) return object;
  const { [name]: _, ...others } = object;
  return value === undefined ? others : { ...others, [name]: value };
}

function textsOf(schema: Schema, known: readonly string[]): Values {
  const { minLength: least = 0, maxLength: most = UNLIMITED_CHARACTERS } = schema;
  const listed = (schema.enum ?? []).filter((value) => typeof value === "string");
  if (listed.length > 0) return textsOf({ type: "string" }, listed);
  const sound =
    known.length > 0 && schema.maxLength === undefined && schema.format === undefined
      ? fc.constantFrom(...known)
      : fc.oneof(...(known.length > 0 ? [fc.constantFrom(...known)] : []), formedTexts(schema, least, most));
  const long = fc.constantFrom(most, most + 1, most + 1000).map((length) => "x".repeat(length));
  const wide = fc.constantFrom(most, most + 1).map((length) => "\u{1f600}".repeat(length));
  // A value that is right but for one character more, less or different.
  const near = fc
    .tuple(sound, fc.nat(), anyText)
    .map(
      ([text, at, junk]) =>
        `${text.slice(0, at % (text.length + 1))}${junk}${text.slice((at % (text.length + 1)) + 1)}`,
    );
  const odd = fc.oneof(
    ...[wrongKind, blank, anyText, long, wide, near],
    near.map((text) => text.toUpperCase()),
  );
  return { sound, odd: schema.format === "date-time" ? fc.oneof(odd, oddTimes) : odd };
}

const MINUTE_MILLISECONDS = 60_000;
const MOST_MINUTES_AHEAD = 364 * 24 * 60;

function formedTexts(schema: Schema, least: number, most: number): Arbitrary<string> {
  if (schema.format === "date-time") return timesAhead;
  if (schema.contentEncoding === "base64")
    return fc.oneof(base64OfBytes(1, 200), base64OfBytes((most / 4) * 3 - 8, (most / 4) * 3 - 2));
  const lengths = { minLength: Math.max(1, least), maxLength: most };
  const texts = fc.oneof(
    fc.string({ unit: "grapheme-ascii", ...lengths, size: "medium" }),
    fc.string({ unit: "binary", ...lengths }),
    fc.constantFrom("x", "\u{1f600}").map((character) => character.repeat(most)),
  );
  const pattern = schema.pattern === undefined ? null : new RegExp(schema.pattern, "u");
  const { not } = schema;
  const excluded = typeof not === "object" ? (not.enum ?? []) : [];
  // The service takes blanks for nothing.
  return texts.filter(
    (text) => text.trim() !== "" && pattern?.test(text) !== false && !excluded.some((value) => value === text),
  );
}

const timeIn = (minutes: number): string => new Date(Date.now() + minutes * MINUTE_MILLISECONDS).toISOString();

/** Within the next 364 days, in the forms of RFC 3339. */
const timesAhead = fc
  .tuple(
    fc.integer({ min: 10, max: MOST_MINUTES_AHEAD }),
    fc.constantFrom<[zone: string, minutes: number]>(["Z", 0], ["+00:00", 0], ["-00:30", -30], ["+13:45", 825]),
    fc.constantFrom(".000", "", ".123456"),
  )
  .map(([minutes, [zone, offset], fraction]) => timeIn(minutes + offset).replace(/\..*/, `${fraction}${zone}`));

/** Ways to write a time that only some readers of ISO 8601 take, or none. */
const EDITS: readonly (readonly [part: string | RegExp, text: string])[] = [
  ...([
    ["Z", ""],
    [/:\d\d\.\d+/, ""],
    ["T", " "],
    ["Z", "z"],
  ] as const),
  ...([
    [/-\d\dT/, "-31T"],
    [/T\d\d/, "T24"],
    ["Z", "+24:00"],
    ["Z", "000000000000000000Z"],
  ] as const),
];

/** Times that are over or too far ahead, and times that are written oddly. */
const oddTimes = fc
  .tuple(
    fc.constantFrom(-10 * MOST_MINUTES_AHEAD, -60, -1, 0, MOST_MINUTES_AHEAD, 366 * 24 * 60, 5000 * MOST_MINUTES_AHEAD),
    fc.subarray([...EDITS], { maxLength: 2 }),
  )
  .map(([minutes, edits]) => edits.reduce((text, [part, other]) => text.replace(part, other), timeIn(minutes)));

const base64OfBytes = (minLength: number, maxLength: number): Arbitrary<string> =>
  fc.uint8Array({ minLength, maxLength, size: "max" }).map((bytes) => btoa(String.fromCharCode(...bytes)));

function integersOf({ minimum = 0 }: Schema): Values {
  return {
    sound: fc.oneof(
      fc.integer({ min: minimum, max: minimum + 20 }),
      fc.constantFrom(100, 999, 1000, 1001, 2 ** 31, 2 ** 53),
    ),
    odd: fc.oneof(
      fc.constantFrom<Json>(minimum, minimum - 1, -minimum, 1.5, "1e3", "0x10", "+5", "5 ", "０", "", "0".repeat(300)),
      fc.constantFrom<Json>("9".repeat(400), `${"0".repeat(50)}7`, "NaN", "Infinity", "null", "5,6", "[5]"),
      anyText,
    ),
  };
}
