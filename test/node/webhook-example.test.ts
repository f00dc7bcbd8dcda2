import { afterEach, beforeEach, describe, expect, it, vi } from "vitest";
import { openApiDocument } from "../../src/docs-page/openapi/document.ts";
import { EXAMPLE_SECRET, EXAMPLE_WEBHOOK_BODY, EXAMPLE_WEBHOOK_HEADERS } from "../../src/shared/openapi-examples.ts";

const SENT_AT = Number(EXAMPLE_WEBHOOK_HEADERS["webhook-timestamp"]) * 1000;

/** As Node names the headers. */
const HEADERS = Object.fromEntries(
  Object.entries(EXAMPLE_WEBHOOK_HEADERS).map(([name, value]) => [name.toLowerCase(), value]),
);

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
  beforeEach(() => {
    vi.useFakeTimers({ now: SENT_AT + 60_000, toFake: ["Date"] });
  });

  afterEach(() => {
    vi.useRealTimers();
  });

  it("the reference's example accepts a webhook by HMAC-SHA1 and by HMAC-SHA256, also with another secret's entry", async () => {
    const both = { isGenuine: true, isGenuineAndRecent: true };
    expect(await runExample(EXAMPLE_WEBHOOK_BODY, HEADERS)).toEqual(both);
    const entries = `v1,AAAA ${HEADERS["webhook-signature"]}`;
    expect(await runExample(EXAMPLE_WEBHOOK_BODY, { ...HEADERS, "webhook-signature": entries })).toEqual(both);
  });

  it("the reference's example refuses another body, and a call without headers", async () => {
    const neither = { isGenuine: false, isGenuineAndRecent: false };
    expect(await runExample(`${EXAMPLE_WEBHOOK_BODY} `, HEADERS)).toEqual(neither);
    expect(await runExample(EXAMPLE_WEBHOOK_BODY, {})).toEqual(neither);
  });

  it("the reference's example refuses by HMAC-SHA256 a webhook that is older than five minutes or names another time", async () => {
    const old = { isGenuine: true, isGenuineAndRecent: false };
    vi.setSystemTime(SENT_AT + 301_000);
    expect(await runExample(EXAMPLE_WEBHOOK_BODY, HEADERS)).toEqual(old);
    const renewed = { ...HEADERS, "webhook-timestamp": String(SENT_AT / 1000 + 300) };
    expect(await runExample(EXAMPLE_WEBHOOK_BODY, renewed)).toEqual(old);
  });
});
