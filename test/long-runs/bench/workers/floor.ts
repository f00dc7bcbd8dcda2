/**
 * The floor: what a bare Worker of Hono and Drizzle has to do for the same responses. It makes the same platform calls, with the
 * same statements and the same crypto, by the service's own objects, and verifies a user token where one is needed. It validates
 * nothing, refuses nothing and logs nothing: what the service costs more than this is the code of its Worker. It serves the
 * benchmark's requests and no others.
 */
import { env as bindings } from "cloudflare:workers";
import { and, eq, isNotNull, sql } from "drizzle-orm";
import { type Context, Hono } from "hono";
import { createRemoteJWKSet, jwtVerify } from "jose";
import {
  type ApplicationId,
  base64Url,
  type DeviceId,
  deviceId,
  digestOf,
  invitationDigestOf,
  newInvitationToken,
  newRandomId,
  parseApplicationId,
} from "../../../../src/shared/identifiers.ts";
import { CALL_DEADLINE_MILLISECONDS } from "../../../../src/shared/limits/allocator-limits.ts";
import { badge as table } from "../../../../src/shared/schema.ts";
import { CALL_VERSION, type CallMessage, type Command, type Rules } from "../../../../src/worker/allocator/commands.ts";
import type { Reply } from "../../../../src/worker/allocator/waiting-calls.ts";
import type { Application as Registered, SigningKey } from "../../../../src/worker/applications/application-cache.ts";
import { hashUserId } from "../../../../src/worker/applications/derived-ids.ts";
import { BADGE_CURSOR } from "../../../../src/worker/badges/list.ts";
import { createContext } from "../../../../src/worker/context.ts";
import { firstHome } from "../../../../src/worker/homes.ts";
import { OF_USER, SIGNING } from "../../../../src/worker/storage/device-badges.ts";
import { orm, type Placeholders, statement } from "../../../../src/worker/storage/statement.ts";
import { consumeDeliveries } from "../../../../src/worker/webhooks/consumer.ts";

export { Allocator } from "../../../../src/worker/allocator/allocator.ts";
export { Live } from "../../../../src/worker/live/live.ts";
export { HomeScheduler } from "../../../../src/worker/scheduling/home-scheduler.ts";

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

const app = new Hono<{ Bindings: Env }>()
  .post("/v1/badge", async (c) => badge(await admit(c)))
  .post("/v1/badge/sign", async (c) => sign(await admit(c)))
  .post("/v1/invitation", async (c) => invite(await admit(c)))
  .get("/v1/badges", async (c) => page(c));

export default {
  fetch: app.fetch,
  /** The service's own deliveries: what they cost is the same on both sides. */
  queue: (batch: MessageBatch, _: Env, execution: ExecutionContext) =>
    consumeDeliveries(() => createContext(bindings, (work) => execution.waitUntil(work), firstHome(bindings)), batch),
};

async function admit({ req: { raw: request }, env }: Context<{ Bindings: Env }>): Promise<Asked> {
  const application = await findApplication(env, request.headers.get("applicationid") ?? "");
  const udid = encoder.encode(request.headers.get("udid") ?? "");
  const digest = await crypto.subtle.sign("HMAC", application.hmacKey, udid);
  const device = deviceId.parse(base64Url(new Uint8Array(digest, 0, 16)));
  await Promise.all([
    env.DEVICE_LIMIT.limit({ key: `${application.id}:${device}` }),
    env.CLIENT_IP_LIMIT.limit({ key: `${application.id}:unknown` }),
  ]);
  return { request, env, application, device };
}

/** The headers that the service's responses have, too. */
const HEADERS = new Headers({
  "Cache-Control": "no-store",
  "Strict-Transport-Security": "max-age=15552000; includeSubDomains",
  "X-Content-Type-Options": "nosniff",
  "X-Frame-Options": "SAMEORIGIN",
  "Referrer-Policy": "no-referrer",
  "Content-Type": "application/json",
});
const DEVICE_HEADERS = new Headers(HEADERS);
DEVICE_HEADERS.set("Access-Control-Allow-Origin", "*");
DEVICE_HEADERS.set("Access-Control-Expose-Headers", "x-request-id,retry-after,dpop-nonce,www-authenticate,bookmark");

/** @param own headers of this response alone */
function respond(body: object, headers: Headers, own: Record<string, string> = {}, status = 200): Response {
  const response = new Response(JSON.stringify(body), { status, headers });
  response.headers.set("X-Request-Id", crypto.randomUUID());
  for (const [name, value] of Object.entries(own)) response.headers.set(name, value);
  return response;
}

export async function findApplication(env: Env, id: string): Promise<Application> {
  const cached = applications.get(id);
  if (cached && Date.now() - cached.loadedAt < CACHE_MILLISECONDS) return cached;
  const { applicationCache, db, unsealedKeys } = createContext(env, () => {}, firstHome(env));
  const applicationId = parseApplicationId(id);
  const registered = applicationId && (await applicationCache.reload(db, applicationId, Date.now()));
  if (!registered) throw new Error("a benchmark calls its own applications");
  // An application of the benchmark has one signing key.
  const [signingKey] = registered.signingKeys;
  const privateKey = await unsealedKeys.signingKey(registered.id, signingKey.kid, signingKey);
  const hmacKey = await unsealedKeys.rootKey(registered.id, registered.rootKey);
  const { range, reuseAfterSeconds, requireProof, bindUntil, newBadgesPerHour, rootKey } = registered;
  const rules = { range, reuseAfterSeconds, requireProof, bindUntil, newBadgesPerHour, rootKey, signingKey };
  const application = { ...registered, rules, hmacKey, signingKey, privateKey, loadedAt: Date.now() };
  applications.set(id, application);
  return application;
}

/** What a badge call tells its device of the session that it was served by (contract section 16). */
const bookmarkOf = (session: D1DatabaseSession) => ({ bookmark: `1.${session.getBookmark()}` });

/** Of issuers. jose fetches a key set once and keeps it. */
const keySets = new Map<string, ReturnType<typeof createRemoteJWKSet>>();

async function verifyUser({ users }: Application, authorization: string | null, userId: string): Promise<void> {
  if (users === null) return;
  let keySet = keySets.get(users.issuer);
  if (!keySet) {
    const discovered = await fetch(`${users.issuer}/.well-known/openid-configuration`);
    keySet = createRemoteJWKSet(new URL((await discovered.json<{ jwks_uri: string }>()).jwks_uri));
    keySets.set(users.issuer, keySet);
  }
  const token = authorization?.slice("Bearer ".length) ?? "";
  const { payload } = await jwtVerify(token, keySet, { issuer: users.issuer, audience: users.audience });
  if (payload[users.claim] !== userId) throw new Error("a benchmark's users log in as themselves");
}

async function badge({ request, env, application, device }: Asked): Promise<Response> {
  const body = await request.json<{ userId: string; metadata?: object; invitationToken?: string }>();
  const { userId, invitationToken: token } = body;
  await verifyUser(application, request.headers.get("authorization"), userId);
  const digest = token === undefined ? null : await invitationDigestOf(token);
  const session = env.DB.withSession("first-unconstrained");
  const look = OF_USER.atPrimary.bind(session, { applicationId: application.id, device, userId });
  const [existing] = OF_USER.atPrimary.rows(await look.all());
  // The statement's one row says whether D1 may be read, whether or not the device has a badge.
  if (existing?.isFound === 1)
    return respond({ badgeId: String(existing.number) }, DEVICE_HEADERS, bookmarkOf(session));
  const outcome = await carryOut(env, application, {
    kind: "badge",
    rules: application.rules,
    device,
    userId,
    userDigest: await hashUserId(createContext(env, () => {}, firstHome(env)).unsealedKeys, application, userId),
    metadata: body.metadata ? JSON.stringify(body.metadata) : null,
    keyThumbprint: null,
    isVerified: true,
    invitation: digest && token !== undefined ? { digest, token } : null,
  });
  if (outcome.kind !== "created") throw new Error(`a new badge was ${outcome.kind}`);
  const { publicKey } = application.signingKey;
  return respond({ badgeId: String(outcome.number), publicKey }, DEVICE_HEADERS, {}, 201);
}

/** Calls the application's allocator, which writes one entry to its log and one batch to D1. */
async function carryOut(env: Env, { id }: Application, command: Command): Promise<Reply["outcome"]> {
  const until = Date.now() + CALL_DEADLINE_MILLISECONDS;
  const call: CallMessage = {
    version: CALL_VERSION,
    id: newRandomId(),
    until,
    audit: { actor: { kind: "device" } },
    command,
  };
  return (await env.ALLOCATOR.getByName(id).call(id, call)).outcome;
}

async function sign({ request, env, application, device }: Asked): Promise<Response> {
  const { base64 } = await request.json<{ base64: string }>();
  const { id: applicationId, signingKey, privateKey, signatureLifetimeSeconds: lifetime } = application;
  const session = env.DB.withSession("first-primary");
  const signer = { applicationId, device, thumbprint: null, number: null };
  const [current] = await SIGNING.current.atPrimary.all(session, signer);
  if (current?.isFound !== 1) throw new Error("a benchmark signs for badges it was issued");
  const iat = Math.floor(Date.now() / 1000);
  const header = { alg: "ES256", kid: signingKey.kid, typ: "badge-signature+jwt" };
  const claims = {
    client_signature: base64,
    sub: String(current.number),
    aud: applicationId,
    iat,
    ...(lifetime !== null && { exp: iat + lifetime }),
  };
  const content = `${part(header)}.${part(claims)}`;
  const algorithm = { name: "ECDSA", hash: "SHA-256" };
  const signature = await crypto.subtle.sign(algorithm, privateKey, encoder.encode(content));
  const text = `${content}.${base64Url(new Uint8Array(signature))}`;
  return respond({ signature: text }, DEVICE_HEADERS, bookmarkOf(session));
}

const part = (value: object): string => base64Url(encoder.encode(JSON.stringify(value)));

/** As the service's own statement of an unfiltered page. */
const PAGE = statement((p: Placeholders<{ applicationId: ApplicationId; limit: number }>) =>
  orm
    .select({
      number: table.number,
      userId: table.userId,
      name: table.name,
      metadata: table.metadata,
      ordinal: table.ordinal,
      state: table.state,
      startsAt: table.startsAt,
      expiresAt: table.expiresAt,
    })
    .from(table)
    .where(
      and(eq(table.applicationId, p.applicationId), sql`(${table.endedAt} IS NOT NULL) = 0`, isNotNull(table.ordinal)),
    )
    .orderBy(table.ordinal)
    .limit(p.limit),
);

async function page({ req: { raw: request }, env }: Context<{ Bindings: Env }>): Promise<Response> {
  const application = await findApplication(env, request.headers.get("applicationid") ?? "");
  const digest = encoder.encode(await digestOf(request.headers.get("applicationsecret") ?? ""));
  const isKnown = (known: string) => crypto.subtle.timingSafeEqual(digest, encoder.encode(known));
  if (!application.secrets.some(({ digest }) => isKnown(digest))) throw new Error("a benchmark knows its own secrets");
  const perPage = Number(new URL(request.url).searchParams.get("per_page") ?? 100);
  const rows = await PAGE.all(env.DB, { applicationId: application.id, limit: perPage + 1 });
  const now = Date.now();
  const shown = rows.slice(0, perPage);
  const badges = shown
    .filter(({ expiresAt }) => expiresAt === null || expiresAt > now)
    .map(({ number, userId, name, metadata, state, startsAt, expiresAt }) => ({
      id: String(number),
      userId,
      ...(name !== null && { name }),
      ...(metadata !== null && { metadata: JSON.parse(metadata) }),
      ...(state === "suspended" && { state }),
      ...(startsAt !== null && { startsAt: new Date(startsAt).toISOString() }),
      ...(expiresAt !== null && { expiresAt: new Date(expiresAt).toISOString() }),
    }));
  const last = shown.at(-1)?.ordinal ?? 0;
  return respond({ badges }, HEADERS, rows.length > perPage ? { "pagination-cursor": BADGE_CURSOR.encode(last) } : {});
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
  return respond({ id: token, badgeId: String(result.number), expiresAt }, DEVICE_HEADERS, {}, 201);
}

/** An invitation of a device that says nothing of the badge. */
const WITHOUT_MORE = {
  byReception: false,
  badgeExpiresAt: null,
  badgeExpiresAtTime: null,
  badgeStartsAt: null,
  badgeStartsAtTime: null,
  name: null,
  userId: null,
  withSecret: false,
};
