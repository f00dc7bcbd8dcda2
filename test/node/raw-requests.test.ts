import { once } from "node:events";
import { type IncomingMessage, request } from "node:http";
import { connect, type Socket } from "node:net";
import { json } from "node:stream/consumers";
import { beforeAll, describe, expect, it } from "vitest";
import { type Harness, startHarness } from "./support/harness.ts";

let service: Harness;

beforeAll(async () => {
  service = await startHarness();
});

function connectToService(): Socket {
  const { hostname, port } = new URL(service.origin);
  return connect(Number(port), hostname).setEncoding("utf8");
}

const PIECE = "x".repeat(1000);

/** Sends a request whose body does not say its length. @returns the status, and how the connection failed if it did */
async function sendChunked(head: string, pieces: number): Promise<string> {
  const socket = connectToService();
  let received = "";
  let failure = "";
  socket.on("error", (error) => (failure = ` ${"code" in error ? String(error.code) : error.message}`));
  socket.on("data", (text) => {
    received += text;
    if (received.includes('"}')) socket.end();
  });
  socket.write(`${head}\r\nHost: localhost\r\nTransfer-Encoding: chunked\r\n\r\n`);
  for (let piece = 0; piece < pieces; piece++) socket.write(`${PIECE.length.toString(16)}\r\n${PIECE}\r\n`);
  socket.write("0\r\n\r\n");
  await once(socket, "close");
  return `${/^HTTP\/1\.1 (\d+)/.exec(received)?.[1]}${failure}`;
}

describe("a request body that the service does not read (contract sections 6 and 7)", () => {
  const device = () => `applicationid: ${service.applicationId}\r\nudid: phone-${Math.random()}`;

  it.each<[string, string, () => string, number]>([
    ["413, much too large", "413", () => `POST /v1/badge HTTP/1.1\r\n${device()}`, 1000],
    ["413, to a stranger", "413", () => "POST /v1/badge/sign HTTP/1.1\r\napplicationid: nobody", 1000],
    ["401", "401", () => "POST /v1/badge HTTP/1.1\r\napplicationid: nobody", 10],
    ["404", "404", () => "POST /nowhere HTTP/1.1", 1000],
  ])(
    "a call whose body is not read gets its response %s, and the next caller gets its own",
    async (_, status, head, pieces) => {
      for (let round = 0; round < 2; round++) {
        expect(await sendChunked(head(), pieces)).toBe(status);
        const next = await fetch(new URL("/health", service.origin));
        expect([next.status, await next.json()]).toEqual([200, { status: "ok" }]);
      }
    },
  );

  it("a request body that never ends is cut off after some seconds", { timeout: 20_000 }, async () => {
    const socket = connectToService().on("error", () => {});
    socket.write("POST /nowhere HTTP/1.1\r\nHost: localhost\r\nTransfer-Encoding: chunked\r\n\r\n5\r\nhello\r\n");
    const [first] = await once(socket, "data");
    expect(String(first)).toMatch(/^HTTP\/1\.1 404 /);
    socket.destroy();
    expect((await fetch(new URL("/health", service.origin))).status).toBe(200);
  });
});

/** Unlike `fetch`, this sends headers as they are given. */
async function send(method: string, path: string, headers: Record<string, string>, body = "") {
  const sent = request(new URL(path, service.origin), { method, headers }).end(body);
  const [response]: IncomingMessage[] = await once(sent, "response");
  return [response?.statusCode, response && (await json(response))];
}

it.each([
  ["a space", " "],
  ["tabs", "\t \t"],
])("a header with %s around its value is the header without (contract sections 1 and 4)", async (_, space) => {
  const around = (value: string) => `${space}${value}${space}`;
  const { applicationId: applicationid, applicationSecret } = service;
  const body = JSON.stringify({ userId: `user after ${space.length}` });
  const udid = `phone-${Math.random()}`;
  expect((await send("POST", "/v1/badge", { applicationid, udid }, body))[0]).toBe(201);
  const spaced = { applicationid: around(applicationid), udid: around(udid) };
  expect(await send("POST", "/v1/badge", spaced, body)).toEqual([200, { badgeId: expect.any(String) }]);
  const server = { applicationid: around(applicationid), applicationsecret: around(applicationSecret) };
  expect((await send("GET", "/v1/badges", server))[0]).toBe(200);
});
