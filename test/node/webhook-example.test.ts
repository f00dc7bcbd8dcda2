import { afterEach, describe, expect, it, vi } from "vitest";
import { openApiDocument } from "../../src/docs-page/openapi/document.ts";
import { EXAMPLE_SECRET, EXAMPLE_WEBHOOK_BODY, EXAMPLE_WEBHOOK_HEADERS } from "../../src/shared/openapi-examples.ts";

const SENT_AT = Number(EXAMPLE_WEBHOOK_HEADERS["webhook-timestamp"]) * 1000;

/** As Node names the headers. */
const HEADERS = Object.fromEntries(new Headers(EXAMPLE_WEBHOOK_HEADERS));

let runs = 0;

/** Runs the JavaScript of the reference as somebody does who copies it. */
async function runExample(body: string, headers: Record<string, string>): Promise<unknown> {
  const { description = "" } = openApiDocument(0).tags.find(({ name }) => name === "Webhooks") ?? {};
  const [, code] = /```js\n(.*?)```/s.exec(description) ?? [];
  const module = `
    // ${runs++}: each run is a module of its own.
    const secret = ${JSON.stringify(EXAMPLE_SECRET)};
    const body = Buffer.from(${JSON.stringify(body)});
    const request = { headers: ${JSON.stringify(headers)} };
    ${code}
    export default { isGenuine, isGenuineAndRecent };`;
  const { default: verdicts } = await import(/* @vite-ignore */ `data:text/javascript,${encodeURIComponent(module)}`);
  return verdicts;
}

describe("the example that checks a webhook, in the reference (contract section 8)", () => {
  afterEach(() => {
    vi.useRealTimers();
  });

  const entries = `v1,AAAA ${HEADERS["webhook-signature"]}`;
  const renewed = String(SENT_AT / 1000 + 300);

  it.each([
    ["accepts", "a genuine webhook", true, true, { body: EXAMPLE_WEBHOOK_BODY, headers: HEADERS, seconds: 60 }],
    ["accepts", "another secret's entry beside", true, true, { headers: { ...HEADERS, "webhook-signature": entries } }],
    ["refuses", "another body", false, false, { body: `${EXAMPLE_WEBHOOK_BODY} ` }],
    ["refuses", "a call without headers", false, false, { headers: {} }],
    ["refuses by HMAC-SHA256", "one older than five minutes", true, false, { seconds: 301 }],
    ["refuses by HMAC-SHA256", "another time", true, false, { headers: { ...HEADERS, "webhook-timestamp": renewed } }],
  ] as const)("the reference's example %s %s", async (_, __, isGenuine, isGenuineAndRecent, changed) => {
    const { body, headers, seconds } = { body: EXAMPLE_WEBHOOK_BODY, headers: HEADERS, seconds: 60, ...changed };
    vi.useFakeTimers({ now: SENT_AT + seconds * 1000, toFake: ["Date"] });
    expect(await runExample(body, headers)).toEqual({ isGenuine, isGenuineAndRecent });
  });
});
