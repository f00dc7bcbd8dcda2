import { decodeJwt } from "jose";
import { expect } from "vitest";
import { z } from "zod";
import { runSql } from "../support/home.ts";
import { call, callText } from "../support/http.ts";
import { issueTo, signOn } from "./life-support.ts";

export const listPath = (application: { id: string }, list: number | string): string =>
  `/v1/applications/${application.id}/status/${list}`;

/** A door asks for a list. It has no credentials. */
export const getList = (
  application: { id: string },
  list: number | string = 0,
  query = "",
  init: { method?: string } = {},
): ReturnType<typeof callText> => callText(listPath(application, list) + query, init);

const listClaims = z.strictObject({
  sub: z.string(),
  iat: z.int(),
  exp: z.int(),
  ttl: z.int(),
  change: z.int(),
  status_list: z.strictObject({ bits: z.literal(2), lst: z.string() }),
});

/** The claims of a list, exactly those of the contract. */
export const claimsOf = (jwt: string): z.infer<typeof listClaims> => listClaims.parse(decodeJwt(jwt));

/** The bytes of a list, two bits an entry, as a door reads them (draft-ietf-oauth-status-list-20 section 4). */
export async function inflate(lst: string): Promise<Uint8Array> {
  const compressed = Uint8Array.from(atob(lst.replaceAll("-", "+").replaceAll("_", "/")), (each) => each.charCodeAt(0));
  return new Response(new Blob([compressed]).stream().pipeThrough(new DecompressionStream("deflate"))).bytes();
}

export const entryOf = (bytes: Uint8Array, idx: number): number =>
  ((bytes[idx >> 2] ?? Number.NaN) >> ((idx & 3) * 2)) & 3;

export async function entriesOf(jwt: string): Promise<(idx: number) => number> {
  const bytes = await inflate(claimsOf(jwt).status_list.lst);
  return (idx) => entryOf(bytes, idx);
}

const statusClaims = z.object({
  status: z.strictObject({ status_list: z.strictObject({ idx: z.int(), uri: z.string() }) }),
});

/** Where a signature says that its badge's state stands. */
const statusOf = (signature: string) => statusClaims.parse(decodeJwt(signature)).status.status_list;

/** Signs on a device. @returns where its badge's state stands */
export async function indexOn(application: { id: string }, udid: string): Promise<{ idx: number; uri: string }> {
  const { status, body } = await signOn(application, udid);
  expect(status).toBe(200);
  return statusOf(String(body.signature));
}

/** Gives the application's only badge this ordinal, as though that many badges had been issued. */
export async function moveBadge({ id }: { id: string }, ordinal: number): Promise<void> {
  await runSql("UPDATE badge SET ordinal = ?2 WHERE application_id = ?1", id, ordinal);
  await runSql("UPDATE application_head SET last_ordinal = ?2 WHERE application_id = ?1", id, ordinal);
}

/** A device with a badge, and where the state of that stands. */
export async function holder(application: { id: string }, udid: string): Promise<{ number: string; idx: number }> {
  const number = await issueTo(application, udid, `user of ${udid}`);
  return { number, idx: (await indexOn(application, udid)).idx };
}

const keySet = z.object({ keys: z.array(z.looseObject({ kid: z.string(), kty: z.string() })) });

export const keysOf = async ({ id }: { id: string }): Promise<z.infer<typeof keySet>> =>
  keySet.parse((await call("GET", `/v1/applications/${id}/jwks.json`)).body);
