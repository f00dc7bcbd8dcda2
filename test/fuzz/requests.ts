import type { Operation } from "../../src/docs-page/openapi/types.ts";
import { fc } from "../support/random.ts";
import { anyText, type Known, type Values, valuesOf } from "./values.ts";

/** Of contract section 7. */
export const MAX_BODY_BYTES = 16 * 1024;

/** An operation of the document. */
export interface Route {
  template: string;
  method: string;
  operation: Operation;
}

/** A request as it is sent. */
export interface FuzzRequest {
  method: string;
  /** With the query. */
  path: string;
  headers: Readonly<Record<string, string>>;
  body: Uint8Array<ArrayBuffer>;
  /** Whether the body is sent without saying its length. */
  isChunked: boolean;
  /** Whether every part is as the document says, so that nothing can be wrong with its form. */
  isSound: boolean;
}

type Body = FuzzRequest["body"];

/** Requests to one operation of the document, by its own description of them: sound, or odd in a place or two. */
export function requestsTo(route: Route, known: Known): fc.Arbitrary<FuzzRequest> {
  const { security } = route.operation;
  const alternatives = security.length === 0 ? [{}] : security;
  return fc.oneof(...alternatives.map((schemes) => requestsOf(Object.keys(schemes), route, known)));
}

const METHODS = ["GET", "HEAD", "POST", "PUT", "PATCH", "DELETE", "OPTIONS", "TRACE", "PROPFIND", "QUERY", "UNLOCK"];

/** They make no request right or wrong. */
const IDLE_HEADERS = ["content-type", "accept", "x-request-id", "authorization", "origin", "if-none-match", "range"];

/** Headers that an operation may have, by the names of its parameters. No badge has changed so often. */
const OPTIONAL_HEADERS: Readonly<Record<string, fc.Arbitrary<string>>> = {
  "Idempotency-Key": fc.uuid(),
  actor: fc.constantFrom("Tom", "J%C3%BCrgen%20%F0%9F%98%80", "x".repeat(100)),
  "If-Match": fc.constantFrom('"999999"', "*"),
};

/** @param callers names of the headers that say who calls */
function requestsOf(
  callers: string[],
  { template, method, operation }: Route,
  known: Known,
): fc.Arbitrary<FuzzRequest> {
  const { parameters = [], requestBody } = operation;
  const [own = {}, ...others] = known.credentials;
  // Texts of the request by name: of its parameters, its method, and the tail of its path.
  const parts: Record<string, Values<string>> = {
    method: { sound: fc.constant(method), odd: fc.constantFrom(...METHODS) },
    tail: { sound: fc.constant(""), odd: fc.constantFrom("/", "//", "/x", "%20", ".", ";", "%00") },
  };
  for (const name of callers) parts[name] = headersOf(name === "udid" ? known.udids : [own[name] ?? ""]);
  for (const { in: place, name, schema, required } of parameters) {
    if (place === "path") parts[name] = segmentsOf(valuesOf(schema, known, name));
    if (place === "query") parts[name] = pairsOf(name, required, valuesOf(schema, known, name));
    if (name === "invitationtoken") parts[name] = headersOf(known.values.invitationToken ?? []);
    const optional = OPTIONAL_HEADERS[name];
    if (optional) parts[name.toLowerCase()] = { sound: fc.oneof(fc.constant(""), optional), odd: oddHeader };
  }
  const namesIn = (place: string) => parameters.filter((each) => each.in === place).map(({ name }) => name);
  const oddTexts = Object.entries(parts).map(([name, { odd }]) => odd.map((text) => ({ [name]: text })));
  if (callers.length > 0) oddTexts.push(fc.constantFrom(...others));
  const schema = requestBody?.content["application/json"]?.schema;
  const { sound, odd } = schema ? bodiesOf(valuesOf(schema, known)) : noBodies;
  return fc
    .record({
      soundTexts: fc.record(Object.fromEntries(Object.entries(parts).map(([name, part]) => [name, part.sound]))),
      oddText: fc.oneof(fc.constant({}), fc.oneof(...oddTexts)),
      soundBody: sound,
      oddBody: mostly<Body | null>(null, odd),
      idleQuery: mostly("", fc.constantFrom("x=1", "=", "&&", "__proto__=1", "applicationid=x", "%00=%00")),
      idleHeaders: fc.dictionary(fc.constantFrom(...IDLE_HEADERS), oddHeader, { maxKeys: 2 }),
      isChunked: fc.boolean(),
    })
    .map(({ soundTexts, oddText, soundBody, oddBody, idleQuery, idleHeaders, isChunked }) => {
      const texts: Record<string, string> = { ...soundTexts, ...oddText };
      const path = template.replaceAll(/\{(\w+)\}/g, (_, name: string) => texts[name] ?? "") + texts.tail;
      const query = [...namesIn("query").map((name) => texts[name]), idleQuery].filter((pair) => pair !== "").join("&");
      const optional = Object.keys(OPTIONAL_HEADERS).map((name) => name.toLowerCase());
      const headers = [...callers, ...optional, ...namesIn("header").filter((name) => name in parts)].map((name) => [
        name,
        texts[name] ?? "",
      ]);
      const body = oddBody ?? soundBody;
      return {
        method: texts.method ?? method,
        path: query === "" ? path : `${path}?${query}`,
        headers: { ...idleHeaders, ...Object.fromEntries(headers) },
        body,
        isChunked,
        // Fields that the service does not know can make a body too large.
        // A cursor belongs to the order of its list.
        isSound:
          Object.keys(oddText).length === 0 &&
          oddBody === null &&
          body.byteLength <= MAX_BODY_BYTES &&
          !((texts.order || texts.from || texts.until) && texts.cursor),
      };
    });
}

const mostly = <Value>(usual: Value, others: fc.Arbitrary<Value>): fc.Arbitrary<Value> =>
  fc.oneof({ weight: 2, arbitrary: fc.constant(usual) }, { weight: 1, arbitrary: others });

/** A path segment in forms that routers and decoders disagree about. */
const oddSegment = fc.oneof(
  fc.constantFrom(
    ...["%", "%%", "%zz", "%C0%AF", "%ED%A0%80", "%F0%9F", "..", "%2e%2e", ".", "%00", "a%0d%0ab", "%E2%80%AE"],
    ...["", "/", "a/b", "a%2Fb", "+", ";a=1", "x".repeat(5000), "%41".repeat(300)],
  ),
  anyText.map(encoded),
  fc.string({ unit: fc.constantFrom("%", "2", "F", "0", ".", "/", "\\", "+", ":", "@", "%25"), maxLength: 12 }),
);

function encoded(value: unknown): string {
  const text = typeof value === "string" ? value : JSON.stringify(value);
  return encodeURIComponent(text.toWellFormed());
}

function segmentsOf({ sound, odd }: Values): Values<string> {
  const isSegment = (text: string) => !["", ".", ".."].includes(text);
  return { sound: sound.map(encoded).filter(isSegment), odd: fc.oneof(odd.map(encoded), oddSegment) };
}

function pairsOf(name: string, isRequired: boolean, { sound, odd }: Values): Values<string> {
  const pair = (value: unknown) => `${name}=${encoded(value)}`;
  const twice = fc.tuple(sound, sound).map(([one, other]) => `${pair(one)}&${pair(other)}`);
  const wrong = odd.map(pair);
  const raw = oddSegment.map((text) => `${name}=${text}`);
  const given = sound.map(pair);
  return {
    sound: isRequired ? given : fc.oneof(fc.constant(""), given),
    odd: fc.oneof(wrong, wrong, twice, raw, fc.constant("")),
  };
}

/** Any bytes that a header can carry, and blanks. */
const oddHeader = fc.oneof(
  fc.constantFrom("", " ", "\t", "__proto__", "null", "visit-4711", "x".repeat(255), "x".repeat(256), "y".repeat(4000)),
  fc.constantFrom("a\u0001b", "a\tb", "\u007f"),
  fc
    .array(fc.integer({ min: 1, max: 126 }), { maxLength: 20 })
    .map((codes) => String.fromCharCode(...codes).replaceAll(/[\r\n]/g, ",")),
);

function headersOf(texts: readonly string[]): Values<string> {
  const sound = fc.constantFrom(...texts);
  // Right but for one character more, or given twice.
  const near = fc.tuple(sound, fc.constantFrom("x", ", ", ",")).map(([text, between]) => `${text}${between}${text}`);
  return { sound, odd: fc.oneof(near, oddHeader) };
}

const encoder = new TextEncoder();
const bytesOf = (text: string): Body => new Uint8Array(encoder.encode(text));

const noBodies: Values<Body> = { sound: fc.constantFrom("", "{}").map(bytesOf), odd: fc.constant(bytesOf("x")) };

function bodiesOf({ sound, odd }: Values): Values<Body> {
  const text = sound.map((value) => JSON.stringify(value));
  const broken = fc.oneof(
    fc.tuple(text, fc.nat()).map(([whole, at]) => whole.slice(0, at % whole.length)),
    fc.tuple(text, fc.constantFrom("}", "x", "\0", ",", "\ufeff")).map(([whole, junk]) => whole + junk),
    fc.tuple(text, fc.constantFrom("'", "`", "\u201c")).map(([whole, quote]) => whole.replaceAll('"', quote)),
    fc.integer({ min: 10, max: 3000 }).map((depth) => "[".repeat(depth) + "]".repeat(depth)),
    fc.integer({ min: 10, max: 1500 }).map((depth) => `${'{"a":'.repeat(depth)}1${"}".repeat(depth)}`),
    fc.constantFrom("", " ", "{}", "null", '"text"', "0", '{"__proto__":{}}', '{"constructor":{"prototype":1}}'),
    text.map((whole) => `{"__proto__":${whole},"constructor":${whole}}`),
    // Of two fields of one name the last counts.
    fc
      .tuple(text, fc.constantFrom('"userId":1e999', '"userId":"\\ud800"', '"userId\\u0000":"x"', '"expiresAt":-0'))
      .map(([whole, field]) => `${whole.slice(0, -1)},${field}}`),
    // At the limit of a body and over it: blanks make no JSON wrong.
    fc
      .tuple(text, fc.constantFrom(MAX_BODY_BYTES, MAX_BODY_BYTES + 1, 3 * MAX_BODY_BYTES))
      .map(([whole, bytes]) => whole + " ".repeat(Math.max(0, bytes - bytesOf(whole).byteLength))),
  );
  const notUtf8 = fc
    .tuple(text.map(bytesOf), fc.nat(), fc.constantFrom(0x80, 0xc0, 0xff))
    .map(([bytes, at, byte]) => bytes.with(at % bytes.length, byte));
  return {
    sound: text.map(bytesOf),
    odd: fc.oneof(
      { weight: 6, arbitrary: odd.map((value) => bytesOf(JSON.stringify(value))) },
      { weight: 3, arbitrary: broken.map(bytesOf) },
      { weight: 1, arbitrary: notUtf8 },
    ),
  };
}
