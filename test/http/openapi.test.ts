import { describe, expect, it } from "vitest";
import { openApiDocument } from "../../src/docs-page/openapi/document.ts";
import {
  EXAMPLE_APPLICATION_ID,
  EXAMPLE_BADGE,
  EXAMPLE_CLIENT_SIGNATURE,
  EXAMPLE_JWK,
  EXAMPLE_PUBLIC_KEY,
  EXAMPLE_SIGNATURE,
  EXAMPLE_SIGNATURE_CLAIMS,
  EXAMPLE_STATUS_DELTA,
  EXAMPLE_STATUS_LIST,
} from "../../src/shared/openapi-examples.ts";
import { verifyBadgeSignature } from "../../src/verify/badge-signature.ts";
import { applyStatusDelta, readStatusDelta } from "../../src/verify/status-delta.ts";
import { readStatusList, statusAt } from "../../src/verify/status-list.ts";
import { app } from "../../src/worker/http/app.ts";
import { setEnd, takeStep } from "../badges/life-support.ts";
import { createApplication } from "../support/application.ts";
import { ahead, HOUR } from "../support/clock.ts";
import { expectOfSchema } from "../support/documented.ts";
import { call, requestBadge, serverHeaders } from "../support/http.ts";
import { expiredInvitation, invite, revokedInvitation } from "../support/invitations.ts";
import { RECORDED_EVENTS, readRows } from "../support/rows.ts";
import { SUBSCRIBABLE } from "../support/subscribable.ts";
import { sweep } from "../support/sweep.ts";

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
});

describe("what the reference tells an integrator", () => {
  const reference = JSON.stringify(openApi);

  it("the reference names every action of sections 18 and 23, by which the history can be filtered", () => {
    const { parameters = [] } = openApi.paths["/v1/history"]?.get ?? {};
    expect(parameters.find(({ name }) => name === "action")?.schema.enum).toEqual([
      ...SUBSCRIBABLE,
      ...["badge:rebound", "badge:rescheduled", "user:blocked", "user:unblocked", "user:erased", "invitation:created"],
      ...["application:updated", "application:disabled", "application:enabled", "secret:added", "secret:promoted"],
      ...["secret:retired", "key:rotated", "event:replayed"],
    ]);
  });

  it("the reference states the numbers and conditions of the contract", () => {
    const stated = [
      '"contentEncoding":"base64","minLength":1,"maxLength":5464',
      "decimal, without leading zeros, at most 9007199254740991",
      "`per_page` | 100 by default, at most 1,000 |",
      "in the future, at most 365 days ahead, at most 40 characters",
      ...["body | 16 KiB |", "`udid` | 1 to 255 printable", "`userId` | 1 to 255 characters and at most 512 bytes"],
      ...["each at most 256 characters, together at most 1,024 bytes", "any time of the years 1970 to 9999"],
      ...["each key of it | 60 a minute", "a new badge | 1,200 a minute", "from one address | 120 a minute"],
      "fresh numbers in a clock hour (10,000 unless",
      ...["within 15 seconds", "14 attempts over 77 hours", "after 60 seconds or later", "honoured up to 10 hours"],
      ...["at most 3,650 days ahead", "`Idempotency-Key` | 1 to 255 printable"],
      "once the invitation or its user was erased",
      "it reserves another number under the same token",
      ...["`ttl`: 60, the seconds after", "the 131,072 entries", "public, max-age=60"],
      ...["was given at most 300 s ago", "within 60 s of the service's clock"],
      "with another key within 24 hours binds it",
      "created with the application's secret and names this `userId`, any valid proof",
      ...["`DPoP` | 4,096 characters", "`jti` | a random text of 1 to 256 characters"],
      ...["60 s of leeway", "a JWT; at most 16,384 characters"],
      "`reason` is not a string of 1 to 500 characters",
      "`actor` of a history, is not 1 to 100 characters",
      ...["not a list of 1 to 100.", "At most 256 KiB.", "in any case: at least 2 characters"],
      ...["else after 50 seconds", "more than 2,000 changes", "At most 5,000 doors"],
    ];
    expect(stated.filter((text) => !reference.includes(text))).toEqual([]);
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

  it("the examples of a status list and of a delta verify with the example's key, and the delta fits the list", async () => {
    const keys = [EXAMPLE_JWK];
    const uri = `https://badges.example.com/v1/applications/${EXAMPLE_APPLICATION_ID}/status`;
    const read = await readStatusList(EXAMPLE_STATUS_LIST, { keys: { keys }, uri: `${uri}/0` });
    const changed = await readStatusDelta(EXAMPLE_STATUS_DELTA, { keys: { keys }, uri });
    if (!read.ok || !changed.ok) throw new Error("an example is refused");
    expect(new Set(read.list.statuses)).toEqual(new Set([0]));
    expect(statusAt(applyStatusDelta(read.list, changed.delta)?.statuses ?? new Uint8Array(), 97_312)).toBe(2);
  });

  it("the examples of requests are accepted by the service", async () => {
    const application = await createApplication();
    const headers = { ...serverHeaders(application), udid: "device" };
    for (const path of ["/v1/badge", "/v1/badge/sign", "/v1/invitation"]) {
      const { examples = {} } = openApi.paths[path]?.post?.requestBody?.content["application/json"] ?? {};
      const [example] = Object.values(examples);
      expect((await call("POST", path, { headers, body: example?.value })).status, path).toBeLessThan(300);
    }
  });
});

/** The name of the schema that the document gives to an event's body. */
function schemaOfWebhook(event: string): string {
  const { $ref } = openApi.webhooks[event]?.post?.requestBody?.content["application/json"]?.schema ?? {};
  return String($ref).replace("#/components/schemas/", "");
}

it("webhooks of every event of section 18 have the documented fields and no other (contract sections 8 and 18)", async () => {
  const application = await createApplication({ ...RECORDED_EVENTS, events: SUBSCRIBABLE.join(",") });
  const issued = await requestBadge(application, "phone", { userId: "user", metadata: { os: "iOS" } });
  const id = String(issued.body.badgeId);
  for (const step of ["suspend", "resume"] as const) await takeStep(application, id, step);
  await setEnd(application, id, ahead(-HOUR));
  await setEnd(application, id, ahead(HOUR));
  const invitationToken = (await invite(application)).token;
  const claimed = await requestBadge(application, "phone", { userId: "user", invitationToken });
  await takeStep(application, String(claimed.body.badgeId), "revoke");
  await revokedInvitation(application);
  await expiredInvitation(application);
  await sweep();
  const { events } = await readRows(application);
  expect(Object.keys(openApi.webhooks)).toEqual([...SUBSCRIBABLE, "webhook:test"]);
  expect(new Set(events.map(({ event }) => event))).toEqual(new Set(SUBSCRIBABLE));
  for (const { event, payload } of events) {
    const body: unknown = JSON.parse(payload);
    expect(body).toMatchObject({ event });
    expectOfSchema(schemaOfWebhook(event), body);
  }
});
