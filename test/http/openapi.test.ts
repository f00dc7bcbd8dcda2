import { Webhook } from "standardwebhooks";
import { describe, expect, it, vi } from "vitest";
import { z } from "zod";
import { openApiDocument } from "../../src/docs-page/openapi/document.ts";
import { describeDelays } from "../../src/docs-page/openapi/webhook-guide.ts";
import { PUBLIC_ERRORS } from "../../src/shared/error-table.ts";
import {
  EXAMPLE_APPLICATION_ID,
  EXAMPLE_BADGE,
  EXAMPLE_CLIENT_SIGNATURE,
  EXAMPLE_JWK,
  EXAMPLE_PUBLIC_KEY,
  EXAMPLE_SECRET,
  EXAMPLE_SIGNATURE,
  EXAMPLE_SIGNATURE_CLAIMS,
  EXAMPLE_WEBHOOK_BODY,
  EXAMPLE_WEBHOOK_HEADERS,
} from "../../src/shared/openapi-examples.ts";
import { verifyBadgeSignature } from "../../src/verify/badge-signature.ts";
import { app } from "../../src/worker/http/app.ts";
import { runSweep, setEnd, takeStep } from "../badges/life-support.ts";
import { RECORDED_EVENTS, readRows } from "../invitations/support/storage.ts";
import { createApplication } from "../support/application.ts";
import { expectOfSchema } from "../support/documented.ts";
import { call, requestBadge, serverHeaders } from "../support/http.ts";
import { SUBSCRIBABLE } from "../support/subscribable.ts";
import { expiredInvitation, hoursAhead, invite, revokedInvitation } from "./support/invitations.ts";
import { signIn } from "./support/people.ts";

const openApi = openApiDocument(Date.now());

describe("GET /openapi.json (contract section 11)", () => {
  it("GET /openapi.json returns the OpenAPI 3.1 document of version 1.0.0, which caches may store for five minutes", async () => {
    const { status, body, headers } = await call("GET", "/openapi.json");
    expect(status).toBe(200);
    expect(body).toMatchObject({ openapi: "3.1.0", info: { version: "1.0.0" } });
    expect(headers.get("content-type")).toBe("application/json");
    expect(headers.get("cache-control")).toBe("public, max-age=300");
    // But for the example that lies ahead, it is what the schemas make.
    expect(Object.keys(body)).toEqual(Object.keys(openApi));
    expect(body.components).toEqual(JSON.parse(JSON.stringify(openApi.components)));
  });

  it("the OpenAPI document has every route of the service and no other, except /console and /pass, which are pages for people", () => {
    const routes = app.routes
      .filter(({ path, method }) => method !== "ALL" && !path.includes("*") && !/^\/(docs\/|console|pass)/.test(path))
      .map(({ path, method }) => `${method} ${path.replaceAll(/:(\w+)/g, "{$1}")}`);
    const documented = Object.entries(openApi.paths).flatMap(([path, item]) =>
      Object.keys(item).map((method) => `${method.toUpperCase()} ${path}`),
    );
    expect([...new Set(routes)].sort()).toEqual(documented.sort());
  });

  it("the OpenAPI document names every claim of a badge signature, and every refusal of a badge that signs nothing", () => {
    const description = openApi.paths["/v1/badge/sign"]?.post?.description;
    for (const claim of ["sub", "aud", "iat", "nbf", "exp", "client_signature", "cnf", "status"]) {
      expect(description).toContain(`\n* \`${claim}\``);
    }
    for (const code of ["SUSPENDED_BADGE", "REVOKED_BADGE", "EXPIRED_BADGE", "EARLY_BADGE"]) {
      expect(description).toContain(code);
    }
  });

  it("the OpenAPI document has every code of the error table, with its status", () => {
    for (const [code, { status }] of Object.entries(PUBLIC_ERRORS)) {
      expect(openApi.info.description).toContain(`* ${status} **\`${code}\`**`);
    }
  });
});

describe("the headers with credentials (contract sections 2 to 5)", () => {
  const operations = Object.entries(openApi.paths).flatMap(([path, item]) =>
    Object.entries(item).map(([method, operation]) => ({ name: `${method.toUpperCase()} ${path}`, operation })),
  );
  const headersOf = ({ parameters = [] }: (typeof operations)[number]["operation"]) =>
    Object.fromEntries(parameters.filter((one) => one.in === "header").map(({ name, required }) => [name, required]));

  it("headers with credentials are also parameters, required where the contract requires them, because typed clients ignore security schemes", () => {
    const byServer = { applicationid: true, applicationsecret: true };
    const byActor = { ...byServer, actor: false };
    const byChanger = { ...byActor, "If-Match": false };
    const byDevice = { applicationid: true, udid: true, DPoP: false, bookmark: false };
    // OpenAPI has Authorization in security schemes alone.
    const byPerson = { applicationid: true, DPoP: false };
    const byInviter = { applicationid: true, applicationsecret: false, actor: false };
    // The key says which call it is, not who calls.
    const ofKey = { "Idempotency-Key": false };
    const expected: Record<string, Record<string, boolean>> = {
      "POST /v1/badge": byDevice,
      "POST /v1/badge/sign": byDevice,
      "GET /v1/user/badges": byPerson,
      "PATCH /v1/user/badges/{id}/suspend": byPerson,
      "POST /v1/events/{id}/replay": byActor,
      "GET /v1/invitation": { applicationid: true, invitationtoken: true },
      "POST /v1/invitation": { ...byInviter, ...ofKey, udid: true },
      "POST /v1/invitations": { ...byActor, ...ofKey, udid: true },
      "PATCH /v1/invitation/{id}/revoke": { ...byInviter, udid: false },
      "PATCH /v1/invitation/{id}/erase": byActor,
    };
    for (const { name } of operations) {
      if (/^PATCH \/v1\/badges\//.test(name)) expected[name] = byChanger;
      else if (/^PATCH \/v1\/users\//.test(name)) expected[name] = byActor;
      // What doors and people read.
      else if (!name.startsWith("GET /v1/") || name.startsWith("GET /v1/applications/")) expected[name] ??= {};
      else expected[name] ??= byServer;
    }
    expect(Object.fromEntries(operations.map(({ name, operation }) => [name, headersOf(operation)]))).toEqual(expected);
  });
});

describe("what the reference tells an integrator", () => {
  const reference = JSON.stringify(openApi);

  it("every description, example and value of the reference says something", () => {
    const empty: string[] = [];
    JSON.stringify(openApi, (key, value: unknown) => {
      // A receiver may answer without a body.
      if (value === "" && key !== "lastResponse") empty.push(key);
      return value;
    });
    expect(empty).toEqual([]);
  });

  it("the example of an application has the first default range (contract section 1)", () => {
    expect(openApi.components.schemas.Application?.properties).toMatchObject({
      firstNumber: { examples: [1_000_000_000] },
      lastNumber: { examples: [1_009_999_999] },
    });
  });

  it.each([
    ["1", ["decimal, without leading zeros, at most 9007199254740991"]],
    ["4", ["`per_page` | 100 by default, at most 1,000 |"]],
    ["5", ["in the future, at most 365 days ahead, at most 40 characters"]],
    ["7", ["body | 16 KiB |", "`udid` | 1 to 255 printable", "`userId` | 1 to 255 characters and at most 512 bytes"]],
    ["7", ["each at most 256 characters, together at most 1,024 bytes", "any time of the years 1970 to 9999"]],
    ["7", ["each key of it | 60 a minute", "a new badge | 1,200 a minute", "from one address | 120 a minute"]],
    ["7", ["fresh numbers in a clock hour (10,000 unless"]],
    ["8", ["within 15 seconds", "14 attempts over 77 hours", "after 60 seconds or later", "honoured up to 10 hours"]],
    ["12", ["at most 3,650 days ahead", "`Idempotency-Key` | 1 to 255 printable"]],
    ["12", ["once the invitation or its user was erased", "it reserves another number under the same token"]],
    ["14", ["`ttl`: 60, the seconds after", "the 131,072 entries", "public, max-age=60"]],
    [
      "15",
      [
        "was given at most 300 s ago",
        "within 60 s of the service's clock",
        "with another key within 24 hours binds it",
      ],
    ],
    ["15", ["created with the application's secret and names this `userId`, any valid proof"]],
    ["15", ["`DPoP` | 4,096 characters", "`jti` | a random text of 1 to 256 characters"]],
    ["22", ["60 s of leeway", "a JWT; at most 16,384 characters"]],
    ["23", ["`reason` is not a string of 1 to 500 characters", "`actor` of a history, is not 1 to 100 characters"]],
    ["24", ["not a list of 1 to 100.", "At most 256 KiB.", "in any case: at least 2 characters"]],
    ["26", ["else after 50 seconds", "more than 2,000 changes", "At most 5,000 doors"]],
  ])("the reference states the numbers and conditions of contract section %s: %j", (_section, numbers) => {
    expect(numbers.filter((text) => !reference.includes(text))).toEqual([]);
  });
});

// What is taken at these lengths and refused beyond: errors/fields.ts.
describe("the shapes of requests (contract sections 2, 3, 5 and 7)", () => {
  const schemas = openApi.components.schemas;

  it.each([
    ["BadgeRequest", "userId", 1, 255],
    ...["deviceModel", "os", "osVersion", "sdkVersion"].map((field) => ["Metadata", field, 1, 256] as const),
    // 4,096 bytes leave one over after the last three: two characters of padding.
    ["SignRequest", "base64", 1, 5464],
  ] as const)("%s.%s has %d to %d characters", (schema, field, minLength, maxLength) => {
    expect(schemas[schema]?.properties?.[field]).toMatchObject({ minLength, maxLength });
  });
});

describe("the examples", () => {
  it("the example of a badge signature verifies with the example's public key and with its key set", async () => {
    const expected = {
      applicationId: EXAMPLE_APPLICATION_ID,
      badgeNumber: EXAMPLE_BADGE,
      clientSignature: EXAMPLE_CLIENT_SIGNATURE,
      now: EXAMPLE_SIGNATURE_CLAIMS.iat * 1000,
    };
    for (const keys of [{ publicKey: EXAMPLE_PUBLIC_KEY }, { keys: [EXAMPLE_JWK] }]) {
      expect(await verifyBadgeSignature(EXAMPLE_SIGNATURE, { ...expected, keys })).toMatchObject({
        ok: true,
        keyId: EXAMPLE_JWK.kid,
        expiresAt: EXAMPLE_SIGNATURE_CLAIMS.exp * 1000,
      });
    }
  });

  it("the example of a webhook has headers that sign its body with the example's secret", async () => {
    const bytes = new TextEncoder();
    const algorithm = { name: "HMAC", hash: "SHA-1" };
    const key = await crypto.subtle.importKey("raw", bytes.encode(EXAMPLE_SECRET), algorithm, false, ["sign"]);
    const mac = await crypto.subtle.sign("HMAC", key, bytes.encode(EXAMPLE_WEBHOOK_BODY));
    expect(EXAMPLE_WEBHOOK_HEADERS.Signature).toBe(btoa(String.fromCharCode(...new Uint8Array(mac))));
    vi.useFakeTimers({ now: Number(EXAMPLE_WEBHOOK_HEADERS["webhook-timestamp"]) * 1000, toFake: ["Date"] });
    try {
      expect(new Webhook(btoa(EXAMPLE_SECRET)).verify(EXAMPLE_WEBHOOK_BODY, EXAMPLE_WEBHOOK_HEADERS)).toMatchObject({
        event: "badge:created",
      });
    } finally {
      vi.useRealTimers();
    }
  });

  it("the example of a searched list has the fields of an active visitor's badge (contract sections 12 and 24)", async () => {
    const application = await createApplication();
    const server = serverHeaders(application);
    const body = { expiresAt: hoursAhead(1), badgeStartsAt: hoursAhead(1), badgeExpiresAt: hoursAhead(2), name: "Ann" };
    const invited = await call("POST", "/v1/invitation", { headers: { ...server, udid: "server" }, body });
    const claim = await requestBadge(application, "phone", { userId: "user", invitationToken: invited.body.id });
    const headers = await signIn(application, "operator");
    const path = `/v1/badges/${claim.body.badgeId}`;
    expect((await call("PATCH", path, { headers, body: { startsAt: hoursAhead(1.5) } })).status).toBe(200);
    const fieldsOf = (page: unknown) => {
      const [badge = {}] = z.object({ badges: z.array(z.looseObject({})) }).parse(page).badges;
      return Object.keys(badge).sort();
    };
    const { content } = openApi.paths["/v1/badges"]?.get?.responses["200"] ?? {};
    const example = content?.["application/json"]?.examples?.["visitors-with-a-query"]?.value;
    const found = await call("GET", "/v1/badges?q=user", { headers });
    expect(fieldsOf(example)).toEqual(fieldsOf(found.body));
  });

  it("the examples of requests are accepted by the service", async () => {
    const application = await createApplication();
    const headers = { ...serverHeaders(application), udid: "device" };
    const exampleOf = (path: string): unknown => {
      const [example] = Object.values(
        openApi.paths[path]?.post?.requestBody?.content["application/json"]?.examples ?? {},
      );
      return example?.value;
    };
    for (const [path, status] of [
      ["/v1/badge", 201],
      ["/v1/badge/sign", 200],
      ["/v1/invitation", 201],
    ] as const) {
      expect((await call("POST", path, { headers, body: exampleOf(path) })).status, path).toBe(status);
    }
  });
});

/** The name of the schema that the document gives to an event's body. */
function schemaOfWebhook(event: string): string {
  const { $ref } = openApi.webhooks[event]?.post?.requestBody?.content["application/json"]?.schema ?? {};
  return String($ref).replace("#/components/schemas/", "");
}

describe("webhooks (contract sections 8 and 18)", () => {
  it("the OpenAPI document has one webhook for each event of section 18, and the test", () => {
    expect(Object.keys(openApi.webhooks)).toEqual([...SUBSCRIBABLE, "webhook:test"]);
  });

  it("webhooks of every event of section 18 have the documented fields and no other", async () => {
    const application = await createApplication({ ...RECORDED_EVENTS, events: SUBSCRIBABLE.join(",") });
    const issued = await requestBadge(application, "phone", { userId: "user", metadata: { os: "iOS" } });
    const id = String(issued.body.badgeId);
    for (const step of ["suspend", "resume"] as const) await takeStep(application, id, step);
    await setEnd(application, id, hoursAhead(-1));
    await setEnd(application, id, hoursAhead(1));
    const invitationToken = (await invite(application)).id;
    const claimed = await requestBadge(application, "phone", { userId: "user", invitationToken });
    await takeStep(application, String(claimed.body.badgeId), "revoke");
    await revokedInvitation(application);
    await expiredInvitation(application);
    await runSweep();
    const { events } = await readRows(application);
    expect(new Set(events.map(({ event }) => event))).toEqual(new Set(SUBSCRIBABLE));
    for (const { event, payload } of events) {
      const body: unknown = JSON.parse(payload);
      expect(body).toMatchObject({ event });
      expectOfSchema(schemaOfWebhook(event), body);
    }
  });

  it("the description of retries names equal consecutive delays once", () => {
    expect(describeDelays([5, 60, 300, 7200, 36_000, 36_000])).toBe("5 s, 1 min, 5 min, 2 h, 2 × 10 h");
  });
});
