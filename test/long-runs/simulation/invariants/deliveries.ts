import { createHmac } from "node:crypto";
import type { Received } from "../platform/network.ts";
import type { Row } from "../platform/sqlite.ts";
import { MAX_DELAY_MILLISECONDS } from "../platform/wire.ts";
import type { Credentials } from "./credentials.ts";
import type { Rows } from "./rows.ts";
import type { Verdict } from "./verdict.ts";

/**
 * Two attempts of one event are at least this far apart, in milliseconds: the first wait of contract section 8, less
 * what two clocks may differ.
 */
const LEAST_DISTANCE_MILLISECONDS = 4000;
/** How long an attempt may take (contract section 8). One whose sender died may still be with its receiver for so long. */
const ATTEMPT_MILLISECONDS = 15_000;

interface Known {
  body: string;
  lastSentAt: number;
  attempts: number;
  isAccepted: boolean;
}

/** What receivers may rely on (contract section 8), checked at every request that one gets. */
export class Deliveries {
  readonly #verdict: Verdict;
  readonly #rows: Rows;
  readonly #credentials: Credentials;
  readonly #findEvent: (eventId: string) => Row | undefined;
  readonly #known = new Map<string, Known>();
  /** Attempts whose sender does not know their end yet: when each began, in milliseconds. */
  readonly #underWay = new Map<string, number>();

  constructor(parts: {
    verdict: Verdict;
    rows: Rows;
    credentials: Credentials;
    findEvent: (eventId: string) => Row | undefined;
  }) {
    this.#verdict = parts.verdict;
    this.#rows = parts.rows;
    this.#credentials = parts.credentials;
    this.#findEvent = parts.findEvent;
  }

  /** Whether a receiver ever answered an event with 2xx. */
  isAccepted(eventId: string): boolean {
    return this.#known.get(eventId)?.isAccepted ?? false;
  }

  /** An attempt leaves. @returns to be called when its sender knows its end */
  begin({ headers, sentAt }: Received): () => void {
    const eventId = headers["webhook-id"] ?? "";
    const otherSince = this.#underWay.get(eventId) ?? Number.NEGATIVE_INFINITY;
    const isReleased = (this.#rows.releasedAt.get(eventId) ?? 0) >= otherSince;
    this.#verdict.expect(
      sentAt - otherSince >= ATTEMPT_MILLISECONDS || isReleased,
      "no attempt begins while another of the same event is under way",
      () => `${eventId} was sent again ${sentAt - otherSince} ms after an attempt without an end`,
    );
    this.#underWay.set(eventId, sentAt);
    return () => {
      if (this.#underWay.get(eventId) === sentAt) this.#underWay.delete(eventId);
    };
  }

  /** @returns attempts of this event that arrived before */
  check(
    applicationId: string,
    { headers, body: bytes, sentAt }: Received,
  ): { eventId: string; attemptsBefore: number } {
    const eventId = headers["webhook-id"] ?? "";
    const body = new TextDecoder().decode(bytes);
    const known = this.#known.get(eventId);
    const row = this.#findEvent(eventId);
    this.#verdict.expect(row?.payload === body, "what is sent is what D1 recorded with the badge", () => {
      return `${eventId}: ${body}; recorded: ${String(row?.payload)}`;
    });
    const isSame = known === undefined || known.body === body;
    this.#verdict.expect(isSame, "an event has the same bytes at every attempt", () => `${eventId}: ${body}`);
    this.#checkSignature(applicationId, eventId, headers, bytes, sentAt);
    this.#checkMoment(eventId, known, sentAt);
    const attemptsBefore = known?.attempts ?? 0;
    this.#known.set(eventId, {
      body,
      lastSentAt: sentAt,
      attempts: attemptsBefore + 1,
      isAccepted: known?.isAccepted ?? false,
    });
    return { eventId, attemptsBefore };
  }

  /** A receiver answers an event with 2xx. */
  accept(eventId: string): void {
    const known = this.#known.get(eventId);
    if (known) known.isAccepted = true;
  }

  #checkSignature(
    applicationId: string,
    eventId: string,
    headers: Record<string, string>,
    bytes: Uint8Array,
    sentAt: number,
  ): void {
    const current = this.#credentials.currentAround(applicationId, sentAt);
    const isSigned = current.some((secret) => hmac("sha1", secret, bytes) === headers.Signature);
    this.#verdict.expect(isSigned, "every webhook is signed with the current secret", () => eventId);
    const content = Buffer.concat([Buffer.from(`${eventId}.${headers["webhook-timestamp"]}.`), bytes]);
    const entries = headers["webhook-signature"]?.split(" ") ?? [];
    const isStandard = current.some((secret) => entries.includes(`v1,${hmac("sha256", secret, content)}`));
    this.#verdict.expect(isStandard, "every webhook has a Standard Webhooks signature", () => eventId);
  }

  #checkMoment(eventId: string, known: Known | undefined, sentAt: number): void {
    const deliveredAt = this.#rows.deliveredAt.get(eventId) ?? Number.POSITIVE_INFINITY;
    this.#verdict.expect(
      sentAt <= deliveredAt + MAX_DELAY_MILLISECONDS,
      "nothing is sent after a 2xx was recorded",
      () => `${eventId} was sent ${(sentAt - deliveredAt) / 1000} s after it was recorded as delivered`,
    );
    if (!known) return;
    const distance = Math.abs(sentAt - known.lastSentAt);
    const isReleased = (this.#rows.releasedAt.get(eventId) ?? 0) >= Math.min(known.lastSentAt, sentAt);
    this.#verdict.expect(
      distance >= LEAST_DISTANCE_MILLISECONDS || isReleased,
      "an event is sent by one at a time, and waits after a failure",
      () => `${eventId} was sent twice within ${distance} ms`,
    );
  }
}

function hmac(hash: "sha1" | "sha256", secret: string, bytes: Uint8Array): string {
  return createHmac(hash, secret).update(bytes).digest("base64");
}
