import type { Validator } from "@cfworker/json-schema";
import { z } from "zod";
import type { Operation, Parameter } from "../../src/docs-page/openapi/types.ts";
import { type Exchange, expectDocumented } from "../support/documented.ts";
import { type FuzzRequest, MAX_BODY_BYTES, type Route } from "./requests.ts";
import { type Known, validatorOf } from "./values.ts";

/** No request of a sound form gets one of these. */
const FAULTS_OF_FORM = [400, 401, 405, 413, 422, 429];

/** A request, and its response. */
export type FuzzExchange = Exchange & { sent: FuzzRequest };

/** @returns what is wrong with a response; nothing when all is well */
export function faultsOf(exchange: FuzzExchange, route: Route, known: Known): string[] {
  const { sent, method, path, status, headers, body } = exchange;
  const faults: string[] = [];
  if (status >= 500) faults.push("a fault of the service's own");
  // The document cannot say that one of two times is needed.
  const isNoTime = body === '{"error":"UNDEFINED_EXPIRESAT"}' && route.operation.operationId === "setBadgeTimes";
  if (sent.isSound && !isNoTime && (FAULTS_OF_FORM.includes(status) || body === '{"error":"NOT_FOUND"}')) {
    faults.push("a sound request is refused for its form");
  }
  // The document says it of its own paths only.
  if (status >= 400 && headers.get("cache-control") !== "no-store") faults.push("an error that may be kept");
  const ofTemplate = new RegExp(`^${route.template.replaceAll(/\{\w+\}/g, "[^/?]+")}(\\?|$)`);
  const isGranted = status < 300 && method === route.method && ofTemplate.test(path);
  try {
    expectDocumented(exchange);
    if (isGranted) faults.push(...faultsOfGranted(exchange, route.operation, known));
  } catch (error) {
    faults.push(String(error));
  }
  return faults;
}

/** Calls that succeed even if their body is invalid (contract sections 5 and 23). */
const ACCEPT_ANY_BODY = ["revokeInvitation", "suspendOwnBadge"];

/** What the service granted although it must not: a form that the document does not allow, or wrong credentials. */
function faultsOfGranted(
  { sent: { path, headers, body }, body: response }: FuzzExchange,
  { operationId, parameters = [], requestBody, security }: Operation,
  { schemas, secrets, tokens }: Known,
): string[] {
  const { searchParams } = new URL(path, "https://badges.example");
  // Headers that are blank count as missing (contract section 2).
  const header = (name: string) => (headers[name.toLowerCase()] ?? "").trim();
  // A device says nothing of who asked for it: without a secret that header counts for nothing (contract section 23).
  const isIgnored = (name: string) => name === "actor" && header("applicationsecret") === "";
  // What is not UTF-8 is taken as it is written, percent signs included; the URL's own reader has U+FFFD for it.
  const texts = (name: string) => searchParams.getAll(name).filter((text) => !text.includes("\ufffd"));
  const given = ({ in: place, name }: Parameter) =>
    isIgnored(name) ? [] : place === "query" ? texts(name) : [header(name)].filter((text) => text !== "");
  const wrong = parameters.flatMap((parameter) => {
    const validator = validatorOf(parameter.schema, schemas);
    const read = parameter.schema.type === "integer" ? integer : (text: string) => text;
    const refused = given(parameter).filter((text) => !validator.validate(read(text)).valid);
    return refused.map((text) => `granted with ${parameter.name}=${text}`);
  });
  const schema = requestBody?.content["application/json"]?.schema;
  if (schema && !ACCEPT_ANY_BODY.includes(operationId)) {
    // Of several invitations in one call, of at most 256 KiB, each is granted or refused (contract section 24).
    const isOfMany = operationId === "createInvitations";
    if (body.byteLength > (isOfMany ? 256 * 1024 : MAX_BODY_BYTES)) wrong.push(`granted with ${body.byteLength} bytes`);
    const one = isOfMany ? schemas.InvitationRequest : schema;
    const text = new TextDecoder("utf-8", { fatal: true, ignoreBOM: false }).decode(body);
    // An empty or blank body counts as {} (contract section 2).
    const whole = text.trim() === "" ? "{}" : text;
    const values = isOfMany ? grantedInvitations(whole, response) : [JSON.parse(whole)];
    for (const value of values)
      wrong.push(...faultsOfGrantedBody(JSON.stringify(value), validatorOf(one ?? {}, schemas)));
  }
  if (security.length === 0) return wrong;
  const isNamed = security.some((schemes) => Object.keys(schemes).every((name) => header(name) !== ""));
  const secret = secrets.get(header("applicationid"));
  const isGenuine =
    secret !== undefined &&
    ["", secret].includes(header("applicationsecret")) &&
    (tokens === undefined || tokens.some((token) => sameToken(token, header("authorization"))));
  if (!isNamed) wrong.push("granted without its credentials");
  if (!isGenuine) wrong.push("granted with wrong credentials");
  return wrong;
}

/** The scheme is written in any case, with any spaces behind it (RFC 9110 section 11.1). */
const sameToken = (one: string, other: string): boolean => other.replace(/^bearer +/i, "Bearer ") === one;

const integer = (text: string): number | string =>
  /^\d+$/.test(text) ? Math.min(Number(text), Number.MAX_SAFE_INTEGER) : text;

const invitationsMade = z.object({ invitations: z.array(z.object({ error: z.string().optional() })) });

function grantedInvitations(request: string, response: string): unknown[] {
  const made = invitationsMade.parse(JSON.parse(response)).invitations;
  const asked = z.object({ invitations: z.array(z.unknown()) }).parse(JSON.parse(request)).invitations;
  return asked.filter((_, place) => made[place]?.error === undefined);
}

function faultsOfGrantedBody(text: string, validator: Validator): string[] {
  const without = (isMissing: (value: unknown) => boolean): unknown =>
    JSON.parse(text, (_, value) => (isMissing(value) ? undefined : value));
  // Fields that are null, empty or blank count as missing (contract section 2); the document says where null is a value.
  const isBlank = (value: unknown) => typeof value === "string" && value.trim() === "";
  if (validator.validate(without(isBlank)).valid) return [];
  const { valid, errors } = validator.validate(without((value) => value === null || isBlank(value)));
  return valid ? [] : errors.map(({ instanceLocation, error }) => `granted with ${instanceLocation} ${error}`);
}
