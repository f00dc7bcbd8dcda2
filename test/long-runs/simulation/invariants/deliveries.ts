import { createHmac } from "node:crypto";
import { Member } from "../member.ts";
import type { Received } from "../platform/network.ts";
import { MAX_DELAY_MILLISECONDS } from "../platform/wire.ts";

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
export class Deliveries extends Member {
  readonly #known = new Map<string, Known>();
  /** Attempts whose sender does not know their end yet: when each began, in milliseconds. */
  readonly #underWay = new Map<string, number>();

  /** Whether a receiver ever answered an event with 2xx. */
  isAccepted(eventId: string): boolean {
    return this.#known.get(eventId)?.isAccepted ?? false;
  }

  /** An attempt leaves. @returns to be called when its sender knows its end */
  begin({ headers, sentAt }: Received): () => void {
    const eventId = headers["webhook-id"] ?? "";
    const otherSince = this.#underWay.get(eventId) ?? Number.NEGATIVE_INFINITY;
    const isAlone = sentAt - otherSince >= ATTEMPT_MILLISECONDS || this.#isReleasedSince(eventId, otherSince);
    const invariant = "no attempt begins while another of the same event is under way";
    this.world.verdict.expect(isAlone, invariant, eventId, `was sent again after ${sentAt - otherSince} ms`);
    this.#underWay.set(eventId, sentAt);
    return () => {
      if (this.#underWay.get(eventId) === sentAt) this.#underWay.delete(eventId);
    };
  }

  /** @returns attempts of this event that arrived before */
  check(applicationId: string, received: Received): { eventId: string; attemptsBefore: number } {
    const { verdict, d1 } = this.world;
    const { headers, sentAt } = received;
    const eventId = headers["webhook-id"] ?? "";
    const body = new TextDecoder().decode(received.body);
    const known = this.#known.get(eventId);
    const [row] = d1.look("SELECT payload FROM webhook_event WHERE id = ?", eventId);
    verdict.expect(row?.payload === body, "what is sent is what D1 recorded with the badge", eventId, body, row);
    const isSame = known === undefined || known.body === body;
    verdict.expect(isSame, "an event has the same bytes at every attempt", eventId, body);
    this.#checkSignature(applicationId, eventId, received);
    this.#checkMoment(eventId, known, sentAt);
    const attemptsBefore = known?.attempts ?? 0;
    const isAccepted = known?.isAccepted ?? false;
    this.#known.set(eventId, { body, lastSentAt: sentAt, attempts: attemptsBefore + 1, isAccepted });
    return { eventId, attemptsBefore };
  }

  /** A receiver answers an event with 2xx. */
  accept(eventId: string): void {
    const known = this.#known.get(eventId);
    if (known) known.isAccepted = true;
  }

  #checkSignature(applicationId: string, eventId: string, { headers, body, sentAt }: Received): void {
    const { verdict, credentials } = this.world;
    const current = credentials.currentAround(applicationId, sentAt);
    const isSigned = current.some((secret) => hmac("sha1", secret, body) === headers.Signature);
    verdict.expect(isSigned, "every webhook is signed with the current secret", eventId);
    const content = Buffer.concat([Buffer.from(`${eventId}.${headers["webhook-timestamp"]}.`), body]);
    const entries = headers["webhook-signature"]?.split(" ") ?? [];
    const isStandard = current.some((secret) => entries.includes(`v1,${hmac("sha256", secret, content)}`));
    verdict.expect(isStandard, "every webhook has a Standard Webhooks signature", eventId);
  }

  #checkMoment(eventId: string, known: Known | undefined, sentAt: number): void {
    const { verdict, rows } = this.world;
    const late = sentAt - (rows.deliveredAt.get(eventId) ?? Number.POSITIVE_INFINITY);
    const isPending = late <= MAX_DELAY_MILLISECONDS;
    verdict.expect(isPending, "nothing is sent after a 2xx was recorded", eventId, `was sent ${late / 1000} s later`);
    if (!known) return;
    const distance = Math.abs(sentAt - known.lastSentAt);
    const isReleased = this.#isReleasedSince(eventId, Math.min(known.lastSentAt, sentAt));
    const hasWaited = distance >= LEAST_DISTANCE_MILLISECONDS || isReleased;
    const invariant = "an event is sent by one at a time, and waits after a failure";
    verdict.expect(hasWaited, invariant, eventId, `was sent twice within ${distance} ms`);
  }

  /** Whether an administrator made the event due. */
  #isReleasedSince(eventId: string, since: number): boolean {
    return (this.world.rows.releasedAt.get(eventId) ?? 0) >= since;
  }
}

const hmac = (hash: "sha1" | "sha256", secret: string, bytes: Uint8Array): string =>
  createHmac(hash, secret).update(bytes).digest("base64");
