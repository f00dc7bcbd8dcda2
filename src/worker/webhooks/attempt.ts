import {
  DELIVERY_TIMEOUT_MILLISECONDS,
  MAX_RESPONSE_KEPT_BYTES,
  MAX_RESPONSE_READ_BYTES,
} from "../../shared/limits.ts";
import { parseRetryAfter } from "../../shared/retry-after.ts";
import { USER_AGENT } from "../../shared/user-agent.ts";
import { checkWebhookUrl } from "../../shared/webhook-url.ts";
import type { AttemptOutcome } from "./policy.ts";

export interface Attempt {
  outcome: AttemptOutcome;
  /** The first bytes of the answer as text, without anything that we sent in headers. */
  response: string | null;
  milliseconds: number;
}

/** Sends one webhook once. Never throws: whatever goes wrong is an outcome. */
export async function attemptDelivery(request: {
  url: string;
  headers: Record<string, string>;
  body: Uint8Array;
  isLocal: boolean;
}): Promise<Attempt> {
  const { url, headers, body, isLocal } = request;
  const startedAt = Date.now();
  const finish = (outcome: AttemptOutcome, response: string | null = null): Attempt => ({
    outcome,
    response,
    milliseconds: Date.now() - startedAt,
  });
  const checked = checkWebhookUrl(url, { local: isLocal });
  if (!checked.ok) return finish({ kind: "refused", reason: checked.reason });
  const signal = AbortSignal.timeout(DELIVERY_TIMEOUT_MILLISECONDS);
  try {
    const response = await fetch(checked.url, {
      method: "POST",
      headers: { ...headers, "User-Agent": USER_AGENT },
      body,
      redirect: "manual",
      signal,
    });
    const retryAfterSeconds = parseRetryAfter(response.headers.get("retry-after"), Date.now());
    const text = await readStart(response);
    return finish({ kind: "answered", status: response.status, retryAfterSeconds }, kept(text, headers));
  } catch {
    return finish(signal.aborted ? { kind: "timeout" } : { kind: "network" });
  }
}

/**
 * The start of an answer's body. The status is what counts: a body that never ends, or breaks off, changes nothing. The
 * connection is always given back, because an invocation has six.
 */
async function readStart(response: Response): Promise<string> {
  const reader = response.body?.getReader();
  if (!reader) return "";
  const decoder = new TextDecoder();
  let text = "";
  let room = MAX_RESPONSE_READ_BYTES;
  try {
    while (room > 0) {
      const chunk = await reader.read();
      if (chunk.done) break;
      text += decoder.decode(chunk.value.subarray(0, room), { stream: true });
      room -= chunk.value.byteLength;
    }
  } catch {
    return text;
  } finally {
    // Not awaited: when a stream calls itself cancelled is its own affair.
    void reader.cancel().catch(() => undefined);
  }
  return text;
}

/** Shorter pieces of a signature tell nothing, and may stand in any text. */
const MIN_TELLING_CHARACTERS = 4;

/**
 * What is kept of an answer: at most 1 KiB, without control characters (it is printed on a terminal) and without our
 * signatures, which an endpoint that echoes its request sends back. However they are escaped there (`\/`, `%2B`, `&#61;`),
 * their letters and digits stay as they are, so those are what is taken out.
 */
function kept(text: string, headers: Record<string, string>): string {
  if (text === "") return "";
  const pieces = [headers.Signature, headers["webhook-signature"]]
    .flatMap((value) => value?.split(/[^A-Za-z0-9]+/) ?? [])
    .filter((piece) => piece.length >= MIN_TELLING_CHARACTERS)
    .sort((one, other) => other.length - one.length);
  let clean = text;
  for (const piece of pieces) clean = clean.replaceAll(piece, "[removed]");
  const printable = clean.replaceAll(/[\p{Cc}\p{Cf}]/gu, " ");
  const bytes = new TextEncoder().encode(printable).subarray(0, MAX_RESPONSE_KEPT_BYTES);
  // A character that the cut went through is dropped.
  return new TextDecoder().decode(bytes, { stream: true });
}
