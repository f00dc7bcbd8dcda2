import fc, { type Arbitrary } from "fast-check";
import type { Json, OpenApiDocument, Operation, Parameter } from "../../src/docs-page/openapi/types.ts";
import { anyText, type Values, valuesOf } from "./values.ts";

/** Of contract section 7. */
const MAX_BODY_BYTES = 16 * 1024;

/** A request as it is sent. */
export interface FuzzRequest {
  method: string;
  /** With the query. */
  path: string;
  headers: Record<string, string>;
  body: string | Uint8Array<ArrayBuffer> | null;
  /** Whether the body is sent without saying its length. */
  isChunked: boolean;
  /** Whether every part is as the document says, so that nothing can be wrong with its form. */
  isSound: boolean;
}

/** What the generator knows of the service's state: values that mean something, by place. */
export interface Known {
  /** Headers that go together, by the name of the header. The first are those of an application that may do everything. */
  credentials: readonly Readonly<Record<string, string>>[];
  udids: readonly string[];
  /** By name of a parameter or of a field. */
  values: Readonly<Record<string, readonly string[]>>;
}

/** One part of a request; sound, or odd in some way. */
interface Part<Value> {
  value: Value;
  isSound: boolean;
}

const SOUND_WEIGHT = 6;

const soundly = <Value>(values: Arbitrary<Value>): Arbitrary<Part<Value>> =>
  values.map((value) => ({ value, isSound: true }));

function partOf<Value>(sound: Arbitrary<Value>, odd: Arbitrary<Value>, weight = SOUND_WEIGHT): Arbitrary<Part<Value>> {
  return fc.oneof(
    { weight, arbitrary: soundly(sound) },
    { weight: 1, arbitrary: odd.map((value) => ({ value, isSound: false })) },
  );
}

/** Texts that are one part together. */
const joined = (parts: Arbitrary<Part<string>>[], join: (texts: string[]) => string): Arbitrary<Part<string>> =>
  fc.tuple(...parts).map((all) => ({
    value: join(all.map(({ value }) => value)),
    isSound: all.every(({ isSound }) => isSound),
  }));

const METHODS = ["GET", "HEAD", "POST", "PUT", "PATCH", "DELETE", "OPTIONS", "TRACE", "PROPFIND", "QUERY", "UNLOCK"];

/** Requests to one operation of the document, by its own description of them. */
export function requestsTo(
  { components }: Pick<OpenApiDocument, "components">,
  { template, method, operation }: { template: string; method: string; operation: Operation },
  known: Known,
): Arbitrary<FuzzRequest> {
  const knownValues = (name: string) => known.values[name] ?? [];
  const { parameters = [], requestBody } = operation;
  const ofParameter = ({ name, schema }: Parameter) => valuesOf(schema, components.schemas, knownValues, name);
  const schema = requestBody?.content["application/json"]?.schema;
  return fc
    .record({
      method: partOf(fc.constant(method), fc.constantFrom(...METHODS), 12),
      path: pathsOf(template, parameters, ofParameter),
      query: queriesOf(parameters, ofParameter),
      headers: headersOf(operation, known),
      key: idempotencyKeysOf(parameters),
      idle: idleHeaders,
      body: schema ? bodiesOf(valuesOf(schema, components.schemas, knownValues)) : noBodies,
      isChunked: fc.boolean(),
    })
    .map(({ method: verb, path, query, headers, key, idle, body, isChunked }) => ({
      method: verb.value,
      path: query.value === "" ? path.value : `${path.value}?${query.value}`,
      headers: { ...idle, ...headers.value, ...key.value },
      body: ["GET", "HEAD"].includes(verb.value) ? null : body.value,
      isChunked,
      isSound: [verb, path, query, headers, key, body].every((part) => part.isSound),
    }));
}

/** A path segment in forms that routers and decoders disagree about. */
const oddSegment = fc.oneof(
  fc.constantFrom(
    ...["%", "%%", "%zz", "%C0%AF", "%ED%A0%80", "%F0%9F", "..", "%2e%2e", ".", "%00", "a%0d%0ab", "%E2%80%AE"],
  ),
  fc.constantFrom("", "/", "a/b", "a%2Fb", "+", ";a=1", "x".repeat(5000), "%41".repeat(300)),
  anyText.map((text) => encodeURIComponent(text.toWellFormed())),
  fc.string({ unit: fc.constantFrom("%", "2", "F", "0", ".", "/", "\\", "+", ":", "@", "%25"), maxLength: 12 }),
);

const asText = (value: Json): string => (typeof value === "string" ? value : JSON.stringify(value));
const encoded = (value: Json): string => encodeURIComponent(asText(value).toWellFormed());

type ValuesFor = (parameter: Parameter) => Values;

function pathsOf(template: string, parameters: readonly Parameter[], valuesFor: ValuesFor): Arbitrary<Part<string>> {
  const inPath = parameters.filter((parameter) => parameter.in === "path");
  const isSegment = (text: string) => !["", ".", ".."].includes(text);
  const segments = inPath.map((parameter) => {
    const { sound, odd } = valuesFor(parameter);
    return partOf(sound.map(encoded).filter(isSegment), fc.oneof(odd.map(encoded), oddSegment), 3);
  });
  const tails = partOf(fc.constant(""), fc.constantFrom("/", "//", "/x", "%20", ".", ";", "%00"), 30);
  return joined([tails, ...segments], ([tail, ...texts]) => {
    const fill = (path: string, text: string, place: number) => path.replace(`{${inPath[place]?.name}}`, () => text);
    return `${texts.reduce(fill, template)}${tail}`;
  });
}

function queriesOf(parameters: readonly Parameter[], valuesFor: ValuesFor): Arbitrary<Part<string>> {
  const pairs = parameters
    .filter((parameter) => parameter.in === "query")
    .map((parameter) => {
      const { sound, odd } = valuesFor(parameter);
      const pair = (value: Json) => `${parameter.name}=${encoded(value)}`;
      const twice = fc.tuple(sound, sound).map(([one, other]) => `${pair(one)}&${pair(other)}`);
      const raw = oddSegment.map((text) => `${parameter.name}=${text}`);
      return partOf(fc.oneof(fc.constant(""), sound.map(pair)), fc.oneof(odd.map(pair), twice, raw), 4);
    });
  const idle = fc.constantFrom("", "", "", "x=1", "=", "&&", "__proto__=1", "PER_PAGE=0", "applicationid=x", "%00=%00");
  return joined([...pairs, soundly(idle)], (texts) => texts.filter((text) => text !== "").join("&"));
}

/** Any bytes that a header can carry, and blanks. */
const oddHeader: Arbitrary<string | null> = fc.oneof(
  fc.constantFrom(null, "", " ", "\t", "__proto__", "null", "x".repeat(255), "x".repeat(256), "y".repeat(4000)),
  fc
    .array(fc.integer({ min: 1, max: 126 }), { maxLength: 20 })
    .map((codes) => String.fromCharCode(...codes).replaceAll(/[\r\n]/g, ",")),
);

const mapValues = (headers: Readonly<Record<string, string>>, change: (text: string) => string) =>
  Object.fromEntries(Object.entries(headers).map(([name, text]) => [name, change(text)]));

/** The headers that say who calls: of one alternative of the operation all schemes, right or odd. */
function headersOf({ security }: Operation, known: Known): Arbitrary<Part<Record<string, string>>> {
  const [own = {}, ...others] = known.credentials;
  if (security.length === 0) return soundly(fc.constant({}));
  const alternative = fc.constantFrom(...security.map((schemes) => Object.keys(schemes)));
  // Right but for one character more, or given twice.
  const near = fc.constantFrom(...["x", ", ", ","].map((more) => mapValues(own, (text) => `${text}${more}${text}`)));
  const credentials = partOf(fc.constant(own), fc.oneof(fc.constantFrom(own, ...others), near), 8);
  const udid = partOf(
    fc.constantFrom(...known.udids),
    fc.constantFrom("u".repeat(256), "u".repeat(5000), "a\u0001b", "a\tb", "\u007f"),
    15,
  );
  const fault = partOf<[number, string | null] | null>(fc.constant(null), fc.tuple(fc.nat(), oddHeader));
  return fc.record({ alternative, credentials, udid, fault }).map(({ alternative: names, ...parts }) => {
    const given: Record<string, string | null> = { ...parts.credentials.value, udid: parts.udid.value };
    const [place, text] = parts.fault.value ?? [];
    if (place !== undefined) given[names[place % names.length] ?? ""] = text ?? null;
    const headers = names.map((name) => [name, given[name] === undefined ? "" : given[name]] as const);
    return {
      value: Object.fromEntries(headers.filter((header): header is [string, string] => header[1] !== null)),
      isSound: Object.values(parts).every(({ isSound }) => isSound),
    };
  });
}

/** A key that was not used before, if the operation takes one; now and then one that others use, or that is none. */
function idempotencyKeysOf(parameters: readonly Parameter[]): Arbitrary<Part<Record<string, string>>> {
  const parameter = parameters.find(({ name }) => name === "Idempotency-Key");
  if (parameter === undefined) return soundly(fc.constant({}));
  const header = (text: string | null): Record<string, string> => (text === null ? {} : { "idempotency-key": text });
  return partOf(
    fc.oneof(fc.constant({}), fc.noBias(fc.uuid()).map(header)),
    fc.oneof(fc.constantFrom("visit-4711", "a\u0001b"), oddHeader).map(header),
  );
}

/** Headers that make no request right or wrong. */
const idleHeaders = fc.dictionary(
  fc.constantFrom(
    ...["content-type", "accept", "x-request-id", "authorization", "cookie", "origin", "if-none-match", "range"],
    ...["x-forwarded-for", "x-http-method-override"],
  ),
  oddHeader.map((text) => text ?? "application/json"),
  { maxKeys: 2 },
);

const sizeOf = (body: FuzzRequest["body"]): number =>
  typeof body === "string" ? encoder.encode(body).byteLength : (body?.byteLength ?? 0);

const noBodies: Arbitrary<Part<FuzzRequest["body"]>> = soundly(fc.constantFrom(null, "{}"));

const encoder = new TextEncoder();

/** A field of any operation, as JSON text, with a value that no program would write. */
const wrongFields = fc
  .tuple(
    fc.constantFrom("userId", "base64", "expiresAt", "USERID", " userId", "userId\\u0000", "expiresAt[]"),
    fc.constantFrom(
      ...["-0", "1e999", "-1E+400", "9007199254740993", `1${"0".repeat(400)}`, '"\\u0000"', '"\\ud800"', "null"],
    ),
  )
  .map(([name, value]) => `"${name}":${value}`);

function bodiesOf({ sound, odd }: Values): Arbitrary<Part<FuzzRequest["body"]>> {
  const text = sound.map((value) => JSON.stringify(value));
  const brokenText = fc.oneof(
    fc.tuple(text, fc.nat()).map(([whole, at]) => whole.slice(0, at % whole.length)),
    fc.tuple(text, fc.constantFrom("}", "x", "\0", ",", "\ufeff")).map(([whole, junk]) => whole + junk),
    fc.tuple(text, fc.constantFrom("'", "`", "\u201c")).map(([whole, quote]) => whole.replaceAll('"', quote)),
    fc.integer({ min: 10, max: 3000 }).map((depth) => "[".repeat(depth) + "]".repeat(depth)),
    fc.integer({ min: 10, max: 1500 }).map((depth) => `${'{"a":'.repeat(depth)}1${"}".repeat(depth)}`),
    fc.constantFrom("", " ", "{}", "null", '"text"', "0", '{"__proto__":{}}', '{"constructor":{"prototype":1}}'),
    text.map((whole) => `{"__proto__":${whole},"constructor":${whole}}`),
    // Of two fields of one name the last counts; numbers come as no program would write them.
    fc.tuple(text, wrongFields).map(([whole, field]) => `${whole.slice(0, -1)},${field}}`),
    wrongFields.map((field) => `{${field}}`),
    // At the limit of a body and over it: blanks make no JSON wrong.
    fc
      .tuple(text, fc.constantFrom(MAX_BODY_BYTES, MAX_BODY_BYTES + 1, 3 * MAX_BODY_BYTES))
      .map(([whole, bytes]) => whole + " ".repeat(Math.max(0, bytes - encoder.encode(whole).byteLength))),
  );
  const notUtf8 = fc.tuple(text, fc.constantFrom(0x80, 0xc0, 0xff)).map(([whole, byte]) => {
    const bytes = new Uint8Array(encoder.encode(`{"note":"?",${whole.slice(1)}`));
    bytes[bytes.indexOf("?".charCodeAt(0))] = byte;
    return bytes;
  });
  const oddBody = fc.oneof(
    { weight: 6, arbitrary: odd.map((value) => JSON.stringify(value)) },
    { weight: 3, arbitrary: brokenText },
    { weight: 1, arbitrary: notUtf8 },
  );
  const parts = partOf<FuzzRequest["body"]>(text, oddBody, 2);
  // Fields that the service does not know can make a body too large.
  return parts.map(({ value, isSound }) => ({ value, isSound: isSound && sizeOf(value) <= MAX_BODY_BYTES }));
}
