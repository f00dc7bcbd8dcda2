import { type Schema as JsonSchema, Validator } from "@cfworker/json-schema";
import type { OpenApiDocument, Schema } from "../../src/docs-page/openapi/types.ts";
import { MAX_BYTES } from "../../src/shared/requests.ts";
import { fc } from "../support/random.ts";

/** Values for one place of a request. */
export interface Values<Value = unknown> {
  /** The document allows these. */
  sound: fc.Arbitrary<Value>;
  /** At the edges of what is allowed, or outside: nothing is said of which. */
  odd: fc.Arbitrary<Value>;
}

/** What the generator and the judge know of the document and of the service's state. */
export interface Known {
  schemas: OpenApiDocument["components"]["schemas"];
  /** Values that mean something, by name of a parameter or of a field. */
  values: Readonly<Record<string, readonly string[]>>;
  /** Headers that go together. The first are those of an application that may do everything. */
  credentials: readonly Readonly<Record<string, string>>[];
  udids: readonly string[];
  /** By application ID. */
  secrets: ReadonlyMap<string, string>;
  /** `Authorization` headers that are right, for a call that needs one. */
  tokens?: readonly string[];
}

/** Longest text that is made where the document sets no limit. */
const UNLIMITED_CHARACTERS = 300;

/** Names that objects inherit, and texts that mean something to one interpreter or another. */
const TRAPS = [
  ...["__proto__", "constructor", "toString", "then", "undefined", "null", "NaN", "-0", "0x10", "1e999", "true", "*"],
  ...["' OR 1=1 --", '"; DROP TABLE badge', "../../etc/passwd", "%00", "%2e%2e%2f", "{{7*7}}", "<script>", "$ne"],
  ...[".", "..", "..\\..", "line\nbreak", "aGVsbG9=", "AB==", "length", "[object Object]", "%252F", "%u0041"],
];

/** Text of any characters, also such as no text should have: NUL, halves of surrogate pairs, marks of direction. */
export const anyText = fc.oneof(
  fc.constantFrom(...TRAPS),
  fc.string({ unit: "binary", maxLength: 30 }),
  fc.array(fc.integer({ min: 0, max: 0xffff }), { maxLength: 10 }).map((units) => String.fromCharCode(...units)),
  fc.integer({ min: 257, max: 9000 }).map((length) => "x".repeat(length)),
);

/** One of them breaks a text that is otherwise right. */
const hostileCharacter = fc.constantFrom(..."\0\n\u001f\u007f\u0085\u202e\ufeff\ud800");

const wrongKind = fc.oneof(
  fc.constantFrom<unknown>(null, 0, -0, 1.5, -1, 2 ** 53, true, [], {}, ["text"], { toString: 1 }, { valueOf: null }),
  fc.jsonValue({ maxDepth: 2 }),
);

const validators = new Map<Schema, Validator>();

export function validatorOf(schema: Schema, schemas: Known["schemas"]): Validator {
  const whole = (): JsonSchema => JSON.parse(JSON.stringify({ ...schema, components: { schemas } }));
  const validator = validators.get(schema) ?? new Validator(whole(), "2020-12");
  validators.set(schema, validator);
  return validator;
}

export function valuesOf(schema: Schema, known: Known, name = ""): Values {
  const { $ref, type, anyOf: [one] = [] } = schema;
  if ($ref) return valuesOf(known.schemas[$ref.replace("#/components/schemas/", "")] ?? {}, known, name);
  // Or null.
  if (typeof one === "object") {
    const { sound, odd } = valuesOf(one, known, name);
    return { sound: fc.option(sound), odd };
  }
  if (type === "object") return objectsOf(schema, known);
  if (type === "string") return textsOf(schema, known, name);
  if (type === "integer") return integersOf(schema);
  if (type === "array") return arraysOf(schema, known);
  throw new Error(`no values are made for ${JSON.stringify(schema)}`);
}

const encoder = new TextEncoder();

/** Whether texts have no more bytes together than the schema allows (`x-maxBytes`), which JSON Schema cannot say. */
function isWithinBytes(schema: Schema, values: readonly unknown[]): boolean {
  const most = schema[MAX_BYTES];
  if (typeof most !== "number") return true;
  const texts = values.filter((value) => typeof value === "string");
  return texts.reduce((sum, text) => sum + encoder.encode(text).byteLength, 0) <= most;
}

function objectsOf(schema: Schema, known: Known): Values {
  const { properties = {}, required = [] } = schema;
  const fields = Object.entries(properties).flatMap(([name, property]) =>
    typeof property === "object" ? { name, ...valuesOf(property, known, name) } : [],
  );
  const unknownName = anyText.filter((text) => !Object.hasOwn(properties, text));
  const unknown = fc.dictionary(unknownName, fc.oneof(wrongKind, anyText), { maxKeys: 2 });
  const own = fc.record(Object.fromEntries(fields.map(({ name, sound }) => [name, sound])), { requiredKeys: required });
  const others = fc.oneof({ weight: 4, arbitrary: fc.constant({}) }, { weight: 1, arbitrary: unknown });
  const sound = fc
    .tuple(others, own)
    .map((both) => Object.assign({}, ...both))
    .filter((whole) =>
      isWithinBytes(
        schema,
        fields.map(({ name }) => whole[name]),
      ),
    );
  // One field is odd or left out, the others are as they may be.
  const oneOdd = fields.map(({ name, odd }) => ({
    weight: 4,
    arbitrary: fc.tuple(sound, fc.option(odd, { nil: undefined })).map(([whole, one]) => ({ ...whole, [name]: one })),
  }));
  return { sound, odd: fc.oneof(wrongKind, anyText, ...oneOdd) };
}

function arraysOf({ items, minItems = 0, maxItems = 10 }: Schema, known: Known): Values {
  if (typeof items !== "object" || Array.isArray(items)) throw new Error("no values are made for an array of anything");
  const { sound, odd } = valuesOf(items, known);
  const few = fc.array(sound, { minLength: minItems, maxLength: Math.min(maxItems, 5) });
  // One element is odd; or there are none, one too many, or no array at all.
  const oneOdd = fc
    .tuple(few, fc.nat(), odd)
    .map(([whole, at, one]) => whole.toSpliced(at % (whole.length + 1), 1, one));
  const tooMany = sound.map((one) => Array.from({ length: maxItems + 1 }, () => one));
  return { sound: few, odd: fc.oneof(wrongKind, anyText, fc.constant([]), oneOdd, tooMany) };
}

function textsOf(schema: Schema, { schemas, values }: Known, name: string): Values {
  const { maxLength: most = UNLIMITED_CHARACTERS, format, not } = schema;
  const known = (schema.enum ?? (schema.const === undefined ? values[name] : [schema.const]) ?? []).map(String);
  const validator = validatorOf(schema, schemas);
  // The service takes blanks for nothing.
  const formed = formedTexts(schema, most, name).filter(
    (text) => text.trim() !== "" && validator.validate(text).valid && isWithinBytes(schema, [text]),
  );
  const meant = known.length > 0 ? fc.constantFrom(...known) : formed;
  const sound = schema.maxLength === undefined && format === undefined ? meant : fc.oneof(formed, meant);
  const long = fc
    .tuple(fc.constantFrom("x", "\u{1f600}"), fc.constantFrom(most, most + 1, most + 1000))
    .map(([character, length]) => character.repeat(length));
  // A value that is right but for one character more, less or different.
  const near = fc.tuple(sound, fc.nat(), fc.oneof(anyText, hostileCharacter)).map(([text, place, junk]) => {
    const at = place % (text.length + 1);
    return `${text.slice(0, at)}${junk}${text.slice(at + 1)}`;
  });
  const blank = fc.constantFrom("", " ", " \t\n", "\u00a0", "\u2003");
  const odd = [wrongKind, blank, anyText, long, near, near.map((text) => text.toUpperCase())];
  if (typeof not === "object") odd.push(fc.constantFrom(...(not.enum ?? [])));
  if (format === "date-time") odd.push(oddTimes);
  return { sound, odd: fc.oneof(...odd) };
}

function formedTexts({ format, contentEncoding }: Schema, most: number, name: string): fc.Arbitrary<string> {
  // A start is before the end.
  if (format === "date-time") return /startsAt$/i.test(name) ? timesAhead(1, 180) : timesAhead(182, 363);
  if (contentEncoding === "base64") {
    // The longest texts without padding would have more bytes than are allowed.
    const bytes = fc.uint8Array({ minLength: 1, maxLength: (most / 4) * 3 - 2, size: "max" });
    return bytes.map((each) => btoa(String.fromCharCode(...each)));
  }
  return fc.oneof(
    fc.string({ unit: "grapheme-ascii", minLength: 1, maxLength: most, size: "medium" }),
    fc.string({ unit: "binary", minLength: 1, maxLength: most }),
    fc.constantFrom("x", "\u{1f600}").map((character) => character.repeat(most)),
  );
}

const timeIn = (days: number): string => new Date(Date.now() + days * 24 * 3600 * 1000).toISOString();

/** Times so many days ahead, in the forms of RFC 3339. */
const timesAhead = (min: number, max: number): fc.Arbitrary<string> =>
  fc
    .tuple(fc.integer({ min, max }), fc.constantFrom(".000", "", ".123456"), fc.constantFrom("Z", "-00:30", "+13:45"))
    .map(([days, fraction, zone]) => timeIn(days).replace(/\..*/, `${fraction}${zone}`));

/** Times that are over or too far ahead, and times that are written in a way that only some readers of ISO 8601 take. */
const oddTimes = fc
  .tuple(
    fc.constantFrom(-3650, -0.1, 0, 364, 366, 2_000_000),
    fc.constantFrom("Z", "Z", "Z", "", "z", "+24:00", "000000000000000000Z"),
    fc.constantFrom<[RegExp, string]>([/^/, ""], [/T/, " "], [/T\d\d/, "T24"], [/-\d\dT/, "-31T"], [/:\d\d\.\d+/, ""]),
  )
  .map(([days, zone, [part, other]]) => timeIn(days).replace("Z", zone).replace(part, other));

function integersOf({ minimum = 0, maximum = Number.POSITIVE_INFINITY }: Schema): Values {
  const wrong = ["", "5 ", "0".repeat(300), ..."1.5 1e3 0x10 +5 \uff10 NaN Infinity 5,6 [5] null".split(" ")];
  return {
    sound: fc.oneof(
      fc.integer({ min: minimum, max: minimum + 20 }),
      fc.constantFrom(...[1000, 1001, 2 ** 31, 2 ** 53].filter((value) => value <= maximum)),
    ),
    odd: fc.constantFrom<unknown>(minimum - 1, -minimum, "9".repeat(400), "%00", "x", ...wrong),
  };
}
