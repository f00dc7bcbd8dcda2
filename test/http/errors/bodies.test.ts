import { exports } from "cloudflare:workers";
import { beforeAll, describe, expect, it, onTestFinished, vi } from "vitest";
import { createApplication, type TestApplication } from "../../support/application.ts";
import { callWith } from "../../support/bindings.ts";
import { requestBadge, serverHeaders } from "../../support/http.ts";
import { linesOf } from "../../support/log-lines.ts";
import { outcome } from "../support/draft.ts";
import { hoursAhead, invite } from "../support/invitations.ts";

const MAX_BYTES = 16 * 1024;

type Body = string | Uint8Array | ReadableStream | undefined;

const encoder = new TextEncoder();

/** Status and code of a call by an application's server, which has no rate limit, from a device that has a badge. */
async function send(application: TestApplication, method: string, path: string, body: Body, type?: string) {
  const headers = new Headers({ ...serverHeaders(application), udid: "phone" });
  if (type !== undefined) headers.set("content-type", type);
  const url = `https://badges.example${path}`;
  const response = await exports.default.fetch(url, { method, headers, ...(body !== undefined && { body }) });
  const { error } = await response.json<{ error?: string }>();
  return error === undefined ? String(response.status) : `${response.status} ${error}`;
}

/** The body with a field that nobody reads, so that it has exactly this size. */
function padded(body: Record<string, unknown>, bytes: number): string {
  const text = JSON.stringify({ ...body, unread: "" });
  return JSON.stringify({ ...body, unread: "x".repeat(bytes - text.length) });
}

/** Sent without a `Content-Length`. */
function chunked(text: string): ReadableStream {
  const { readable, writable } = new TransformStream();
  const writer = writable.getWriter();
  const bytes = encoder.encode(text);
  void writer.write(bytes.slice(0, 10)).then(() => writer.write(bytes.slice(10)).then(() => writer.close()));
  return readable;
}

function notUtf8(text: string): Uint8Array[] {
  const utf16 = new Uint8Array([0xff, 0xfe, ...[...encoder.encode(text)].flatMap((byte) => [byte, 0])]);
  // A lone continuation byte, an overlong slash, half of a surrogate pair, a character cut short.
  const sequences = [[0x80], [0xc0, 0xaf], [0xed, 0xa0, 0x80], [0xf0, 0x9f, 0x98]];
  const [open, close] = [encoder.encode('{"note":"'), encoder.encode('"}')];
  return [utf16, ...sequences.map((sequence) => new Uint8Array([...open, ...sequence, ...close]))];
}

/** The routes that read a body, each with one that it grants. */
const BODY_ROUTES = [
  { path: "/v1/badge", body: { userId: "user" }, granted: "200", empty: "422 UNDEFINED_USERID" },
  { path: "/v1/badge/sign", body: { base64: "aGVsbG8=" }, granted: "200", empty: "422 UNDEFINED_BASE64" },
  { path: "/v1/invitation", body: { expiresAt: hoursAhead(1) }, granted: "201", empty: "422 UNDEFINED_EXPIRESAT" },
];

describe.each(BODY_ROUTES)("the body of POST $path (contract sections 2 and 6)", ({ path, body, granted, empty }) => {
  const text = JSON.stringify(body);
  const [field] = Object.keys(body);
  const members = text.slice(1, -1);
  const form = "application/x-www-form-urlencoded";
  let application: TestApplication;

  beforeAll(async () => {
    application = await createApplication();
    expect((await requestBadge(application, "phone", { userId: "user" })).status).toBe(201);
  });

  it("a body is read as JSON with any Content-Type", async () => {
    const types = ["application/json", "text/plain", "application/xml", "multipart/form-data", form, "nonsense", ""];
    for (const type of [...types, undefined]) {
      expect(`${type}: ${await send(application, "POST", path, text, type)}`).toBe(`${type}: ${granted}`);
    }
    const fields = "userId=user&base64=aGVsbG8=";
    expect(await send(application, "POST", path, fields, form)).toBe("400 INVALID_JSON");
  });

  it.each<[string, string, () => Body[]]>([
    ["counts as {} when it is absent, empty or blank", empty, () => [undefined, "", " \r\n\t", "{}", chunked("")]],
    [
      "is refused when it is not an object",
      "400 INVALID_JSON",
      () => ["[]", `[${text}]`, '"text"', "17", "true", "null"],
    ],
    [
      "is refused when it is not JSON",
      "400 INVALID_JSON",
      () => [
        ...["{", "}", `${text}}`, `${text}${text}`, `// comment\n${text}`, "undefined", "NaN"],
        ...[text.replaceAll('"', "'"), text.replace("}", ",}")],
        ...["\0", `${text}\0`, text.replace(":", ":\u0001"), '{"a":"\n"}'],
      ],
    ],
    ["is refused when it is not UTF-8", "400 INVALID_JSON", () => notUtf8(text)],
    [
      "may start with a byte order mark (RFC 8259 section 8.1)",
      granted,
      () => [new Uint8Array([0xef, 0xbb, 0xbf, ...encoder.encode(text)])],
    ],
    ["uses the last of two fields with the same name", granted, () => [`{"${field}":17,${members}}`]],
    ["uses the last also when that is null", empty, () => [`{${members},"${field}":null}`]],
    [
      "does not take inherited names of objects for fields",
      empty,
      () => [`{"__proto__":${text},"constructor":{"prototype":${text}}}`],
    ],
    [
      "may have 16 KiB, with or without a declared length",
      granted,
      () => [padded(body, MAX_BYTES), chunked(padded(body, MAX_BYTES))],
    ],
    [
      "may have no more, counted in bytes",
      "413 PAYLOAD_TOO_LARGE",
      () => [
        ...[padded(body, MAX_BYTES + 1), chunked(padded(body, MAX_BYTES + 1))],
        JSON.stringify({ ...body, unread: "€".repeat(MAX_BYTES / 2) }),
      ],
    ],
  ])("%s", async (_, expected, bodies) => {
    for (const [place, sent] of bodies().entries()) {
      expect(`body ${place}: ${await send(application, "POST", path, sent)}`).toBe(`body ${place}: ${expected}`);
    }
  });
});

describe("the body of PATCH /v1/invitation/:id/revoke (contract sections 5 and 7)", () => {
  it("the body of a revocation is ignored, but may have at most 16 KiB too", async () => {
    const application = await createApplication();
    const { id } = await invite(application);
    const revoke = (body: Body) => send(application, "PATCH", `/v1/invitation/${id}/revoke`, body);
    const tooLong = "x".repeat(MAX_BYTES + 1);
    expect(await revoke(tooLong)).toBe("413 PAYLOAD_TOO_LARGE");
    expect(await revoke(chunked(tooLong))).toBe("413 PAYLOAD_TOO_LARGE");
    // Where both say the length, Transfer-Encoding counts (RFC 9112 section 6.3).
    const headers = { ...serverHeaders(application), "transfer-encoding": "chunked", "content-length": "2" };
    const url = `https://badges.example/v1/invitation/${id}/revoke`;
    const understated = new Request(url, { method: "PATCH", headers, body: tooLong });
    expect(outcome(await callWith({}, understated))).toBe("413 PAYLOAD_TOO_LARGE");
    const ignored = [undefined, "", "not JSON", "[]", '{"reason":"left"}', new Uint8Array([0xff]), chunked("{}")];
    for (const body of ignored) expect(await revoke(body)).toBe("200");
  });
});

describe("a caller who hangs up within a body (contract section 6)", () => {
  it.each([
    ["of a declared length", { "content-length": "100" }],
    ["of an unknown length", {}],
  ])("%s is no fault of the service: its request has a line as malformed, and none at level error", async (_, more) => {
    const spies = [vi.spyOn(console, "log"), vi.spyOn(console, "error")].map((spy) => spy.mockImplementation(() => {}));
    onTestFinished(() => void vi.restoreAllMocks());
    const application = await createApplication();
    for (const { path } of BODY_ROUTES) {
      const requestId = crypto.randomUUID();
      const body = new ReadableStream({
        start(controller) {
          controller.enqueue(encoder.encode('{"use'));
          controller.error(new Error("Network connection lost."));
        },
      });
      const headers = { ...serverHeaders(application), udid: "phone", "x-request-id": requestId, ...more };
      await callWith({}, new Request(`https://badges.example${path}`, { method: "POST", headers, body }));
      const lines = spies.flatMap((spy) => linesOf(spy)).filter((line) => line.requestId === requestId);
      expect(lines).toMatchObject([{ event: "request", status: 400, code: "INVALID_JSON", detail: "body-cut-off" }]);
    }
  });
});
