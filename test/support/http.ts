import { exports } from "cloudflare:workers";
import { newAddress } from "./address.ts";
import type { TestApplication } from "./application.ts";
import { expectDocumented } from "./documented.ts";

export interface Answer {
  status: number;
  body: Record<string, unknown>;
  headers: Headers;
}

/** Status and error code in one word, for tables of many answers. An error tells nothing but its code. */
export function outcome({ status, body }: Answer): string {
  const { error, ...more } = body;
  if (error === undefined) return String(status);
  return `${status} ${String(error)}${Object.keys(more).length === 0 ? "" : JSON.stringify(more)}`;
}

export const BADGE = "/v1/badge";
export const SIGN = "/v1/badge/sign";
/** What a device signs in every test that signs. */
export const A_SIGNATURE = { base64: "aGVsbG8=" };

/** Calls the Worker as a client does. */
export async function callText(
  path: string,
  { method = "GET", headers, body }: { method?: string; headers?: Record<string, string>; body?: string | undefined },
): Promise<{ status: number; headers: Headers; text: string }> {
  const response = await exports.default.fetch(`https://badges.example${path}`, {
    method,
    headers: { "cf-connecting-ip": newAddress(), ...headers },
    ...(body !== undefined && { body }),
  });
  const { status, headers: sent } = response;
  // Not text(), which warns of a type that is not text.
  const text = new TextDecoder().decode(await response.bytes());
  expectDocumented({ method, path, status, headers: sent, body: text });
  return { status, headers: sent, text };
}

/** `body` is sent as JSON, or as it is when it is a string. */
export interface CallOptions {
  headers?: Record<string, string>;
  body?: unknown;
}

export const jsonOf = (body: unknown): string | undefined =>
  body === undefined || typeof body === "string" ? body : JSON.stringify(body);

/** The same for JSON. */
export async function call(method: string, path: string, options: CallOptions = {}): Promise<Answer> {
  const { headers: own = {}, body } = options;
  const { status, headers, text } = await callText(path, { method, headers: own, body: jsonOf(body) });
  // The page at /docs is HTML.
  const isJson = text !== "" && headers.get("content-type") === "application/json";
  return { status, body: isJson ? JSON.parse(text) : {}, headers };
}

export function requestBadge(application: { id: string }, udid: string, body: unknown): Promise<Answer> {
  return call("POST", BADGE, { headers: { applicationid: application.id, udid }, body });
}

export function sign(application: { id: string }, udid: string, body: unknown): Promise<Answer> {
  return call("POST", SIGN, { headers: { applicationid: application.id, udid }, body });
}

export function callServer(
  application: TestApplication,
  method: string,
  path: string,
  body?: unknown,
  headers: Record<string, string> = {},
): Promise<Answer> {
  return call(method, path, { headers: { ...serverHeaders(application), ...headers }, body });
}

export function serverHeaders({ id, secret }: TestApplication): Record<string, string> {
  return { applicationid: id, applicationsecret: secret };
}
