import { once } from "node:events";
import { type IncomingMessage, request } from "node:http";
import { json } from "node:stream/consumers";
import { beforeAll, expect, it } from "vitest";
import * as z from "zod";
import { type Harness, startHarness } from "./support/harness.ts";

const badge = z.object({ badgeId: z.string() });

let service: Harness;

beforeAll(async () => {
  service = await startHarness();
});

/** Unlike `fetch`, this sends headers as they are given. */
async function send(
  method: string,
  path: string,
  headers: Record<string, string>,
  body = "",
): Promise<[status: number | undefined, body: unknown]> {
  const sent = request(new URL(path, service.origin), { method, headers }).end(body);
  const [response]: IncomingMessage[] = await once(sent, "response");
  return [response?.statusCode, response && (await json(response))];
}

it.each([
  ["a space", " "],
  ["tabs", "\t \t"],
])("a header with %s around its value is the header without (contract sections 1 and 4)", async (_, space) => {
  const around = (value: string) => `${space}${value}${space}`;
  const { applicationId, applicationSecret } = service;
  const body = JSON.stringify({ userId: `user after ${space.length}` });
  const udid = `phone-${Math.random()}`;
  const [first, created] = await send("POST", "/v1/badge", { applicationid: applicationId, udid }, body);
  expect(first).toBe(201);
  const spaced = { applicationid: around(applicationId), udid: around(udid) };
  const [second, existing] = await send("POST", "/v1/badge", spaced, body);
  expect([second, existing]).toEqual([200, badge.parse(created)]);
  const server = { applicationid: around(applicationId), applicationsecret: around(applicationSecret) };
  expect((await send("GET", "/v1/badges", server))[0]).toBe(200);
});
