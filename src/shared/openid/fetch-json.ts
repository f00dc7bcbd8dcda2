import { USER_AGENT } from "../identifiers.ts";
import { MAX_ISSUER_DOCUMENT_BYTES } from "../limits/user-token-limits.ts";
import { checkOutboundUrl } from "../outbound-url.ts";

/** The fault of an OpenID provider's document. */
type ProviderFault =
  | "refused-url"
  | "unreachable"
  | "timeout"
  | "wrong-status"
  | "too-large"
  | "malformed"
  | "other-issuer"
  | "no-usable-key";

export class ProviderError extends Error {
  override readonly name = "ProviderError";
  readonly fault: ProviderFault;
  readonly url: string;
  /** More about the fault: the status, the rule that the URL breaks, the issuer that was named. */
  readonly detail: string | undefined;

  constructor(fault: ProviderFault, url: string, detail?: string) {
    super(detail === undefined ? fault : `${fault}: ${detail}`);
    this.fault = fault;
    this.url = url;
    this.detail = detail;
  }
}

/** Options of a fetch. */
export interface FetchRules {
  /** Whether the service runs locally: only then may a provider be on localhost. */
  local: boolean;
  /** Ends the fetch, reading included. */
  signal: AbortSignal;
}

/**
 * Fetches a JSON document of an OpenID provider. URLs obey the rules for webhooks (contract section 8), and redirects
 * are not followed, so a provider cannot direct the service to a private address. Runs on Workers and on Node.
 *
 * @throws ProviderError
 */
export async function fetchJson(url: string, { local, signal }: FetchRules): Promise<unknown> {
  const check = checkOutboundUrl(url, { local });
  if (!check.ok) throw new ProviderError("refused-url", url, check.reason);
  try {
    const headers = { accept: "application/json", "user-agent": USER_AGENT };
    const response = await fetch(check.url, { redirect: "manual", headers, signal });
    if (response.status !== 200) {
      // Not awaited: a provider could delay it.
      void response.body?.cancel().catch(() => undefined);
      throw new ProviderError("wrong-status", url, String(response.status));
    }
    return parse(url, await readBounded(url, response));
  } catch (error) {
    if (error instanceof ProviderError) throw error;
    throw new ProviderError(signal.aborted ? "timeout" : "unreachable", url);
  }
}

async function readBounded(url: string, { body }: Response): Promise<string> {
  if (body === null) return "";
  const reader: ReadableStreamDefaultReader<Uint8Array> = body.getReader();
  const decoder = new TextDecoder();
  let text = "";
  for (let length = 0; ; ) {
    const { done, value } = await reader.read();
    if (done) return text + decoder.decode();
    length += value.byteLength;
    if (length > MAX_ISSUER_DOCUMENT_BYTES) {
      void reader.cancel().catch(() => undefined);
      throw new ProviderError("too-large", url);
    }
    text += decoder.decode(value, { stream: true });
  }
}

function parse(url: string, text: string): unknown {
  try {
    return JSON.parse(text);
  } catch {
    throw new ProviderError("malformed", url);
  }
}
