import { exports } from "cloudflare:workers";
import { beforeEach, describe, expect, it, vi } from "vitest";
import { createApplication } from "../../support/application.ts";
import { requestBadge } from "../../support/http.ts";
import { hoursAhead, invite } from "../support/invitations.ts";

const MAX_BYTES = 16 * 1024;

beforeEach(() => {
  vi.spyOn(console, "log").mockImplementation(() => {});
});

interface BodyRoute {
  method: string;
  path: string;
  body: Record<string, unknown>;
  granted: number;
  withoutFields: string;
}

/** The routes that read a body, each with one that it grants to a device that has a badge. */
const BODY_ROUTES: BodyRoute[] = [
  { method: "POST", path: "/v1/badge", body: { userId: "user" }, granted: 200, withoutFields: "UNDEFINED_USERID" },
  {
    method: "POST",
    path: "/v1/badge/sign",
    body: { base64: "aGVsbG8=" },
    granted: 200,
    withoutFields: "UNDEFINED_BASE64",
  },
  {
    method: "POST",
    path: "/v1/invitation",
    body: { expiresAt: hoursAhead(1) },
    granted: 201,
    withoutFields: "UNDEFINED_EXPIRESAT",
  },
];

type Body = string | Uint8Array | ReadableStream | undefined;

/** Each device of its own application, so that no rate limit is near. */
async function newDevice(): Promise<
  (route: { method: string; path: string }, body: Body, type?: string) => Promise<string>
> {
  const application = await createApplication();
  expect((await requestBadge(application, "phone", { userId: "user" })).status).toBe(201);
  return async ({ method, path }, body, type) => {
    const headers = new Headers({ applicationid: application.id, udid: "phone" });
    if (type !== undefined) headers.set("content-type", type);
    const url = `https://badges.example${path}`;
    const response = await exports.default.fetch(url, { method, headers, ...(body !== undefined && { body }) });
    const answer = await response.json<{ error?: string }>();
    return answer.error === undefined ? String(response.status) : `${response.status} ${answer.error}`;
  };
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
  const bytes = new TextEncoder().encode(text);
  void writer.write(bytes.slice(0, 10)).then(() => writer.write(bytes.slice(10)).then(() => writer.close()));
  return readable;
}

describe.each(BODY_ROUTES)("the body of $method $path (contract sections 2 and 6)", (route) => {
  const { body, granted, withoutFields } = route;

  it("is read as JSON whatever Content-Type says", async () => {
    const send = await newDevice();
    const types = [
      "application/json",
      "text/plain",
      "application/xml",
      "multipart/form-data",
      "nonsense",
      "",
      undefined,
    ];
    for (const type of types) expect(await send(route, JSON.stringify(body), type)).toBe(String(granted));
    const form = "application/x-www-form-urlencoded";
    expect(await send(route, JSON.stringify(body), form)).toBe(String(granted));
    expect(await send(route, "userId=user&base64=aGVsbG8=", form)).toBe("400 INVALID_JSON");
  });

  it("counts as {} when it is absent, empty or blank", async () => {
    const send = await newDevice();
    const empty = [undefined, "", " \r\n\t", "{}", new Uint8Array(0), chunked("")];
    for (const nothing of empty) expect(await send(route, nothing)).toBe(`422 ${withoutFields}`);
  });

  it("is refused when it is not JSON or not an object", async () => {
    const send = await newDevice();
    const text = JSON.stringify(body);
    const faulty = ["[]", `[${text}]`, '"text"', "17", "true", "null", "{", "}", `${text}}`, `${text}${text}`];
    const nearlyJson = [text.replaceAll('"', "'"), text.replace("}", ",}"), `// comment\n${text}`, "undefined", "NaN"];
    const control = ["\0", `${text}\0`, text.replace(":", ":\u0001"), '{"a":"\n"}'];
    for (const refused of [...faulty, ...nearlyJson, ...control]) {
      expect(`${refused}: ${await send(route, refused)}`).toBe(`${refused}: 400 INVALID_JSON`);
    }
  });

  it("is refused when it is not UTF-8, and may start with a byte order mark (RFC 8259 section 8.1)", async () => {
    const send = await newDevice();
    const bytes = new TextEncoder().encode(JSON.stringify(body));
    expect(await send(route, new Uint8Array([0xef, 0xbb, 0xbf, ...bytes]))).toBe(String(granted));
    const utf16 = new Uint8Array([0xff, 0xfe, ...[...bytes].flatMap((byte) => [byte, 0])]);
    const open = new TextEncoder().encode('{"note":"');
    const close = new TextEncoder().encode('"}');
    // A lone continuation byte, an overlong slash, half of a surrogate pair, a character cut short.
    const sequences = [[0x80], [0xc0, 0xaf], [0xed, 0xa0, 0x80], [0xf0, 0x9f, 0x98]];
    const invalid = sequences.map((sequence) => new Uint8Array([...open, ...sequence, ...close]));
    for (const refused of [utf16, ...invalid]) expect(await send(route, refused)).toBe("400 INVALID_JSON");
  });

  it("uses the last of two fields with the same name", async () => {
    const send = await newDevice();
    const [field] = Object.keys(body);
    const members = JSON.stringify(body).slice(1, -1);
    expect(await send(route, `{"${field}":17,${members}}`)).toBe(String(granted));
    expect(await send(route, `{${members},"${field}":null}`)).toBe(`422 ${withoutFields}`);
  });

  it("does not take inherited names of objects for fields", async () => {
    const send = await newDevice();
    const inherited = `{"__proto__":${JSON.stringify(body)},"constructor":{"prototype":${JSON.stringify(body)}}}`;
    expect(await send(route, inherited)).toBe(`422 ${withoutFields}`);
  });

  it("may have at most 16 KiB, with or without a declared length", async () => {
    const send = await newDevice();
    const longest = padded(body, MAX_BYTES);
    const tooLong = padded(body, MAX_BYTES + 1);
    expect(await send(route, longest)).toBe(String(granted));
    expect(await send(route, chunked(longest))).toBe(String(granted));
    expect(await send(route, tooLong)).toBe("413 PAYLOAD_TOO_LARGE");
    expect(await send(route, chunked(tooLong))).toBe("413 PAYLOAD_TOO_LARGE");
    // Bytes are counted, not characters.
    expect(await send(route, JSON.stringify({ ...body, unread: "€".repeat(MAX_BYTES / 2) }))).toBe(
      "413 PAYLOAD_TOO_LARGE",
    );
  });
});

describe("the body of PATCH /v1/invitation/:id/revoke (contract sections 5 and 7)", () => {
  it("is ignored, but may have at most 16 KiB too", async () => {
    const application = await createApplication();
    const { id } = await invite(application);
    const revoke = async (body: Body) => {
      const response = await exports.default.fetch(`https://badges.example/v1/invitation/${id}/revoke`, {
        method: "PATCH",
        headers: { applicationid: application.id, applicationsecret: application.secret },
        ...(body !== undefined && { body }),
      });
      return `${response.status} ${(await response.json<{ error?: string }>()).error ?? "revoked"}`;
    };
    const tooLong = "x".repeat(MAX_BYTES + 1);
    expect(await revoke(tooLong)).toBe("413 PAYLOAD_TOO_LARGE");
    expect(await revoke(chunked(tooLong))).toBe("413 PAYLOAD_TOO_LARGE");
    const ignored = [undefined, "", "not JSON", "[]", '{"reason":"left"}', new Uint8Array([0xff]), chunked("{}")];
    for (const body of ignored) expect(await revoke(body)).toBe("200 revoked");
  });
});
