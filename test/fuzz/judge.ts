import { type Schema as JsonSchema, Validator } from "@cfworker/json-schema";
import type { OpenApiDocument, Operation } from "../../src/docs-page/openapi/types.ts";
import { STATUS_OF_CODE } from "../http/support/codes.ts";
import { type Exchange, expectDocumented } from "../support/documented.ts";
import type { FuzzRequest } from "./requests.ts";

/** No request of a sound form gets one of these. */
const FAULTS_OF_FORM = [400, 401, 405, 413, 422, 429];

/** @returns what is wrong with a response, whatever the request was; nothing when all is well */
export function faultsOfResponse(request: FuzzRequest, exchange: Exchange): string[] {
  const { method, status, headers, body } = exchange;
  const faults: string[] = [];
  if (status >= 500) faults.push("a fault of the service's own");
  if (request.isSound && (FAULTS_OF_FORM.includes(status) || body === '{"error":"NOT_FOUND"}')) {
    faults.push("a sound request is refused for its form");
  }
  if (!headers.has("x-request-id")) faults.push("no X-Request-Id");
  if (status >= 400 && headers.get("cache-control") !== "no-store") faults.push("an error that may be kept");
  if (status >= 400 && method !== "HEAD") faults.push(...faultsOfError(status, body));
  try {
    expectDocumented(exchange);
  } catch (error) {
    faults.push(String(error));
  }
  return faults;
}

function faultsOfError(status: number, body: string): string[] {
  const code = /^\{"error":"(\w+)"\}$/.exec(body)?.[1];
  if (code === undefined) return ["not an error body"];
  return STATUS_OF_CODE.get(code) === status ? [] : ["not of the error table"];
}

/**
 * What the service granted although it must not: a form that the document does not allow, or wrong credentials.
 *
 * @param request to this operation, answered 2xx
 * @param secrets by application ID
 */
export function faultsOfGranted(
  request: FuzzRequest,
  operation: Operation,
  { components }: Pick<OpenApiDocument, "components">,
  secrets: ReadonlyMap<string, string>,
): string[] {
  const { searchParams } = new URL(request.path, "https://badges.example");
  const has = (name: string) => (request.headers[name] ?? "").trim() !== "";
  const isNamed = operation.security.some((schemes) => Object.keys(schemes).every(has));
  const integers = (operation.parameters ?? []).filter(({ schema }) => schema.type === "integer");
  const wrong = integers.filter(({ name, schema: { minimum = 0 } }) =>
    searchParams.getAll(name).some((text) => !/^\d+$/.test(text) || BigInt(text) < minimum),
  );
  const secret = secrets.get((request.headers.applicationid ?? "").trim());
  const isGenuine = secret !== undefined && (!has("applicationsecret") || request.headers.applicationsecret === secret);
  return [
    ...(operation.security.length > 0 && !isNamed ? ["granted without its credentials"] : []),
    ...(operation.security.length > 0 && !isGenuine ? ["granted with wrong credentials"] : []),
    ...wrong.map(({ name }) => `granted with ${name}=${searchParams.getAll(name)}`),
    ...faultsOfGrantedBody(request.body, operation, components.schemas),
  ];
}

function faultsOfGrantedBody(
  body: FuzzRequest["body"],
  { requestBody }: Operation,
  schemas: OpenApiDocument["components"]["schemas"],
): string[] {
  const schema = requestBody?.content["application/json"]?.schema;
  if (schema === undefined) return [];
  const text = typeof body === "string" ? body : new TextDecoder().decode(body ?? undefined);
  const whole: JsonSchema = JSON.parse(JSON.stringify({ ...schema, components: { schemas } }));
  const validator = new Validator(whole, "2020-12");
  // The document says where null is a value.
  if (validator.validate(JSON.parse(text, withoutBlanks)).valid) return [];
  const { valid, errors } = validator.validate(JSON.parse(text, withoutMissing));
  return valid ? [] : errors.map(({ instanceLocation, error }) => `granted with ${instanceLocation} ${error}`);
}

/** Fields that are null, empty or blank count as missing (contract section 2). */
const withoutMissing = (name: string, value: unknown): unknown =>
  value === null ? undefined : withoutBlanks(name, value);

const withoutBlanks = (_name: string, value: unknown): unknown =>
  typeof value === "string" && value.trim() === "" ? undefined : value;
