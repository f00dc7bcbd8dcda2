/**
 * The peer: the design that most people would write for new badges and logins. Hono and D1, a counter row and the number as
 * primary key, no object, no queue; a webhook is sent once, after the response. It is given what it can have for free: the
 * application is remembered as long as the service remembers it, and a new badge is one read and one batch.
 *
 * It promises less: numbers in sequence, secrets as plain text, a webhook that is lost with its request.
 */
import { Hono } from "hono";
import { findApplication } from "./floor.ts";

/** Nobody calls them: they are in the configuration by which all sides are built. */
export { Allocator, HomeScheduler, Live } from "./floor.ts";

interface Issued {
  number: number;
  secret: string;
  url: string | null;
}

const COUNT = "UPDATE peer_application SET next = next + 1 WHERE id = ?";
const ISSUE = `INSERT INTO peer_badge (number, application_id, udid, user_id, metadata, created_at)
  SELECT next - 1, ?1, ?2, ?3, ?4, ?5 FROM peer_application WHERE id = ?1
  RETURNING number, (SELECT secret FROM peer_application WHERE id = ?1) AS secret,
    (SELECT webhook_url FROM peer_application WHERE id = ?1) AS url`;

const app = new Hono<{ Bindings: Env }>();

app.post("/v1/badge", async (c) => {
  const { DB, DEVICE_LIMIT, CLIENT_IP_LIMIT } = c.env;
  const { id, signingKey } = await findApplication(c.env, c.req.header("applicationid") ?? "");
  const udid = c.req.header("udid");
  const limits = await Promise.all([
    DEVICE_LIMIT.limit({ key: `${id}:${udid}` }),
    CLIENT_IP_LIMIT.limit({ key: `${id}:${c.req.header("cf-connecting-ip")}` }),
  ]);
  if (limits.some(({ success }) => !success)) return c.json({ error: "RATE_LIMITED" }, 429);
  const { userId, metadata } = await c.req.json<{ userId?: string; metadata?: object }>();
  if (!udid || !userId) return c.json({ error: "UNDEFINED_USERID" }, 422);
  const lookUp = "SELECT number FROM peer_badge WHERE application_id = ? AND udid = ? AND user_id = ?";
  const existing = await DB.prepare(lookUp).bind(id, udid, userId).first("number");
  if (existing) return c.json({ badgeId: String(existing) }, 200);
  const values = [id, udid, userId, metadata ? JSON.stringify(metadata) : null, Date.now()];
  const [, issued] = await DB.batch<Issued>([DB.prepare(COUNT).bind(id), DB.prepare(ISSUE).bind(...values)]);
  const [badge] = issued?.results ?? [];
  if (!badge) return c.json({ error: "UNKNOWN_APPLICATION" }, 404);
  const badgeId = String(badge.number);
  c.executionCtx.waitUntil(sendWebhook(badge, { id: badgeId, userId, metadata }));
  return c.json({ badgeId, publicKey: signingKey.publicKey }, 201);
});

async function sendWebhook({ secret, url }: Issued, data: object): Promise<void> {
  if (url === null) return;
  const body = JSON.stringify({ event: "badge:created", data });
  const algorithm = { name: "HMAC", hash: "SHA-1" };
  const key = await crypto.subtle.importKey("raw", new TextEncoder().encode(secret), algorithm, false, ["sign"]);
  const mac = await crypto.subtle.sign("HMAC", key, new TextEncoder().encode(body));
  const headers = { "content-type": "application/json", signature: btoa(String.fromCharCode(...new Uint8Array(mac))) };
  const response = await fetch(url, { method: "POST", headers, body });
  await response.body?.cancel();
}

export default app;
