import { createExecutionContext, waitOnExecutionContext } from "cloudflare:test";
import { env } from "cloudflare:workers";
import { describe, expect, it } from "vitest";
import { openApiDocument } from "../../src/docs-page/openapi/document.ts";
import worker from "../../src/worker/index.ts";
import { ascii, inParallel } from "../http/support/draft.ts";
import { useQuietLog } from "../invitations/support/log.ts";
import { fromSomewhere } from "../support/address.ts";
import { UNLIMITED } from "../support/bindings.ts";
import { byEffort } from "../support/effort.ts";
import { fc, SEED } from "../support/random.ts";
import { everythingStored } from "../support/stored.ts";
import { useProviders } from "../users/provider.ts";
import { unexplainedChanges } from "./changes.ts";
import { type FuzzExchange, faultsOf } from "./judge.ts";
import { type FuzzRequest, type Route, requestsTo } from "./requests.ts";
import { createWorld } from "./world.ts";

/** A long form, or a failure once more: `FUZZ_REQUESTS=1000 FUZZ_SEED=… npx vitest run --project workers test/fuzz`. */
const REQUESTS = Number(env.TEST_FUZZ.requests || byEffort(50, 500));
const FIRST_SEED = Number(env.TEST_FUZZ.seed || SEED);
const REPEATED = `FUZZ_SEED=${FIRST_SEED} FUZZ_REQUESTS=${REQUESTS}`;
/** Storage is compared before and after so many requests. */
const BATCH = 50;

const { paths, components } = openApiDocument(Date.now());
const routes = Object.entries(paths).flatMap(([template, item]) =>
  Object.entries(item).map(([verb, operation]): Route => ({ template, method: verb.toUpperCase(), operation })),
);

describe(`${REQUESTS} requests made from the OpenAPI document, sound and malformed (contract sections 6 and 7)`, () => {
  useQuietLog();
  const newProvider = useProviders();
  let made: ReturnType<typeof createWorld> | undefined;

  it.for(routes.map((route) => ({ name: route.operation.operationId, route })))(
    "to $name are answered as documented, and a refused one changes nothing",
    { timeout: 900_000 },
    async ({ route }) => {
      made ??= newProvider().then((provider) => createWorld(components.schemas, provider));
      const { applications, knownTo } = await made;
      const known = await knownTo(route);
      const requests = fc.sample(requestsTo(route, known), { numRuns: REQUESTS, seed: FIRST_SEED });
      const classes = new Set<number>();
      let before = await everythingStored(applications);
      for (let start = 0; start < requests.length; start += BATCH) {
        const batch = await inParallel(requests.slice(start, start + BATCH), send);
        const after = await everythingStored(applications);
        const faults = batch.flatMap((sent) => faultsOf(sent, route, known).map((fault) => described(fault, sent)));
        faults.push(...unexplainedChanges(before, after, batch));
        expect(faults.slice(0, 5), REPEATED).toEqual([]);
        for (const { status } of batch) classes.add(Math.floor(status / 100));
        before = after;
      }
      expect([classes.has(2), classes.has(4)], `${REPEATED} makes requests of both kinds`).toEqual([true, true]);
    },
  );
});

const bindings = { ...env, DEVICE_LIMIT: UNLIMITED, CLIENT_IP_LIMIT: UNLIMITED, REFUSED_CALL_LIMIT: UNLIMITED };

/** Sends a request straight to the Worker's entry: thousands are far over the rate limits, which are not tested here. */
async function send(sent: FuzzRequest): Promise<FuzzExchange> {
  const { method, headers, isChunked } = sent;
  const body = ["GET", "HEAD"].includes(method) ? null : isChunked ? new Blob([sent.body]).stream() : sent.body;
  const request = new Request(`https://badges.example${sent.path}`, { method, headers, body });
  const execution = createExecutionContext();
  const response = await worker.fetch(fromSomewhere(request), bindings, execution);
  const text = await response.text();
  await waitOnExecutionContext(execution);
  // As the service saw it: a URL resolves "." and ".." as steps (RFC 3986 section 5.2.4).
  const { pathname, search } = new URL(request.url);
  return { sent, method, path: pathname + search, status: response.status, headers: response.headers, body: text };
}

function described(fault: string, { sent, status, body }: FuzzExchange): string {
  const request = { ...sent, body: new TextDecoder().decode(sent.body) };
  return ascii({ fault, request, status, response: body }).slice(0, 3000);
}
