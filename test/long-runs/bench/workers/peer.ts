/**
 * The peer: the design that most people would write for the same interface. Hono and D1, a counter row and the number as
 * primary key, no object, no queue; a webhook is sent once, after the response. It is given what it can have for free: the
 * application is remembered as long as the service remembers it, and a new badge is one read and one batch.
 *
 * It promises less: numbers in sequence, secrets and keys as plain text, a webhook that is lost with its request.
 */
import { DurableObject } from "cloudflare:workers";
import { type Context, Hono } from "hono";
import { createMiddleware } from "hono/factory";
import { importJWK, SignJWT } from "jose";

interface Application {
  id: string;
  secret: string;
  webhook_url: string | null;
  private_key: string;
  public_key: string;
}

interface Peer {
  Bindings: { DB: D1Database; DEVICE_LIMIT: RateLimit; CLIENT_IP_LIMIT: RateLimit };
  Variables: { application: Application; udid: string };
}

interface BadgeRequest {
  userId?: string;
  metadata?: object;
  invitationToken?: string;
}

const CACHE_MILLISECONDS = 20_000;
const applications = new Map<string, { application: Application; loadedAt: number }>();
const signingKeys = new Map<string, Awaited<ReturnType<typeof importJWK>>>();

/** Nobody calls it: it is in the configuration by which all sides are built. */
export class Allocator extends DurableObject {}

const app = new Hono<Peer>();

const forDevices = createMiddleware<Peer>(async (c, next) => {
  const application = await findApplication(c);
  const udid = c.req.header("udid");
  if (!application || !udid) return c.json({ error: "INVALID_CREDENTIALS" }, 401);
  const limits = await Promise.all([
    c.env.DEVICE_LIMIT.limit({ key: `${application.id}:${udid}` }),
    c.env.CLIENT_IP_LIMIT.limit({ key: `${application.id}:${c.req.header("cf-connecting-ip")}` }),
  ]);
  if (limits.some(({ success }) => !success)) return c.json({ error: "RATE_LIMITED" }, 429);
  c.set("application", application);
  c.set("udid", udid);
  return next();
});

async function findApplication(c: Context<Peer>): Promise<Application | null> {
  const id = c.req.header("applicationid") ?? "";
  const cached = applications.get(id);
  if (cached && Date.now() - cached.loadedAt < CACHE_MILLISECONDS) return cached.application;
  const application = await c.env.DB.prepare("SELECT * FROM application WHERE id = ?").bind(id).first<Application>();
  if (application) applications.set(id, { application, loadedAt: Date.now() });
  return application;
}

app.post("/v1/badge", forDevices, async (c) => {
  const { application, udid } = c.var;
  const { userId, metadata, invitationToken } = await c.req.json<BadgeRequest>();
  if (!userId) return c.json({ error: "UNDEFINED_USERID" }, 422);
  const existing = await c.env.DB.prepare(
    "SELECT number FROM badge WHERE application_id = ? AND udid = ? AND user_id = ?",
  )
    .bind(application.id, udid, userId)
    .first<{ number: number }>();
  if (existing) return c.json({ badgeId: String(existing.number) }, 200);

  const owner = [udid, userId, metadata ? JSON.stringify(metadata) : null, Date.now()] as const;
  const number = await write(c, ...(invitationToken ? claiming(invitationToken, owner) : issuing(owner)));
  if (number === undefined) return c.json({ error: "UNKNOWN_INVITATION" }, 404);
  c.executionCtx.waitUntil(sendWebhook(application, { id: String(number), userId, metadata }));
  return c.json({ badgeId: String(number), publicKey: application.public_key }, 201);
});

type Statement = [sql: string, ...values: (string | number | null)[]];
type Owner = readonly [udid: string, userId: string, metadata: string | null, now: number];

/** Statements of one transaction, each with the application ID as ?1. @returns the number that the last one returns */
async function write(c: Context<Peer>, ...statements: Statement[]): Promise<number | undefined> {
  const results = await c.env.DB.batch<{ number: number }>(
    statements.map(([sql, ...values]) => c.env.DB.prepare(sql).bind(c.var.application.id, ...values)),
  );
  return results.at(-1)?.results[0]?.number;
}

const NEXT_NUMBER: Statement = ["UPDATE counter SET next = next + 1 WHERE application_id = ?1"];
const INSERT_BADGE = "INSERT INTO badge (number, application_id, udid, user_id, metadata, created_at)";

const issuing = (owner: Owner): Statement[] => [
  NEXT_NUMBER,
  [
    `${INSERT_BADGE} SELECT next - 1, ?1, ?2, ?3, ?4, ?5 FROM counter WHERE application_id = ?1 RETURNING number`,
    ...owner,
  ],
];

const claiming = (token: string, owner: Owner): Statement[] => [
  [
    `UPDATE invitation SET claimed_at = ?3
     WHERE token = ?2 AND application_id = ?1 AND claimed_at IS NULL AND expires_at > ?4`,
    ...[token, owner[3], new Date(owner[3]).toISOString()],
  ],
  [
    `${INSERT_BADGE} SELECT number, ?1, ?3, ?4, ?5, ?6 FROM invitation WHERE token = ?2 AND claimed_at = ?6
     RETURNING number`,
    ...[token, ...owner],
  ],
];

async function sendWebhook({ secret, webhook_url: url }: Application, data: object): Promise<void> {
  if (url === null) return;
  const body = JSON.stringify({ event: "badge:created", data });
  const algorithm = { name: "HMAC", hash: "SHA-1" };
  const key = await crypto.subtle.importKey("raw", new TextEncoder().encode(secret), algorithm, false, ["sign"]);
  const mac = await crypto.subtle.sign("HMAC", key, new TextEncoder().encode(body));
  const signature = btoa(String.fromCharCode(...new Uint8Array(mac)));
  const headers = { "Content-Type": "application/json", Signature: signature };
  const response = await fetch(url, { method: "POST", headers, body });
  await response.body?.cancel();
}

app.post("/v1/badge/sign", forDevices, async (c) => {
  const { application, udid } = c.var;
  const { base64 } = await c.req.json<{ base64?: string }>();
  if (!base64) return c.json({ error: "UNDEFINED_BASE64" }, 422);
  const badge = await c.env.DB.prepare(
    "SELECT number FROM badge WHERE application_id = ? AND udid = ? ORDER BY number DESC LIMIT 1",
  )
    .bind(application.id, udid)
    .first<{ number: number }>();
  if (!badge) return c.json({ error: "UNKNOWN_BADGE" }, 404);
  const key = signingKeys.get(application.id) ?? (await importJWK(JSON.parse(application.private_key), "ES256"));
  signingKeys.set(application.id, key);
  const signature = await new SignJWT({ client_signature: base64 })
    .setProtectedHeader({ alg: "ES256" })
    .setSubject(String(badge.number))
    .setAudience(application.id)
    .setIssuedAt()
    .sign(key);
  return c.json({ signature }, 200);
});

app.get("/v1/badges", async (c) => {
  const application = await findApplication(c);
  if (application?.secret !== c.req.header("applicationsecret")) return c.json({ error: "INVALID_CREDENTIALS" }, 401);
  const perPage = Math.min(Number(c.req.query("per_page") ?? 100), 1000);
  const { results } = await c.env.DB.prepare(
    "SELECT number, user_id, metadata FROM badge WHERE application_id = ? AND number > ? ORDER BY number LIMIT ?",
  )
    .bind(application?.id, Number(c.req.query("cursor") ?? 0), perPage + 1)
    .all<{ number: number; user_id: string; metadata: string | null }>();
  const shown = results.slice(0, perPage);
  if (results.length > perPage) c.header("pagination-cursor", String(shown.at(-1)?.number));
  const badges = shown.map(({ number, user_id: userId, metadata }) => {
    return { id: String(number), userId, metadata: metadata === null ? undefined : JSON.parse(metadata) };
  });
  return c.json({ badges }, 200);
});

app.post("/v1/invitation", forDevices, async (c) => {
  const { expiresAt } = await c.req.json<{ expiresAt?: string }>();
  if (!expiresAt) return c.json({ error: "UNDEFINED_EXPIRESAT" }, 422);
  const id = crypto.randomUUID();
  const insert = `INSERT INTO invitation (token, application_id, number, expires_at)
    SELECT ?2, ?1, next - 1, ?3 FROM counter WHERE application_id = ?1 RETURNING number`;
  return c.json({ id, badgeId: String(await write(c, NEXT_NUMBER, [insert, id, expiresAt])), expiresAt }, 201);
});

export default app;
