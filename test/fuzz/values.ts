import type { Schema } from "../../src/docs-page/openapi/types.ts";
import { MAX_BYTES } from "../../src/shared/requests.ts";
import { fits, schemas } from "../support/documented.ts";
import { fc } from "../support/random.ts";

/** What the generator knows of the service's state. */
export interface Known {
  /** Values that mean something, by name of a parameter or of a field. */
  values: Readonly<Record<string, readonly string[]>>;
  /** Texts with which the call is granted, by name of the header. */
  headers: Readonly<Record<string, readonly string[]>>;
}

/** Names that objects inherit, and texts that mean something to one interpreter or another. */
const TRAPS = [
  ...["__proto__", "constructor", "toString", "then", "undefined", "null", "NaN", "-0", "0x10", "1e999", "true", "*"],
  ...["' OR 1=1 --", '"; DROP TABLE badge', "../../etc/passwd", "%00", "%2e%2e%2f", "{{7*7}}", "<script>", "$ne"],
  ...[".", "..", "line\nbreak", "AB==", "%252F", "2030-02-30T12:00:00Z", "2030-01-01", "\u00a0", " \t\n", ""],
];

/** Text of any characters, also such as no text should have: NUL, halves of surrogate pairs, marks of direction. */
export const anyText = fc.oneof(
  fc.constantFrom(...TRAPS),
  fc.string({ unit: "binary", maxLength: 30 }),
  fc.array(fc.integer({ min: 0, max: 0xffff }), { maxLength: 10 }).map((units) => String.fromCharCode(...units)),
  fc.integer({ min: 100, max: 9000 }).map((length) => "x".repeat(length)),
);

/** A value of any kind: nothing is said of whether it is allowed where it is put. */
export const anyValue = fc.oneof(
  fc.constantFrom<unknown>(null, 0, -0, 1.5, -1, 2 ** 53, true, [], {}, ["text"], { toString: 1 }, { valueOf: null }),
  fc.jsonValue({ maxDepth: 2 }),
  anyText,
);

/** Whether texts have no more bytes together than the schema allows (`x-maxBytes`), which JSON Schema cannot say. */
function isWithinBytes({ [MAX_BYTES]: most }: Schema, values: readonly unknown[]): boolean {
  const texts = values.filter((value) => typeof value === "string");
  return typeof most !== "number" || new TextEncoder().encode(texts.join("")).byteLength <= most;
}

/** Values that the document allows. */
export function soundValue(schema: Schema, known: Known, name = ""): fc.Arbitrary<unknown> {
  const { $ref, type, anyOf: [one] = [], properties = {}, required = [], items, minItems = 0 } = schema;
  if ($ref) return soundValue(schemas[$ref.replace("#/components/schemas/", "")] ?? {}, known, name);
  // Or null.
  if (typeof one === "object") return fc.option(soundValue(one, known, name));
  if (type === "object") {
    const fields = Object.entries(properties).flatMap(([field, property]) =>
      typeof property === "object" ? [[field, soundValue(property, known, field)]] : [],
    );
    return fc
      .record<Record<string, unknown>>(Object.fromEntries(fields), { requiredKeys: required })
      .filter((whole) => isWithinBytes(schema, Object.values(whole)));
  }
  if (type === "array" && typeof items === "object" && !Array.isArray(items)) {
    return fc.array(soundValue(items, known), { minLength: minItems, maxLength: 5 });
  }
  if (type === "integer") return fc.constantFrom(...[0, 1, 7, 1001, 2 ** 31].filter((value) => fits(schema, value)));
  const given = schema.enum ?? (schema.const === undefined ? known.values[name] : [schema.const]);
  if (given && given.length > 0) return fc.constantFrom(...given);
  // The service takes blanks for nothing.
  return soundTexts(schema, name).filter(
    (text) => text.trim() !== "" && fits(schema, text) && isWithinBytes(schema, [text]),
  );
}

function soundTexts({ format, contentEncoding, maxLength = 300 }: Schema, name: string): fc.Arbitrary<string> {
  // A start is before the end.
  if (format === "date-time") return /startsAt$/i.test(name) ? timesAhead(1, 180) : timesAhead(182, 363);
  if (contentEncoding === "base64") {
    // The longest texts without padding would have more bytes than are allowed.
    const bytes = fc.uint8Array({ minLength: 1, maxLength: (maxLength / 4) * 3 - 2, size: "max" });
    return bytes.map((each) => btoa(String.fromCharCode(...each)));
  }
  return fc.oneof(
    fc.string({ unit: "grapheme-ascii", minLength: 1, maxLength, size: "medium" }),
    fc.string({ unit: "binary", minLength: 1, maxLength }),
    fc.constantFrom("x", "\u{1f600}").map((character) => character.repeat(maxLength)),
  );
}

/** Times so many days ahead, in the forms of RFC 3339. */
const timesAhead = (min: number, max: number): fc.Arbitrary<string> =>
  fc
    .tuple(fc.integer({ min, max }), fc.constantFrom(".000", "", ".123456"), fc.constantFrom("Z", "-00:30", "+13:45"))
    .map(([days, fraction, zone]) => {
      return new Date(Date.now() + days * 24 * 3600 * 1000).toISOString().replace(/\..*/, `${fraction}${zone}`);
    });
