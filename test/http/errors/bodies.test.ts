import { exports } from "cloudflare:workers";
import { beforeAll, describe, expect, it } from "vitest";
import { createApplication, type TestApplication } from "../../support/application.ts";
import { sendWith } from "../../support/bindings.ts";
import { outcome, requestBadge, serverHeaders } from "../../support/http.ts";
import { invite } from "../../support/invitations.ts";
import { log } from "../../support/log.ts";

const MAX_BYTES = 16 * 1024;

type Body = string | Uint8Array | ReadableStream | undefined;

const encoder = new TextEncoder();

/** Status and code of a call by an application's server, which has no rate limit, from a device that has a badge. */
async function send(application: TestApplication, method: string, path: string, body: Body, type?: string) {
  const headers = new Headers({ ...serverHeaders(application), udid: "phone" });
  if (type !== undefined) headers.set("content-type", type);
  if (typeof body === "string") headers.set("content-length", String(encoder.encode(body).length));
  const url = `https://badges.example${path}`;
  const response = await exports.default.fetch(url, { method, headers, ...(body !== undefined && { body }) });
  const { error } = await response.json<{ error?: string }>();
  return error === undefined ? String(response.status) : `${response.status} ${error}`;
}

/** Sent without a `Content-Length`. */
const chunked = (text: string): ReadableStream => new Blob([text.slice(0, 10), text.slice(10)]).stream();

function notUtf8(text: string): Uint8Array[] {
  const utf16 = new Uint8Array([0xff, 0xfe, ...[...encoder.encode(text)].flatMap((byte) => [byte, 0])]);
  // A lone continuation byte, an overlong slash, half of a surrogate pair, a character cut short.
  const sequences = [[0x80], [0xc0, 0xaf], [0xed, 0xa0, 0x80], [0xf0, 0x9f, 0x98]];
  const [open, close] = [encoder.encode('{"note":"'), encoder.encode('"}')];
  return [utf16, ...sequences.map((sequence) => new Uint8Array([...open, ...sequence, ...close]))];
}

// That each route reads its body in this way: order.test.ts.
describe("a body (contract sections 2 and 6)", () => {
  const path = "/v1/badge/sign";
  const body = { base64: "aGVsbG8=" };
  const text = JSON.stringify(body);
  const members = text.slice(1, -1);
  const form = "application/x-www-form-urlencoded";
  const [granted, empty] = ["200", "422 UNDEFINED_BASE64"];
  let application: TestApplication;

  beforeAll(async () => {
    application = await createApplication();
    expect((await requestBadge(application, "phone", { userId: "user" })).status).toBe(201);
  });

  it("a body that nobody reads is drained up to 16 MiB, so that the connection stays usable, and no further", async () => {
    let pieces = 0;
    const endless = new ReadableStream({
      pull(controller) {
        pieces++;
        controller.enqueue(new Uint8Array(1024 * 1024));
      },
    });
    const request = new Request("https://badges.example/nowhere", { method: "POST", body: endless });
    expect(outcome(await sendWith({}, request))).toBe("404 NOT_FOUND");
    expect(pieces).toBeGreaterThanOrEqual(16);
    // A stream holds some pieces ready.
    expect(pieces).toBeLessThan(20);
  });

  it("a body is read as JSON with any Content-Type", async () => {
    for (const type of ["application/json", "text/plain", "application/xml", form, "nonsense", "", undefined]) {
      expect(`${type}: ${await send(application, "POST", path, text, type)}`).toBe(`${type}: ${granted}`);
    }
    expect(await send(application, "POST", path, "base64=aGVsbG8=", form)).toBe("400 INVALID_JSON");
  });

  const exactly = (bytes: number) => text.replace("{", `{"unread":"${"x".repeat(bytes - text.length - 12)}",`);
  const notObjects = ["[]", `[${text}]`, '"text"', "17", "true", "null"];
  const notJson = [
    ...["{", "}", `${text}}`, `${text}${text}`, `// comment\n${text}`, "undefined", "NaN"],
    ...[text.replaceAll('"', "'"), text.replace("}", ",}")],
    ...["\0", `${text}\0`, text.replace(":", ":\u0001"), '{"a":"\n"}'],
  ];
  const inherited = `{"__proto__":${text},"constructor":{"prototype":${text}}}`;

  it.each<[string, string, () => Body[]]>([
    ["counts as {} when it is absent, empty or blank", empty, () => [undefined, "", " \r\n\t", "{}", chunked("")]],
    ["is refused when it is not JSON, or no object", "400 INVALID_JSON", () => [...notObjects, ...notJson]],
    ["is refused when it is not UTF-8", "400 INVALID_JSON", () => notUtf8(text)],
    ["may start with a byte order mark (RFC 8259 section 8.1)", granted, () => [encoder.encode(`\ufeff${text}`)]],
    ["uses the last of two fields with the same name", granted, () => [`{"base64":17,${members}}`]],
    ["uses the last also when that is null", empty, () => [`{${members},"base64":null}`]],
    ["does not take inherited names of objects for fields", empty, () => [inherited]],
    [
      "may have 16 KiB, with or without a declared length",
      granted,
      () => [exactly(MAX_BYTES), chunked(exactly(MAX_BYTES))],
    ],
    [
      "may have no more, counted in bytes",
      "413 PAYLOAD_TOO_LARGE",
      () => [exactly(MAX_BYTES + 1), chunked(exactly(MAX_BYTES + 1)), `"${"€".repeat(MAX_BYTES / 2)}"`],
    ],
  ])("%s", async (_, expected, bodies) => {
    for (const [place, sent] of bodies().entries()) {
      expect(`body ${place}: ${await send(application, "POST", path, sent)}`).toBe(`body ${place}: ${expected}`);
    }
  });
});

it("the body of a revocation is ignored, but may have at most 16 KiB too (contract sections 5 and 7)", async () => {
  const application = await createApplication();
  const { token } = await invite(application);
  const revoke = (body: Body) => send(application, "PATCH", `/v1/invitation/${token}/revoke`, body);
  const tooLong = "x".repeat(MAX_BYTES + 1);
  expect(await revoke(chunked(tooLong))).toBe("413 PAYLOAD_TOO_LARGE");
  // Where both say the length, Transfer-Encoding counts (RFC 9112 section 6.3).
  const headers = { ...serverHeaders(application), "transfer-encoding": "chunked", "content-length": "2" };
  const url = `https://badges.example/v1/invitation/${token}/revoke`;
  const understated = new Request(url, { method: "PATCH", headers, body: tooLong });
  expect(outcome(await sendWith({}, understated))).toBe("413 PAYLOAD_TOO_LARGE");
  const ignored = [undefined, "", "not JSON", "[]", '{"reason":"left"}', new Uint8Array([0xff]), chunked("{}")];
  for (const body of ignored) expect(await revoke(body)).toBe("200");
});

it("a caller who hangs up is no fault of the service: its request has a line as malformed, and none at level error (contract section 6)", async () => {
  const application = await createApplication();
  for (const length of [{ "content-length": "100" }, {}]) {
    const requestId = crypto.randomUUID();
    const body = new ReadableStream({
      start(controller) {
        controller.enqueue(encoder.encode('{"use'));
        controller.error(new Error("Network connection lost."));
      },
    });
    const headers = { ...serverHeaders(application), udid: "phone", "x-request-id": requestId, ...length };
    await sendWith({}, new Request("https://badges.example/v1/badge", { method: "POST", headers, body }));
    const lines = log.lines().filter((line) => line.requestId === requestId);
    expect(lines).toMatchObject([{ event: "request", status: 400, code: "INVALID_JSON", detail: "body-cut-off" }]);
  }
});
