import { type JwkSet, readStatusDelta, type StatusDelta } from "../verify/index.ts";

/** The service responds after 50 seconds at the latest (contract section 26). */
const WAIT_SECONDS = 65;
/** Wait after a refusal: another door has this secret, or the secret is wrong, so there is no hurry. */
const REFUSED_WAIT_SECONDS = 60;

/** A response of the service, or why there was none. */
export type LiveResult =
  | { kind: "delta"; delta: StatusDelta; jwt: string }
  /** Call again after `waitSeconds`; null for the usual delay after a failure. */
  | { kind: "failed"; reason: string; waitSeconds: number | null; isUnknownKey?: boolean };

export interface LiveCall {
  serviceUrl: string;
  applicationId: string;
  secret: string;
  keys: JwkSet;
  /** The last change that the door has. */
  have: number;
  signal: AbortSignal;
  fetch: (url: string, init: RequestInit) => Promise<Response>;
  readText: (response: Response) => Promise<string>;
}

const REFUSALS: { readonly [status: number]: string } = {
  401: "the service does not know this secret",
  404: "the application has no status lists",
  429: "another door has called with this secret",
};

/**
 * Waits until a badge's status has changed, or the service responds that none has.
 *
 * @throws Error without a response
 */
export async function waitForDelta({ fetch, readText, keys, have, ...call }: LiveCall): Promise<LiveResult> {
  const { serviceUrl, applicationId, secret } = call;
  const signal = AbortSignal.any([call.signal, AbortSignal.timeout(WAIT_SECONDS * 1000)]);
  const headers = { applicationid: applicationId, applicationsecret: secret };
  const response = await fetch(`${serviceUrl}/v1/live?have=${have}`, { headers, signal, redirect: "error" });
  const text = await readText(response);
  if (response.status !== 200) {
    const refusal = REFUSALS[response.status];
    if (refusal === undefined) return failed(`GET /v1/live responded with ${response.status}`);
    return { kind: "failed", reason: refusal, waitSeconds: REFUSED_WAIT_SECONDS };
  }
  const uri = `${serviceUrl}/v1/applications/${applicationId}/status`;
  const read = await readStatusDelta(text, { keys, uri });
  if (read.ok) return { kind: "delta", delta: read.delta, jwt: text };
  return { ...failed(`a delta is refused (${read.reason})`), isUnknownKey: read.reason === "unknown-key" };
}

const failed = (reason: string) => ({ kind: "failed", reason, waitSeconds: null }) as const;
