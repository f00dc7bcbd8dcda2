import { USER_AGENT } from "../../shared/identifiers.ts";
import {
  DELIVERY_TIMEOUT_MILLISECONDS,
  MAX_RESPONSE_READ_BYTES,
  MAX_STORED_RESPONSE_BYTES,
} from "../../shared/limits/webhook-limits.ts";
import { checkOutboundUrl } from "../../shared/outbound-url.ts";
import { parseRetryAfter } from "../../shared/retry-after.ts";
import type { AttemptOutcome } from "./delivery-policy.ts";

export interface Attempt {
  outcome: AttemptOutcome;
  /** The start of the response body as text, without the signatures that we sent. */
  response: string | null;
  milliseconds: number;
}

/** Sends one webhook once. Never throws: every failure is an outcome. */
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
  const checked = checkOutboundUrl(url, { local: isLocal });
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
    const text = await readPrefix(response);
    return finish({ kind: "answered", status: response.status, retryAfterSeconds }, sanitizeResponse(text, headers));
  } catch {
    return finish(signal.aborted ? { kind: "timeout" } : { kind: "network" });
  }
}

/**
 * The start of a response body. Only the status decides, so an endless or broken body is ignored. The connection is
 * always released, because an invocation has only six.
 */
async function readPrefix(response: Response): Promise<string> {
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
    // Not awaited: a receiver could delay it.
    void reader.cancel().catch(() => undefined);
  }
  return text;
}

/** Shorter pieces of a signature reveal nothing, and may occur in ordinary text. */
const MIN_SECRET_CHARACTERS = 4;

/**
 * The part of a response that is stored: at most 1 KiB, without control characters (it is printed on a terminal) and
 * without our signatures, which an endpoint may echo. Escaping (`\/`, `%2B`, `&#61;`) leaves runs of letters and digits
 * intact, so these runs are removed.
 */
function sanitizeResponse(text: string, headers: Record<string, string>): string {
  const pieces = [headers.Signature, headers["webhook-signature"]]
    .flatMap((value) => value?.split(/[^A-Za-z0-9]+/) ?? [])
    .filter((piece) => piece.length >= MIN_SECRET_CHARACTERS)
    .sort((one, other) => other.length - one.length);
  let clean = text;
  for (const piece of pieces) clean = clean.replaceAll(piece, "[removed]");
  const printable = clean.replaceAll(/[\p{Cc}\p{Cf}]/gu, " ");
  const bytes = new TextEncoder().encode(printable).subarray(0, MAX_STORED_RESPONSE_BYTES);
  // `stream` drops a character that was cut in half.
  return new TextDecoder().decode(bytes, { stream: true });
}
