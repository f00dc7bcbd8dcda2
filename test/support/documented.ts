import { format, type Schema as JsonSchema, type OutputUnit, Validator } from "@cfworker/json-schema";
import { openApiDocument } from "../../src/docs-page/openapi/document.ts";
import type {
  Header,
  Operation,
  PathItem,
  Reference,
  ResponseObject,
  Schema,
} from "../../src/docs-page/openapi/types.ts";

export interface Exchange {
  method: string;
  /** With the query. */
  path: string;
  status: number;
  headers: Headers;
  body: string;
}

const openApi = openApiDocument(Date.now());

// `format` is an annotation, and the document says that seconds are optional. The validator alone requires them.
const isRfc3339 = format["date-time"];
format["date-time"] = (text) => isRfc3339?.(text.replace(/T\d\d:\d\d(?=[Z+-])/, "$&:00")) ?? true;

const routes = Object.entries(openApi.paths).map(([template, item]) => ({
  pattern: new RegExp(`^${template.replaceAll(/\{\w+\}/g, "[^/]+").replaceAll(".", "\\.")}$`),
  item,
}));
export const { schemas } = openApi.components;
const components = strict({ schemas });
const validators = new Map<Schema, Validator>();

/**
 * Holds an answer against the OpenAPI document: the status is one that the route lists, the body fits its schema without
 * a field that the schema does not name, the headers are there, and no header that the document gives to other routes.
 *
 * @throws Error that says what is not documented
 */
export function expectDocumented(exchange: Exchange): void {
  const faults = findFaults(exchange);
  if (faults.length === 0) return;
  const { method, path, status, body } = exchange;
  throw new Error(
    `${method} ${path}: ${status} ${body.slice(0, 200)}\nis not as /openapi.json says: ${faults.join("; ")}`,
  );
}

/** Holds a value, such as a webhook's body, against a schema that the document names. */
export function expectOfSchema(name: string, value: unknown): void {
  const schema = schemas[name];
  if (!schema) throw new Error(`the document has no schema ${name}`);
  const { valid, errors } = validatorOf(schema).validate(value);
  if (!valid) throw new Error(`not a documented ${name}: ${JSON.stringify(value)}\n${describeErrors(errors)}`);
}

function findFaults(exchange: Exchange): string[] {
  const pathname = exchange.path.replace(/[?#].*$/, "");
  const item = routes.find(({ pattern }) => pattern.test(pathname))?.item;
  // The console and the pass are pages for people, without an interface.
  if (/^\/(docs\/|(console|pass)(\/|$))/.test(pathname)) {
    return exchange.headers.has("x-request-id") ? [] : ["every answer has X-Request-Id"];
  }
  if (!item) return faultsOfUnknownPath(exchange);
  if (exchange.method === "OPTIONS" && isForAnyOrigin(item)) return faultsOfPreflight(exchange);
  const operation = operationOf(item, exchange.method);
  const answer = operation ? operation.responses[exchange.status] : methodNotAllowed(item);
  if (!answer) return [`the route does not list the status ${exchange.status}`];
  if (!operation && exchange.status !== 405) return ["the path does not have this method"];
  return [...faultsOfHeaders(exchange.headers, answer), ...faultsOfBody(exchange, answer)];
}

function operationOf(item: PathItem, method: string): Operation | undefined {
  switch (method) {
    case "GET":
    case "HEAD":
      return item.get;
    case "POST":
      return item.post;
    case "PATCH":
      return item.patch;
    default:
      return undefined;
  }
}

function methodNotAllowed(item: PathItem): ResponseObject | undefined {
  return (item.get ?? item.post ?? item.patch)?.responses[405];
}

function isForAnyOrigin(item: PathItem): boolean {
  return methodNotAllowed(item)?.headers?.["Access-Control-Allow-Origin"] !== undefined;
}

function faultsOfUnknownPath({ status, headers, body }: Exchange): string[] {
  const isRight = status === 404 && (body === "" || body === '{"error":"NOT_FOUND"}') && headers.has("x-request-id");
  return isRight ? [] : ["paths that it does not have answer 404 NOT_FOUND"];
}

function faultsOfPreflight({ status, headers }: Exchange): string[] {
  const isRight = status === 204 && headers.get("access-control-allow-origin") === "*" && headers.has("x-request-id");
  return isRight ? [] : ["a preflight answers 204 for any origin"];
}

function faultsOfHeaders(headers: Headers, answer: ResponseObject): string[] {
  const documented = Object.entries(answer.headers ?? {}).map(([name, header]) => ({ name, header: resolve(header) }));
  const faulty = documented.filter(({ name, header }) => {
    const value = headers.get(name);
    return value === null ? header.required : !fits(header.schema, value);
  });
  const names = new Set(documented.map(({ name }) => name));
  const foreign = DOCUMENTED_HEADERS.filter((name) => headers.has(name) && !names.has(name));
  return [
    ...faulty.map(({ name }) => `header ${name} is ${headers.get(name)}`),
    ...foreign.map((name) => `header ${name} is not of this route and status`),
  ];
}

const DOCUMENTED_HEADERS = [
  ...new Set(
    Object.values(openApi.paths)
      .flatMap((item) => Object.values(item))
      .flatMap(({ responses }) => Object.values(responses))
      .flatMap((answer) => Object.keys(answer.headers ?? {})),
  ),
];

function resolve(header: Header | Reference): Header {
  if (!("$ref" in header)) return header;
  const name = header.$ref.replace("#/components/headers/", "");
  const component = openApi.components.headers[name];
  if (!component) throw new Error(`the document has no header ${name}`);
  return component;
}

function faultsOfBody({ method, headers, body }: Exchange, answer: ResponseObject): string[] {
  if (method === "HEAD") return body === "" ? [] : ["an answer to HEAD has no body"];
  const type = headers.get("content-type")?.replace(/;.*/, "") ?? "nothing";
  const content = answer.content?.[type];
  if (!content) return [`the content is ${type}`];
  const { valid, errors } = validatorOf(content.schema).validate(type === "application/json" ? JSON.parse(body) : body);
  return valid ? [] : [`the body: ${describeErrors(errors)}`];
}

export const fits = (schema: Schema, value: unknown): boolean => validatorOf(schema).validate(value).valid;

const describeErrors = (errors: OutputUnit[]): string =>
  errors.map(({ instanceLocation, error }) => `${instanceLocation} ${error}`).join(" ");

function validatorOf(schema: Schema): Validator {
  const known = validators.get(schema);
  if (known) return known;
  const validator = new Validator({ ...strict(schema), components }, "2020-12");
  validators.set(schema, validator);
  return validator;
}

/** Clients ignore fields that they do not know; a test does not: what the service answers is documented. */
function strict(schema: object): JsonSchema {
  return JSON.parse(JSON.stringify(schema), (_key, value) =>
    value !== null && typeof value === "object" && "properties" in value
      ? { additionalProperties: false, ...value }
      : value,
  );
}
