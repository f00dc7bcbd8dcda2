import { applicationId } from "../../../../src/shared/identifiers.ts";
/**
 * The floor: the smallest hand-written Worker that makes the same platform calls as the service, in the same order, with
 * the same crypto, by the service's own SQL. No router, no validation, no error responses, no headers, no log line, no
 * query builder: what the service costs more than this is its own code. It serves the benchmark's requests and no others.
 */

import { env as bindings } from "cloudflare:workers";
import {
  base64Url,
  type DeviceId,
  deviceId,
  digestOf,
  invitationDigestOf,
  newEventId,
  newInvitationToken,
} from "../../../../src/shared/identifiers.ts";
import { ApplicationRegistry, type Application as Loaded } from "../../../../src/worker/applications/registry.ts";
import { encodeCursor } from "../../../../src/worker/badges/list.ts";
import { createContext } from "../../../../src/worker/context.ts";
import { Custody } from "../../../../src/worker/keys/custody.ts";
import { SealingKeys } from "../../../../src/worker/keys/sealing-keys.ts";
import { selectPage } from "../../../../src/worker/storage/badges.ts";
import { Database, type Query } from "../../../../src/worker/storage/database.ts";
import { selectBadge, selectCurrentBadge } from "../../../../src/worker/storage/device-badges.ts";
import { consumeWakeUps } from "../../../../src/worker/webhooks/consumer.ts";
import { badgeCreatedPayload } from "../../../../src/worker/webhooks/event.ts";
import type { FloorEnv } from "./floor-allocator.ts";

export { WebhookSender } from "../../../../src/worker/webhooks/sender.ts";
export { Allocator } from "./floor-allocator.ts";

interface SigningKey {
  id: number;
  kid: string;
  publicKey: string;
  key: CryptoKey;
}

interface Application extends Omit<Loaded, "deviceKey" | "signingKeys"> {
  deviceKey: CryptoKey;
  signingKeys: SigningKey[];
  newestKey: SigningKey;
  loadedAt: number;
}

interface Call {
  request: Request;
  env: FloorEnv;
  execution: ExecutionContext;
  application: Application;
  device: DeviceId;
}

const CACHE_MILLISECONDS = 20_000;
const encoder = new TextEncoder();
const applications = new Map<string, Application>();
const registry = new ApplicationRegistry();
let custody: Custody | undefined;

export default {
  async fetch(request: Request, env: FloorEnv, execution: ExecutionContext): Promise<Response> {
    const { pathname, searchParams } = new URL(request.url);
    const application = await findApplication(env, request.headers.get("applicationid") ?? "");
    if (request.method === "GET") return page(request, env, application, searchParams);
    const udid = encoder.encode(request.headers.get("udid") ?? "");
    const digest = await crypto.subtle.sign("HMAC", application.deviceKey, udid);
    const device = deviceId.parse(base64Url(new Uint8Array(digest, 0, 16)));
    await Promise.all([
      env.DEVICE_LIMIT.limit({ key: `${application.id}:${device}` }),
      env.CLIENT_IP_LIMIT.limit({ key: `${application.id}:unknown` }),
    ]);
    const call = { request, env, execution, application, device };
    if (pathname === "/v1/badge") return badge(call);
    return pathname === "/v1/invitation" ? invite(call) : sign(call);
  },
  /** The service's own deliveries: what they cost is the same on both sides. */
  queue: (batch: MessageBatch, _: FloorEnv, execution: ExecutionContext) =>
    consumeWakeUps(
      createContext(bindings, (work) => execution.waitUntil(work)),
      batch,
    ),
};

async function findApplication(env: FloorEnv, idText: string): Promise<Application> {
  const id = applicationId.parse(idText);
  const cached = applications.get(id);
  if (cached && Date.now() - cached.loadedAt < CACHE_MILLISECONDS) return cached;
  const loaded = await registry.findFresh(new Database(env.DB), id, Date.now());
  if (!loaded) throw new Error("a benchmark calls its own applications");
  custody ??= new Custody(new SealingKeys(env));
  const signingKeys: SigningKey[] = [];
  for (const key of loaded.signingKeys) {
    signingKeys.push({ ...key, key: await custody.signingKey(id, key.kid, key) });
  }
  const [newestKey] = signingKeys.slice(-1);
  if (!newestKey) throw new Error("an application has a signing key");
  const deviceKey = await custody.deviceKey(id, loaded.deviceKey);
  const application = { ...loaded, deviceKey, signingKeys, newestKey, loadedAt: Date.now() };
  applications.set(id, application);
  return application;
}

const bound = ({ DB }: FloorEnv, query: Query, values: Record<string, string | number>): D1PreparedStatement =>
  DB.prepare(query.sql).bind(...query.bind(values));

async function badge(call: Call): Promise<Response> {
  const { env, application, device } = call;
  const body = await call.request.json<{ userId: string; metadata?: object; invitationToken?: string }>();
  const { userId, invitationToken } = body;
  const metadata = body.metadata ? JSON.stringify(body.metadata) : null;
  if (invitationToken !== undefined) return claim(call, { userId, metadata, token: invitationToken });
  const key = { applicationId: application.id, device, userId };
  const [existing] = await bound(env, selectBadge(), key).raw<[number, string | null, number]>();
  if (existing) return Response.json({ badgeId: String(existing[0]) });
  const { id: signingKeyId, publicKey } = application.newestKey;
  const issuedAt = Date.now();
  const eventId = newEventId(issuedAt);
  const request = { device, userId, metadata, signingKeyId, eventId, issuedAt };
  const { number, wakeUps } = await env.ALLOCATOR.getByName(application.id).issue(application.range, request);
  sendWakeUps(call, wakeUps);
  return Response.json({ badgeId: String(number), publicKey }, { status: 201 });
}

async function sign({ request, env, application, device }: Call): Promise<Response> {
  const { base64 } = await request.json<{ base64: string }>();
  const key = { applicationId: application.id, device };
  const [current] = await bound(env, selectCurrentBadge(), key).raw<[number, number]>();
  const signingKey = application.signingKeys.find(({ id }) => id === current?.[1]);
  if (!current || !signingKey) throw new Error("a benchmark signs for badges it was issued");
  const iat = Math.floor(Date.now() / 1000);
  const lifetime = application.signatureLifetimeSeconds;
  const header = { alg: "ES256", kid: signingKey.kid, typ: "badge-signature+jwt" };
  const claims = {
    client_signature: base64,
    sub: String(current[0]),
    aud: application.id,
    iat,
    ...(lifetime !== null && { exp: iat + lifetime }),
  };
  const content = `${part(header)}.${part(claims)}`;
  const algorithm = { name: "ECDSA", hash: "SHA-256" };
  const signature = await crypto.subtle.sign(algorithm, signingKey.key, encoder.encode(content));
  return Response.json({ signature: `${content}.${base64Url(new Uint8Array(signature))}` });
}

const part = (value: object): string => base64Url(encoder.encode(JSON.stringify(value)));

async function page(request: Request, env: FloorEnv, application: Application, query: URLSearchParams) {
  const digest = encoder.encode(await digestOf(request.headers.get("applicationsecret") ?? ""));
  const isKnown = (known: string) => crypto.subtle.timingSafeEqual(digest, encoder.encode(known));
  if (!application.secretDigests.some(isKnown)) throw new Error("a benchmark knows its own secrets");
  const perPage = Number(query.get("per_page") ?? 100);
  const asked = { applicationId: application.id, after: 0, limit: perPage + 1 };
  const rows = await bound(env, selectPage(), asked).raw<[number, string, string | null, number]>();
  const shown = rows.slice(0, perPage);
  const badges = shown.map(([number, userId, metadata]) => ({
    id: String(number),
    userId,
    ...(metadata !== null && { metadata: JSON.parse(metadata) }),
  }));
  const last = shown.at(-1)?.[3] ?? 0;
  return Response.json(
    { badges },
    { headers: rows.length > perPage ? { "pagination-cursor": encodeCursor(last) } : {} },
  );
}

async function invite({ request, env, application, device }: Call): Promise<Response> {
  const { expiresAt } = await request.json<{ expiresAt: string }>();
  const id = newInvitationToken();
  const number = await env.ALLOCATOR.getByName(application.id).reserve(application.range, {
    invitation: await invitationDigestOf(id),
    creatorDevice: device,
    expiresAt,
    expiresAtTime: Date.parse(expiresAt),
    createdAt: Date.now(),
    ...{ badgeExpiresAt: null, badgeExpiresAtTime: null, withSecret: false, isRepeatable: false },
  });
  return Response.json({ id, badgeId: String(number), expiresAt }, { status: 201 });
}

/** Smaller than the service's query, which also asks for the badge that the device has. */
const SELECT_INVITATION = "SELECT number, state FROM invitation WHERE digest = ? AND application_id = ?";

async function claim(call: Call, body: { userId: string; metadata: string | null; token: string }): Promise<Response> {
  const { env, application, device } = call;
  const { userId, metadata, token } = body;
  const digest = await invitationDigestOf(token);
  const claimedAt = Date.now();
  const eventId = newEventId(claimedAt);
  const invitation = await env.DB.prepare(SELECT_INVITATION)
    .bind(digest, application.id)
    .first<{ number: number; state: string }>();
  if (invitation?.state !== "pending") throw new Error("a benchmark claims an invitation once");
  const { number } = invitation;
  const payload = badgeCreatedPayload({ eventId, createdAt: claimedAt, number, userId, metadata, invitationId: token });
  const { id: signingKeyId, publicKey } = application.newestKey;
  const wakeUps = await env.ALLOCATOR.getByName(application.id).claim({
    ...{ number, device, userId, metadata, signingKeyId, digest, eventId, payload, claimedAt },
    ...{ superseded: null, replacedEvent: null, expiresAt: null },
  });
  sendWakeUps(call, wakeUps);
  return Response.json({ badgeId: String(number), publicKey }, { status: 201 });
}

function sendWakeUps({ env, execution, application: { id: applicationId } }: Call, eventIds: readonly string[]): void {
  if (eventIds.length === 0) return;
  execution.waitUntil(env.WEBHOOKS.sendBatch(eventIds.map((eventId) => ({ body: { applicationId, eventId } }))));
}
