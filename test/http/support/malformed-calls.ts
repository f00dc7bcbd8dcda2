import fc, { type Arbitrary } from "fast-check";

/** A call that the service must refuse, or, where only its address is odd and it reads, may answer with nothing. */
export interface MalformedCall {
  method: string;
  path: string;
  headers: Record<string, string>;
  body?: Uint8Array;
  /** Whether the body is sent without saying its length. */
  isChunked?: boolean;
  mayBeGranted?: boolean;
}

/** A call that the service would grant. */
export interface SoundCall {
  method: string;
  path: string;
  headers: Record<string, string>;
  body?: Record<string, unknown>;
}

const encoder = new TextEncoder();

/** Names that objects inherit, and texts that mean something to one interpreter or another. */
const TRAPS = [
  ...["__proto__", "constructor", "prototype", "toString", "hasOwnProperty", "valueOf", "then", "length", "undefined"],
  ...[
    "null",
    "NaN",
    "Infinity",
    "-0",
    "0x10",
    "1e999",
    "true",
    "[object Object]",
    "' OR 1=1 --",
    '"; DROP TABLE badge',
  ],
  ...["../../etc/passwd", "..\\..", "%00", "%2e%2e%2f", "%252F", "%u0041", "{{7*7}}", "<script>", "$ne", "*"],
];

const trap = fc.constantFrom(...TRAPS);

/** Anything a string can be in JSON: NUL, lone surrogates, right-to-left marks, very long. */
const anyText = fc.oneof(
  trap,
  fc.string({ unit: "binary", maxLength: 30 }),
  fc.array(fc.integer({ min: 0, max: 0xffff }), { maxLength: 10 }).map((units) => String.fromCharCode(...units)),
  fc.integer({ min: 257, max: 9000 }).map((length) => "x".repeat(length)),
);

/** What a header may carry at all. Bytes past ASCII are left to the tests of udid. */
const headerText = fc.oneof(
  trap,
  fc.string({ unit: fc.integer({ min: 1, max: 127 }).map(asHeaderCharacter), maxLength: 40 }),
  fc.integer({ min: 257, max: 4000 }).map((length) => "y".repeat(length)),
);

function asHeaderCharacter(code: number): string {
  return code === 10 || code === 13 ? "," : String.fromCharCode(code);
}

/** JSON text of a value that is no string; numbers come as no program would write them. */
const notString: Arbitrary<string> = fc.oneof(
  fc.constantFrom("0", "-0", "1e999", "-1E+400", "9007199254740993", "1e-999", `1${"0".repeat(400)}`, "true", "false"),
  fc.constantFrom("[]", "{}", "[[]]", '{"toString":1}', '{"__proto__":null}', '{"length":5}'),
  fc
    .jsonValue()
    .filter((value) => typeof value === "object" && value !== null)
    .map((value) => JSON.stringify(value)),
  fc.integer({ min: 10, max: 3500 }).map((depth) => "[".repeat(depth) + "]".repeat(depth)),
  fc.integer({ min: 10, max: 1500 }).map((depth) => `${'{"a":'.repeat(depth)}1${"}".repeat(depth)}`),
);

/** JSON text of a value for a field that must be there: missing in one way or another, or of the wrong kind. */
const wrongValue = fc.oneof(
  notString,
  fc.constantFrom("null", '""', '"  "', '"\\t\\n"', '"\\u0000"', '"\\ud800"', '"a\\udc00"'),
);

/** Members beside the one that is wrong. What they hold makes nothing right. */
function extraMembers(known: readonly string[]): Arbitrary<string> {
  const name = anyText.filter((text) => !known.includes(text));
  const value = fc.oneof(
    notString,
    anyText.map((text) => JSON.stringify(text)),
  );
  return fc
    .array(fc.tuple(name, value), { maxLength: 3 })
    .map((members) => members.map(([key, text]) => `,${JSON.stringify(key)}:${text}`).join(""))
    .map((text) => (text.length > 6000 ? "" : text));
}

/** Bodies that a route with a required field refuses, whatever else they are. */
function refusedBody(body: Record<string, unknown>): Arbitrary<Uint8Array> {
  const sound = JSON.stringify(body);
  const [field = ""] = Object.keys(body);
  const extra = extraMembers(Object.keys(body));
  const texts = fc.oneof(
    // Not JSON.
    fc.integer({ min: 1, max: sound.length - 1 }).map((length) => sound.slice(0, length)),
    fc.constantFrom("}", "x", "{}", "\0", ",", "\ufeff", "//").map((junk) => sound + junk),
    fc.constantFrom("'", "`", "\u201c").map((quote) => sound.replaceAll('"', quote)),
    anyText.filter((text) => text.trim() !== "" && !text.startsWith("{")),
    // JSON, but no object.
    notString.filter((text) => !text.startsWith("{")),
    fc.integer({ min: 10, max: 8000 }).map((depth) => "[".repeat(depth)),
    // An object without the field, or with another kind of it; of two of one name the last counts.
    fc.tuple(wrongValue, extra).map(([value, more]) => `{"${field}":${value}${more}}`),
    fc
      .tuple(wrongValue, extra)
      .map(([value, more]) => `{"${field}":${JSON.stringify(body[field])}${more},"${field}":${value}}`),
    extra.map((more) => `{"__proto__":${sound},"constructor":${sound}${more}}`),
    fc.constantFrom(field.toUpperCase(), ` ${field}`, `${field}\\u0000`, `${field}[]`).map((name) => `{"${name}":"x"}`),
    // More than is read.
    fc.integer({ min: 1, max: 2000 }).map((more) => sound + " ".repeat(16_384 + more - sound.length)),
  );
  return fc.oneof(
    { weight: 9, arbitrary: texts.map((text) => encoder.encode(text)) },
    // Not UTF-8.
    { weight: 1, arbitrary: fc.constantFrom(0x80, 0xc0, 0xed, 0xf8, 0xff).map((byte) => brokenBy(byte, sound)) },
  );
}

/** The body with a byte in one of its strings that no UTF-8 has there. */
function brokenBy(byte: number, sound: string): Uint8Array {
  const bytes = encoder.encode(`{"note":"?",${sound.slice(1)}`);
  bytes[bytes.indexOf("?".charCodeAt(0))] = byte;
  return bytes;
}

/** Headers that make no call right or wrong. */
const idleHeaders = fc.dictionary(
  fc.constantFrom(
    "content-type",
    "accept",
    "x-request-id",
    "authorization",
    "cookie",
    "x-forwarded-for",
    "origin",
    "x-http-method-override",
  ),
  headerText,
  { maxKeys: 3 },
);

const OTHER_METHODS = ["GET", "POST", "PUT", "PATCH", "DELETE", "TRACE", "PROPFIND", "REPORT", "MKCOL", "UNLOCK"];

/** Path segments that routers and decoders disagree about. */
export const ODD_SEGMENTS = [
  "%",
  "%%",
  "%zz",
  "%C0%AF",
  "%ED%A0%80",
  "%F0%9F",
  "..",
  "%2e%2e",
  ".",
  "%00",
  "a%0d%0ab",
  "%E2%80%AE",
] as const;

/** A path segment that names nothing, in forms that routers and decoders disagree about. */
export const oddSegment = fc.oneof(
  anyText.map((text) => encodeURIComponent(text.toWellFormed()).slice(0, 2000)),
  fc.string({
    unit: fc.constantFrom("%", "2", "f", "F", "0", "e", ".", "/", "\\", "+", ";", ":", "@", "~", "%25", "%2F"),
    maxLength: 20,
  }),
  fc.constantFrom(...ODD_SEGMENTS),
);

const oddQuery = fc
  .array(fc.tuple(anyText, anyText), { maxLength: 3 })
  .map((pairs) =>
    new URLSearchParams(pairs.map(([name, value]) => [name.slice(0, 50), value.slice(0, 500)])).toString(),
  );

/** Wrong in at least one way: headers, method or body; and odd in others. */
export function malformedCalls(
  sound: SoundCall,
  wrongHeaders: Record<string, Arbitrary<string | null>>,
  allowedMethods: readonly string[],
): Arbitrary<MalformedCall> {
  const { method, path, headers, body } = sound;
  const soundBody = body === undefined ? {} : { body: encoder.encode(JSON.stringify(body)) };
  const byHeader = Object.entries(wrongHeaders).map(([name, value]) =>
    value.map((text) => {
      const { [name]: _, ...others } = headers;
      return { method, path, headers: text === null ? others : { ...others, [name]: text }, ...soundBody };
    }),
  );
  const byMethod = fc
    .constantFrom(...OTHER_METHODS.filter((other) => !allowedMethods.includes(other)))
    .map((other) => ({ method: other, path, headers, ...(other !== "GET" && soundBody) }));
  const byBody =
    body === undefined
      ? []
      : [
          fc
            .tuple(refusedBody(body), fc.boolean())
            .map(([bytes, isChunked]) => ({ method, path, headers, body: bytes, isChunked })),
        ];
  const wrong = fc.oneof(
    { weight: 1, arbitrary: byMethod },
    ...byHeader.map((arbitrary) => ({ weight: 2, arbitrary })),
    ...byBody.map((arbitrary) => ({ weight: 10, arbitrary })),
  );
  return fc
    .tuple(wrong, idleHeaders, oddQuery)
    .map(([call, idle, query]) => ({ ...call, headers: { ...idle, ...call.headers }, path: `${call.path}?${query}` }));
}

export const missing = fc.constantFrom(null, "", " ", "\t ");

/** A header of which no value but one is right. */
export const notThe = (right: string): Arbitrary<string | null> =>
  fc.oneof(
    missing,
    headerText.filter((text) => text.trim() !== right),
    fc.constant(`${right}, ${right}`),
    fc.constant(`${right}x`),
  );

/** A udid that is missing or that none can have. */
export const notUdid: Arbitrary<string | null> = fc.oneof(
  missing,
  fc.constantFrom("a\u0001", "a\tb", "\u007f", "u".repeat(256), "u".repeat(5000)),
);
