import type { Operation } from "../../src/docs-page/openapi/types.ts";
import { fc } from "../support/random.ts";
import { anyText, anyValue, type Known, soundValue } from "./values.ts";

export interface Route {
  template: string;
  method: string;
  operation: Operation;
}

export interface FuzzRequest {
  /** With the query. */
  path: string;
  headers: Readonly<Record<string, string>>;
  body: string;
  /** Whether every part is as the document says, so that nothing can be wrong with its form. */
  isSound: boolean;
}

/** Of contract section 7. */
const MAX_BODY_BYTES = 16 * 1024;

/** A path segment in forms that routers and decoders disagree about. */
const ODD_SEGMENTS = [
  ...["%", "%zz", "%C0%AF", "%F0%9F", "..", "%2e%2e", ".", "%00", "a%0d%0ab", "", "/", "a%2Fb", "+", ";a=1"],
];
const oddSegment = fc.oneof(fc.constantFrom(...ODD_SEGMENTS), anyText.map(encoded));

/** Any bytes that a header can carry, and blanks. */
const oddHeader = fc.oneof(
  fc.constantFrom("", " ", "\t", "__proto__", "null", "x".repeat(256), "y".repeat(4000), "a\u0001b", "\u007f"),
  fc.array(fc.integer({ min: 32, max: 126 }), { maxLength: 20 }).map((codes) => String.fromCharCode(...codes)),
);

function encoded(value: unknown): string {
  return encodeURIComponent((typeof value === "string" ? value : JSON.stringify(value)).toWellFormed());
}

/** Requests to one operation of the document, by its own description of them: sound, or odd in a place or two. */
export function requestsTo(route: Route, known: Known): fc.Arbitrary<FuzzRequest> {
  const { security } = route.operation;
  return fc.oneof(
    ...(security.length > 0 ? security : [{}]).map((each) => requestsOf(Object.keys(each), route, known)),
  );
}

/** @param callers names of the headers that say who calls */
function requestsOf(callers: string[], { template, operation }: Route, known: Known): fc.Arbitrary<FuzzRequest> {
  const { parameters = [], requestBody } = operation;
  // Texts of the request, by the name of their parameter.
  const sound: Record<string, fc.Arbitrary<string>> = {};
  const odd: fc.Arbitrary<Record<string, string>>[] = [];
  const add = (name: string, right: fc.Arbitrary<string>, wrong: fc.Arbitrary<string>) => {
    sound[name] = right;
    odd.push(wrong.map((text) => ({ [name]: text })));
  };
  const inHeader = parameters.filter((each) => each.in === "header").map(({ name }) => name.toLowerCase());
  const headerNames = [...new Set([...callers, ...inHeader])].filter((name) => name in known.headers);
  for (const name of headerNames) add(name, fc.constantFrom(...(known.headers[name] ?? [])), oddHeader);
  for (const { in: place, name, schema, required } of parameters) {
    const value = soundValue(schema, known, name).map(encoded);
    const segment = value.filter((text) => ![".", ".."].includes(text));
    if (place === "path") add(name, segment, oddSegment);
    if (place !== "query") continue;
    const pair = value.map((text) => `${name}=${text}`);
    const oddPair = fc.oneof(
      oddSegment.map((text) => `${name}=${text}`),
      fc.tuple(pair, pair).map((two) => two.join("&")),
    );
    add(name, required ? pair : fc.oneof(fc.constant(""), pair), oddPair);
  }
  const schema = requestBody?.content["application/json"]?.schema;
  const body = schema ? soundValue(schema, known) : fc.constant({});
  return fc
    .record({
      texts: fc.record(sound),
      oddText: fc.oneof(fc.constant({}), fc.oneof(...odd)),
      body: body.map((value) => JSON.stringify(value)),
      oddBody: fc.oneof({ weight: 2, arbitrary: fc.constant(null) }, { weight: 1, arbitrary: oddBodies(body) }),
    })
    .map(({ texts, oddText, body, oddBody }) => {
      const all: Record<string, string> = { ...texts, ...oddText };
      const queries = parameters.filter((each) => each.in === "query").map(({ name }) => all[name]);
      const query = queries.filter((pair) => pair !== "").join("&");
      const path = template.replaceAll(/\{(\w+)\}/g, (_, name: string) => all[name] ?? "");
      // A cursor belongs to the order of its list.
      const isOfOtherOrder = all.cursor && (all.order || all.from || all.until);
      const isOdd = Object.keys(oddText).length > 0 || oddBody !== null || isOfOtherOrder;
      return {
        path: query === "" ? path : `${path}?${query}`,
        headers: Object.fromEntries(headerNames.map((name) => [name, all[name] ?? ""])),
        body: oddBody ?? body,
        isSound: !isOdd && new TextEncoder().encode(body).byteLength <= MAX_BODY_BYTES,
      };
    });
}

/** Bodies with any value in the place of a field or of all of it, and such as are no JSON. */
function oddBodies(sound: fc.Arbitrary<unknown>): fc.Arbitrary<string> {
  const oneOdd = fc.tuple(sound, fc.nat(), anyValue).map(([value, at, other]) => {
    const whole = Object(value);
    const names = [...Object.keys(whole), "unknown"];
    return { ...whole, [names[at % names.length] ?? ""]: other };
  });
  return fc.oneof(
    oneOdd.map((value) => JSON.stringify(value)),
    anyValue.map((value) => JSON.stringify(value)),
    fc.tuple(sound, fc.nat()).map(([value, at]) => JSON.stringify(value).slice(0, at % 50)),
    fc.integer({ min: 10, max: 1500 }).map((depth) => `${'{"a":'.repeat(depth)}1${"}".repeat(depth)}`),
    fc.constantFrom('{"__proto__":{}}', '{"userId":1e999}', '{"userId":"\\ud800"}', '{"expiresAt":-0}'),
  );
}
