import {
  DELIVERY_TIMEOUT_MILLISECONDS,
  MAX_RETRY_AFTER_SECONDS,
  RETRY_DELAYS_SECONDS,
  SLOW_RETRY_SECONDS,
} from "../../shared/limits/webhook-limits.ts";
import { EXAMPLE_SECRET } from "../../shared/openapi-examples.ts";

/** Text about all webhooks, for authors of receivers. */

const HOUR_SECONDS = 3600;

/** "5 s, 1 min, 5 min, …", with equal consecutive delays counted. */
export function describeDelays(delaysSeconds: readonly number[]): string {
  const runs: { wait: number; times: number }[] = [];
  for (const wait of delaysSeconds) {
    const last = runs.at(-1);
    if (last?.wait === wait) last.times++;
    else runs.push({ wait, times: 1 });
  }
  return runs.map(({ wait, times }) => `${times > 1 ? `${times} × ` : ""}${describeSeconds(wait)}`).join(", ");
}

function describeSeconds(seconds: number): string {
  if (seconds % HOUR_SECONDS === 0) return `${seconds / HOUR_SECONDS} h`;
  return seconds % 60 === 0 ? `${seconds / 60} min` : `${seconds} s`;
}

const totalHours = Math.floor(RETRY_DELAYS_SECONDS.reduce((sum, wait) => sum + wait, 0) / HOUR_SECONDS);

export const WEBHOOK_GUIDE = `The service calls the URL that an administrator set for the application; there is no route to set it. An application gets \`badge:created\` alone unless an administrator subscribes it to more (\`--events\`). An event is recorded in the same transaction as its change, so neither exists without the other. A call that changes nothing creates no event.

### Check that it is genuine

Compute over the **bytes of the body as received**, before parsing: the body is serialized once, and the same bytes are signed and sent on every attempt. One of the two is enough; the second also protects against old events sent again.

* **\`Signature\`**: base64 of HMAC-SHA1 over the body. The key is the application secret as it is, UTF-8, with its \`bdss_\`.
* **\`webhook-signature\`**, as [Standard Webhooks](https://www.standardwebhooks.com) has it: \`v1,\` and base64 of HMAC-SHA256 over \`webhook-id\`, a full stop, \`webhook-timestamp\`, a full stop and the body, with the same key. One entry for each live secret, separated by blanks: while a secret is being changed there are two, and one that matches is enough. \`Signature\` stays with the old secret until the new one is promoted.

\`\`\`js
// Node: body is a Buffer, secret the application secret
import { createHmac, timingSafeEqual } from "node:crypto";

const isEqual = (given, expected) => given.length === expected.length && timingSafeEqual(given, expected);

// Signature
const sha1 = createHmac("sha1", secret).update(body).digest();
const isGenuine = isEqual(Buffer.from(request.headers.signature ?? "", "base64"), sha1);

// webhook-signature; the time is checked, too, or an old event could be sent again
const { "webhook-id": id, "webhook-timestamp": timestamp, "webhook-signature": signatures = "" } = request.headers;
const sha256 = createHmac("sha256", secret).update(\`\${id}.\${timestamp}.\`).update(body).digest();
const isRecent = Math.abs(Date.now() / 1000 - Number(timestamp)) < 300;
const isGenuineAndRecent = isRecent && signatures.split(" ").some((entry) => {
  const [version, signature = ""] = entry.split(",");
  return version === "v1" && isEqual(Buffer.from(signature, "base64"), sha256);
});
\`\`\`

The first example of \`badge:created\` is real: its headers belong to its body (on one line, as it is sent) and the secret \`${EXAMPLE_SECRET}\`. Standard Webhooks libraries expect the key as base64: give them the base64 of the secret's UTF-8.

### Respond

* **2xx** at once, within ${DELIVERY_TIMEOUT_MILLISECONDS / 1000} seconds; do the work afterwards. Anything else is retried, including redirects, which are not followed.
* **410** says that the endpoint is gone: no further attempts, and its deliveries are held until an administrator's test succeeds.
* **429** or no response in time: the next attempt comes after ${SLOW_RETRY_SECONDS} seconds or later. \`Retry-After\` is honoured up to ${MAX_RETRY_AFTER_SECONDS / HOUR_SECONDS} hours.

### What to expect

* **At least once**: the same event may come again, with the same \`id\`. Keep the IDs of events that you have processed.
* **In any order**: of a badge's events, the one with the highest \`change\` is the newest; ignore the older ones. \`badge:created\` has no \`change\`, and precedes all others. An event of an invitation has no \`change\` either: ignore it if its number is a badge by now. To keep a mirror of all badges, follow \`GET /v1/changes\` and use events only as the signal to read it now.
* **${RETRY_DELAYS_SECONDS.length + 1} attempts over ${totalHours} hours**, after ${describeDelays(RETRY_DELAYS_SECONDS)}, each up to 10 % longer. Then the event is kept as exhausted, and an administrator can replay it.
* Event kinds may be added: respond 2xx to a kind that you do not know.
* While an application is disabled its events wait; they are sent when it is enabled again.
* No URL set: nothing is sent, and nothing queues up for later. \`GET /v1/changes\` has what was missed.

URLs are https on port 443, with a public host name: no IP address, no user info, nothing internal. A service that runs locally also takes \`http://localhost:PORT\` and \`http://127.0.0.1:PORT\`.`;
