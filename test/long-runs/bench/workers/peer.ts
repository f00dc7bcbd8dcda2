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
  public_key: string;
  signingKey: Awaited<ReturnType<typeof importJWK>>;
}

interface Peer {
  Bindings: Pick<Env, "DB" | "DEVICE_LIMIT" | "CLIENT_IP_LIMIT">;
  Variables: { application: Application; udid: string };
}

const CACHE_MILLISECONDS = 20_000;
const applications = new Map<string, { application: Application; loadedAt: number }>();

/** Nobody calls it: it is in the configuration by which all sides are built. */
export class Allocator extends DurableObject {}

type Statement = [sql: string, ...values: unknown[]];

const prepare = ({ env }: Context<Peer>, [sql, ...values]: Statement) => env.DB.prepare(sql).bind(...values);

/** In one transaction. @returns the number that the last statement returns */
async function write(c: Context<Peer>, ...statements: Statement[]): Promise<number | undefined> {
  const results = await c.env.DB.batch<{ number: number }>(statements.map((statement) => prepare(c, statement)));
  return results.at(-1)?.results[0]?.number;
}

async function findApplication(c: Context<Peer>): Promise<Application | null> {
  const id = c.req.header("applicationid") ?? "";
  const cached = applications.get(id);
  if (cached && Date.now() - cached.loadedAt < CACHE_MILLISECONDS) return cached.application;
  const select = prepare(c, ["SELECT * FROM application WHERE id = ?", id]);
  const row = await select.first<Application & { private_key: string }>();
  if (!row) return null;
  const application = { ...row, signingKey: await importJWK(JSON.parse(row.private_key), "ES256") };
  applications.set(id, { application, loadedAt: Date.now() });
  return application;
}

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

const nextNumber = (applicationId: string): Statement => [
  "UPDATE counter SET next = next + 1 WHERE application_id = ?",
  applicationId,
];
const INSERT_BADGE = "INSERT INTO badge (number, application_id, udid, user_id, metadata, created_at)";
const ISSUE = `${INSERT_BADGE} SELECT next - 1, ?1, ?2, ?3, ?4, ?5 FROM counter WHERE application_id = ?1
  RETURNING number`;
const CLAIM = `UPDATE invitation SET claimed_at = ?3
  WHERE token = ?2 AND application_id = ?1 AND claimed_at IS NULL AND expires_at > ?4`;
const ISSUE_CLAIMED = `${INSERT_BADGE}
  SELECT number, ?1, ?2, ?3, ?4, ?5 FROM invitation WHERE token = ?6 AND claimed_at = ?5 RETURNING number`;
const INVITE = `INSERT INTO invitation (token, application_id, number, expires_at)
  SELECT ?2, ?1, next - 1, ?3 FROM counter WHERE application_id = ?1 RETURNING number`;

const app = new Hono<Peer>();

app.post("/v1/badge", forDevices, async (c) => {
  const { application, udid } = c.var;
  const { id } = application;
  const body = await c.req.json<{ userId?: string; metadata?: object; invitationToken?: string }>();
  const { userId, metadata, invitationToken: token } = body;
  if (!userId) return c.json({ error: "UNDEFINED_USERID" }, 422);
  const select = "SELECT number FROM badge WHERE application_id = ? AND udid = ? AND user_id = ?";
  const existing = await prepare(c, [select, id, udid, userId]).first<{ number: number }>();
  if (existing) return c.json({ badgeId: String(existing.number) }, 200);
  const now = Date.now();
  const row = [id, udid, userId, metadata ? JSON.stringify(metadata) : null, now];
  const number = token
    ? await write(c, [CLAIM, id, token, now, new Date(now).toISOString()], [ISSUE_CLAIMED, ...row, token])
    : await write(c, nextNumber(id), [ISSUE, ...row]);
  if (number === undefined) return c.json({ error: "UNKNOWN_INVITATION" }, 404);
  c.executionCtx.waitUntil(sendWebhook(application, { id: String(number), userId, metadata }));
  return c.json({ badgeId: String(number), publicKey: application.public_key }, 201);
});

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
  const select = "SELECT number FROM badge WHERE application_id = ? AND udid = ? ORDER BY number DESC LIMIT 1";
  const badge = await prepare(c, [select, application.id, udid]).first<{ number: number }>();
  if (!badge) return c.json({ error: "UNKNOWN_BADGE" }, 404);
  const signature = await new SignJWT({ client_signature: base64 })
    .setProtectedHeader({ alg: "ES256" })
    .setSubject(String(badge.number))
    .setAudience(application.id)
    .setIssuedAt()
    .sign(application.signingKey);
  return c.json({ signature }, 200);
});

app.get("/v1/badges", async (c) => {
  const application = await findApplication(c);
  if (application?.secret !== c.req.header("applicationsecret")) return c.json({ error: "INVALID_CREDENTIALS" }, 401);
  const perPage = Math.min(Number(c.req.query("per_page") ?? 100), 1000);
  const select =
    "SELECT number, user_id, metadata FROM badge WHERE application_id = ? AND number > ? ORDER BY number LIMIT ?";
  const page = prepare(c, [select, application?.id, Number(c.req.query("cursor") ?? 0), perPage + 1]);
  const { results } = await page.all<{ number: number; user_id: string; metadata: string | null }>();
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
  const { id: applicationId } = c.var.application;
  const id = crypto.randomUUID();
  const number = await write(c, nextNumber(applicationId), [INVITE, applicationId, id, expiresAt]);
  return c.json({ id, badgeId: String(number), expiresAt }, 201);
});

export default app;
