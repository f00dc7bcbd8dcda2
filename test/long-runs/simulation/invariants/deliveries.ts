import { createHmac } from "node:crypto";
import { Member } from "../member.ts";
import type { Received } from "../platform/network.ts";
import type { Row } from "../platform/sqlite.ts";
import { MAX_DELAY_MILLISECONDS } from "../platform/wire.ts";
import type { Span } from "./history.ts";

/**
 * Two attempts of one event are at least this far apart, in milliseconds: the first wait of contract section 8, less
 * what two clocks may differ.
 */
const LEAST_DISTANCE_MILLISECONDS = 4000;
/** How long an attempt may take (contract section 8). One whose sender died may still be with its receiver for so long. */
const ATTEMPT_MILLISECONDS = 15_000;
/** How long a webhook may be on its way from the claim, which reads the secrets, to its receiver, in milliseconds. */
const ON_ITS_WAY_MILLISECONDS = 60_000;

/** What receivers may rely on (contract section 8), checked at every attempt that leaves. */
export class Deliveries extends Member {
  /** Each event's last attempt: when it left, in milliseconds, and whether its sender knows its end. */
  readonly #last = new Map<string, { sentAt: number; isOver: boolean }>();
  readonly accepted = new Set<string>();

  /** An attempt leaves. @returns to be called when its sender knows its end */
  begin(received: Received): () => void {
    const { verdict, history, replica, d1 } = this.world;
    const { headers, body, sentAt } = received;
    const id = headers["webhook-id"] ?? "";
    // D1 may have forgotten it since.
    const spans = history.during("webhook_event", { id }, 0, sentAt);
    const event = spans[0]?.row;
    const sent = new TextDecoder().decode(body);
    const isRecorded = spans.some(({ row }) => row.payload === sent);
    verdict.expect(isRecorded, "what is sent is what D1 recorded with the badge", id, event);
    this.#checkSignatures(event?.application_id ?? null, received);
    const isRecentlyDelivered = ({ row, from, to }: Span) =>
      row.state !== "delivered" || to < sentAt || sentAt - from <= MAX_DELAY_MILLISECONDS;
    verdict.expect(spans.every(isRecentlyDelivered), "nothing is sent after a 2xx was recorded", id, spans);
    const last = this.#last.get(id) ?? { sentAt: Number.NEGATIVE_INFINITY, isOver: true };
    const least = last.isOver ? LEAST_DISTANCE_MILLISECONDS : ATTEMPT_MILLISECONDS;
    // An administrator made it due, or D1 forgot in a restoration the attempt, or that somebody who sends now had claimed it.
    const rememberedFrom = Math.min(last.sentAt, sentAt - ON_ITS_WAY_MILLISECONDS);
    const application = String(event?.application_id);
    const wasForgotten =
      d1.wasRestored(application, rememberedFrom, sentAt) || replica.lacked(application, rememberedFrom, sentAt);
    const wasHeld = spans.some(({ row, to }) => row.state === "held" && to >= last.sentAt && to <= sentAt);
    // What nobody has tried yet is not leased: two messages for it are two attempts, and delivery is at least once.
    const wasUntried = spans.some(({ row, to }) => row.due_at === null && to >= last.sentAt - ON_ITS_WAY_MILLISECONDS);
    const isReleased = wasHeld || wasForgotten || wasUntried;
    const promise = "no attempt begins while another of the same event is under way, or at once after it";
    verdict.expect(isReleased || sentAt - last.sentAt >= least, promise, id, `after ${sentAt - last.sentAt} ms`);
    const attempt = { sentAt, isOver: false };
    this.#last.set(id, attempt);
    return () => {
      attempt.isOver = true;
    };
  }

  #checkSignatures(application_id: Row[string], { headers, body, sentAt }: Received): void {
    const { verdict, history } = this.world;
    const current = { application_id, role: "current" };
    const spans = history.during("application_secret", current, sentAt - ON_ITS_WAY_MILLISECONDS, sentAt);
    const content = Buffer.concat([Buffer.from(`${headers["webhook-id"]}.${headers["webhook-timestamp"]}.`), body]);
    const entries = headers["webhook-signature"]?.split(" ") ?? [];
    const isSigned = spans.some(({ row: { sealed: secret } }) => hmac("sha1", secret, body) === headers.Signature);
    verdict.expect(isSigned, "every webhook is signed with the current secret", headers);
    const isStandard = spans.some(({ row }) => entries.includes(`v1,${hmac("sha256", row.sealed, content)}`));
    verdict.expect(isStandard, "every webhook has a Standard Webhooks signature", headers);
  }
}

const hmac = (hash: "sha1" | "sha256", secret: unknown, bytes: Uint8Array): string =>
  createHmac(hash, String(secret)).update(bytes).digest("base64");
