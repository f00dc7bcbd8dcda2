/**
 * The floor: the smallest hand-written Worker that makes the same platform calls as the service, in the same order, with
 * the same crypto, by the service's own SQL and objects. No router, no validation, no error responses, no headers,
 * no log line, no query builder: what the service costs more than this is the code of its Worker. It serves the benchmark's
 * requests and no others.
 */
import { env as bindings } from "cloudflare:workers";
import {
  base64Url,
  type DeviceId,
  deviceId,
  digestOf,
  invitationDigestOf,
  newInvitationToken,
  newRandomId,
  parseApplicationId,
} from "../../../../src/shared/identifiers.ts";
import { CALL_DEADLINE_MILLISECONDS } from "../../../../src/shared/limits.ts";
import type { Call, Command, Outcome, Rules } from "../../../../src/worker/allocator/commands.ts";
import type { Application as Registered, SigningKey } from "../../../../src/worker/applications/registry.ts";
import { BADGE_CURSOR } from "../../../../src/worker/badges/list.ts";
import { createContext } from "../../../../src/worker/context.ts";
import { firstHome } from "../../../../src/worker/homes.ts";
import { OF_USER, SIGNING } from "../../../../src/worker/storage/device-badges.ts";
import { consumeWakeUps } from "../../../../src/worker/webhooks/consumer.ts";

export { Allocator } from "../../../../src/worker/allocator/allocator.ts";
export { HomeClock } from "../../../../src/worker/scheduling/home-clock.ts";
export { WebhookSender } from "../../../../src/worker/webhooks/sender.ts";

export interface Application extends Registered {
  hmacKey: CryptoKey;
  rules: Rules;
  signingKey: SigningKey;
  privateKey: CryptoKey;
  loadedAt: number;
}

interface Asked {
  request: Request;
  env: Env;
  application: Application;
  device: DeviceId;
}

const CACHE_MILLISECONDS = 20_000;
const encoder = new TextEncoder();
const applications = new Map<string, Application>();

export default {
  async fetch(request: Request, env: Env): Promise<Response> {
    const { pathname, searchParams } = new URL(request.url);
    const application = await findApplication(env, request.headers.get("applicationid") ?? "");
    if (request.method === "GET") return page(request, env, application, searchParams);
    const udid = encoder.encode(request.headers.get("udid") ?? "");
    const digest = await crypto.subtle.sign("HMAC", application.hmacKey, udid);
    const device = deviceId.parse(base64Url(new Uint8Array(digest, 0, 16)));
    await Promise.all([
      env.DEVICE_LIMIT.limit({ key: `${application.id}:${device}` }),
      env.CLIENT_IP_LIMIT.limit({ key: `${application.id}:unknown` }),
    ]);
    const call = { request, env, application, device };
    if (pathname === "/v1/badge") return badge(call);
    return pathname === "/v1/invitation" ? invite(call) : sign(call);
  },
  /** The service's own deliveries: what they cost is the same on both sides. */
  queue: (batch: MessageBatch, _: Env, execution: ExecutionContext) =>
    consumeWakeUps(() => createContext(bindings, (work) => execution.waitUntil(work), firstHome(bindings)), batch),
};

export async function findApplication(env: Env, id: string): Promise<Application> {
  const cached = applications.get(id);
  if (cached && Date.now() - cached.loadedAt < CACHE_MILLISECONDS) return cached;
  const { registry, db, custody } = createContext(env, () => {}, firstHome(env));
  const applicationId = parseApplicationId(id);
  const registered = applicationId && (await registry.findFresh(db, applicationId, Date.now()));
  if (!registered) throw new Error("a benchmark calls its own applications");
  // An application of the benchmark has one signing key.
  const [signingKey] = registered.signingKeys;
  const privateKey = await custody.signingKey(registered.id, signingKey.kid, signingKey);
  const hmacKey = await custody.deviceKey(registered.id, registered.deviceKey);
  const { range, reuseAfterSeconds, requireProof, bindUntil, newBadgesPerHour, deviceKey } = registered;
  const rules = { range, reuseAfterSeconds, requireProof, bindUntil, newBadgesPerHour, deviceKey, signingKey };
  const application = { ...registered, rules, hmacKey, signingKey, privateKey, loadedAt: Date.now() };
  applications.set(id, application);
  return application;
}

/** What a badge call tells its device of the session that it was served by (contract section 16). */
const bookmarkOf = (session: D1DatabaseSession) => ({ headers: { bookmark: `1.${session.getBookmark()}` } });

async function badge({ request, env, application, device }: Asked): Promise<Response> {
  const body = await request.json<{ userId: string; metadata?: object; invitationToken?: string }>();
  const { userId, invitationToken: token } = body;
  const digest = token === undefined ? null : await invitationDigestOf(token);
  const session = env.DB.withSession("first-unconstrained");
  const look = OF_USER.atPrimary.bind(session, { applicationId: application.id, device, userId });
  const [existing] = (await look.all<{ number: number }>()).results;
  if (existing) return Response.json({ badgeId: String(existing.number) }, bookmarkOf(session));
  const outcome = await carryOut(env, application, {
    kind: "badge",
    rules: application.rules,
    device,
    userId,
    metadata: body.metadata ? JSON.stringify(body.metadata) : null,
    keyThumbprint: null,
    isVerified: true,
    isNew: true,
    invitation: digest && token !== undefined ? { digest, token } : null,
  });
  if (outcome.kind !== "created") throw new Error(`a new badge was ${outcome.kind}`);
  const { publicKey } = application.signingKey;
  return Response.json({ badgeId: String(outcome.number), publicKey }, { status: 201 });
}

/** Calls the application's object, which writes one entry to its journal and one batch to D1. */
async function carryOut(env: Env, { id }: Application, command: Command): Promise<Outcome> {
  const until = Date.now() + CALL_DEADLINE_MILLISECONDS;
  const call: Call = { id: newRandomId(), until, origin: { actor: { kind: "device" } }, command };
  return (await env.ALLOCATOR.getByName(id).call(id, call)).outcome;
}

async function sign({ request, env, application, device }: Asked): Promise<Response> {
  const { base64 } = await request.json<{ base64: string }>();
  const { id: applicationId, signingKey, privateKey, signatureLifetimeSeconds: lifetime } = application;
  const session = env.DB.withSession("first-primary");
  const signer = { applicationId, device, thumbprint: null, number: null };
  const [current] = await SIGNING.current.atPrimary.bind(session, signer).raw<[number]>();
  if (!current) throw new Error("a benchmark signs for badges it was issued");
  const iat = Math.floor(Date.now() / 1000);
  const header = { alg: "ES256", kid: signingKey.kid, typ: "badge-signature+jwt" };
  const claims = {
    client_signature: base64,
    sub: String(current[0]),
    aud: applicationId,
    iat,
    ...(lifetime !== null && { exp: iat + lifetime }),
  };
  const content = `${part(header)}.${part(claims)}`;
  const algorithm = { name: "ECDSA", hash: "SHA-256" };
  const signature = await crypto.subtle.sign(algorithm, privateKey, encoder.encode(content));
  const text = `${content}.${base64Url(new Uint8Array(signature))}`;
  return Response.json({ signature: text }, bookmarkOf(session));
}

const part = (value: object): string => base64Url(encoder.encode(JSON.stringify(value)));

const SELECT_PAGE = `
  SELECT number, user_id, metadata, position, state, expires_at FROM badge
  WHERE application_id = ?1 AND (ended_at IS NOT NULL) = 0 AND position IS NOT NULL ORDER BY position LIMIT ?2`;

async function page(request: Request, env: Env, application: Application, query: URLSearchParams) {
  const digest = encoder.encode(await digestOf(request.headers.get("applicationsecret") ?? ""));
  const isKnown = (known: string) => crypto.subtle.timingSafeEqual(digest, encoder.encode(known));
  if (!application.secrets.some(({ digest }) => isKnown(digest))) throw new Error("a benchmark knows its own secrets");
  const perPage = Number(query.get("per_page") ?? 100);
  const rows = await env.DB.prepare(SELECT_PAGE)
    .bind(application.id, perPage + 1)
    .raw<[number, string, string | null, number]>();
  const shown = rows.slice(0, perPage);
  const badges = shown.map(([number, userId, metadata]) => ({
    id: String(number),
    userId,
    ...(metadata !== null && { metadata: JSON.parse(metadata) }),
  }));
  const last = shown.at(-1)?.[3] ?? 0;
  const headers: HeadersInit = rows.length > perPage ? { "pagination-cursor": BADGE_CURSOR.encode(last) } : {};
  return Response.json({ badges }, { headers });
}

async function invite({ request, env, application, device: creatorDevice }: Asked): Promise<Response> {
  const { expiresAt } = await request.json<{ expiresAt: string }>();
  const token = newInvitationToken();
  const digest = await invitationDigestOf(token);
  const times = { createdAt: Date.now(), expiresAt, expiresAtTime: Date.parse(expiresAt) };
  const invitation = { ...WITHOUT_MORE, ...times, digest, creatorDevice };
  const outcome = await carryOut(env, application, {
    kind: "invite",
    rules: application.rules,
    invitations: [invitation],
  });
  const [result] = outcome.kind === "invitations" ? outcome.results : [];
  if (!result || !("number" in result)) throw new Error(`an invitation was ${outcome.kind}`);
  return Response.json({ id: token, badgeId: String(result.number), expiresAt }, { status: 201 });
}

/** An invitation of a device that says nothing of the badge. */
const WITHOUT_MORE = {
  badgeExpiresAt: null,
  badgeExpiresAtTime: null,
  badgeStartsAt: null,
  badgeStartsAtTime: null,
  name: null,
  userId: null,
  withSecret: false,
  isRepeatable: false,
};
