/**
 * The peer: the design that most people would write for new badges and logins. Hono and D1, a counter row and the number as
 * primary key, no object, no queue; a webhook is sent once, after the response. It is given what it can have for free: the
 * application is remembered as long as the service remembers it, and a new badge is one read and one batch.
 *
 * It promises less: numbers in sequence, secrets as plain text, a webhook that is lost with its request.
 */
import { Hono } from "hono";
import { type Application, findApplication } from "./floor.ts";

/** Nobody calls it: it is in the configuration by which all sides are built. */
export { Allocator } from "./floor.ts";

interface PeerRow {
  secret: string;
  webhook_url: string | null;
}

const rows = new WeakMap<Application, PeerRow>();

const COUNT = "UPDATE peer_application SET next = next + 1 WHERE id = ?";
const ISSUE = `INSERT INTO peer_badge (number, application_id, udid, user_id, metadata, created_at)
  SELECT next - 1, ?1, ?2, ?3, ?4, ?5 FROM peer_application WHERE id = ?1 RETURNING number`;

const app = new Hono<{ Bindings: Env }>();

app.post("/v1/badge", async (c) => {
  const { DB, DEVICE_LIMIT, CLIENT_IP_LIMIT } = c.env;
  const application = await findApplication(c.env, c.req.header("applicationid") ?? "");
  const { id, signingKey } = application;
  const select = DB.prepare("SELECT secret, webhook_url FROM peer_application WHERE id = ?").bind(id);
  const known = rows.get(application) ?? (await select.first<PeerRow>());
  const udid = c.req.header("udid");
  if (!known || !udid) return c.json({ error: "INVALID_CREDENTIALS" }, 401);
  rows.set(application, known);
  const limits = await Promise.all([
    DEVICE_LIMIT.limit({ key: `${id}:${udid}` }),
    CLIENT_IP_LIMIT.limit({ key: `${id}:${c.req.header("cf-connecting-ip")}` }),
  ]);
  if (limits.some(({ success }) => !success)) return c.json({ error: "RATE_LIMITED" }, 429);
  const { userId, metadata } = await c.req.json<{ userId?: string; metadata?: object }>();
  if (!userId) return c.json({ error: "UNDEFINED_USERID" }, 422);
  const lookUp = "SELECT number FROM peer_badge WHERE application_id = ? AND udid = ? AND user_id = ?";
  const existing = await DB.prepare(lookUp).bind(id, udid, userId).first<{ number: number }>();
  if (existing) return c.json({ badgeId: String(existing.number) }, 200);
  const values = [id, udid, userId, metadata ? JSON.stringify(metadata) : null, Date.now()];
  const [, issued] = await DB.batch<{ number: number }>([
    DB.prepare(COUNT).bind(id),
    DB.prepare(ISSUE).bind(...values),
  ]);
  const badgeId = String(issued?.results[0]?.number);
  c.executionCtx.waitUntil(sendWebhook(known, { id: badgeId, userId, metadata }));
  return c.json({ badgeId, publicKey: signingKey.publicKey }, 201);
});

async function sendWebhook({ secret, webhook_url: url }: PeerRow, data: object): Promise<void> {
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

export default app;
