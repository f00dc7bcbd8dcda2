import { createExecutionContext, waitOnExecutionContext } from "cloudflare:test";
import { env } from "cloudflare:workers";
import fc from "fast-check";
import { beforeEach, describe, expect, it } from "vitest";
import { z } from "zod";
import { openApiDocument } from "../../src/docs-page/openapi/document.ts";
import type { Operation } from "../../src/docs-page/openapi/types.ts";
import worker from "../../src/worker/index.ts";
import { ascii, inParallel } from "../http/support/draft.ts";
import { useQuietLog } from "../invitations/support/log.ts";
import { fromSomewhere } from "../support/address.ts";
import { UNLIMITED } from "../support/bindings.ts";
import type { Exchange } from "../support/documented.ts";
import { byEffort } from "../support/effort.ts";
import { everythingStored } from "../support/stored.ts";
import { unexplainedChanges } from "./changes.ts";
import { faultsOfGranted, faultsOfResponse } from "./judge.ts";
import { type FuzzRequest, requestsTo } from "./requests.ts";
import { createWorld, type World } from "./world.ts";

/**
 * The long form, or a failure once more: `FUZZ_REQUESTS=1000 FUZZ_SEED=… npx vitest run --project workers test/fuzz`.
 */
const REQUESTS = Number(env.TEST_FUZZ.requests || byEffort(150, 2000));
const SEED = Number(env.TEST_FUZZ.seed || Math.floor(Math.random() * 2 ** 31));
const REPEATED = `FUZZ_SEED=${SEED} FUZZ_REQUESTS=${REQUESTS}`;
/** Storage is compared before and after so many requests. */
const BATCH = 50;
const FAULTS_SHOWN = 5;

interface Route {
  template: string;
  method: string;
  operation: Operation;
}

const openApi = openApiDocument(Date.now());
const routes: Route[] = Object.entries(openApi.paths).flatMap(([template, item]) =>
  Object.entries(item).map(([verb, operation]) => ({ template, method: verb.toUpperCase(), operation })),
);

describe(`${REQUESTS} requests made from the OpenAPI document, sound and malformed (contract sections 6 and 7)`, () => {
  useQuietLog();
  let made: Promise<World> | undefined;
  beforeEach(async () => {
    made ??= createWorld();
    await made;
  });

  it.for(routes.map((route) => ({ name: route.operation.operationId, route })))(
    "to $name are answered as documented, and a refused one changes nothing",
    { timeout: 900_000 },
    async ({ name, route }) => {
      const world = await (made ?? createWorld());
      const requests = fc.sample(requestsTo(openApi, route, world.knownTo(name)), { numRuns: REQUESTS, seed: SEED });
      const classes = new Set<number>();
      let before = await everythingStored(world.applications);
      for (let start = 0; start < requests.length; start += BATCH) {
        const batch = await inParallel(requests.slice(start, start + BATCH), async (request) => ({
          request,
          exchange: await send(request),
        }));
        const after = await everythingStored(world.applications);
        const faults = batch.flatMap(({ request, exchange }) => faultsOf(world, route, request, exchange));
        faults.push(...unexplainedChanges(before, after, grantedNames(batch.map(({ exchange }) => exchange))));
        expect(faults.slice(0, FAULTS_SHOWN), REPEATED).toEqual([]);
        for (const { exchange } of batch) classes.add(Math.floor(exchange.status / 100));
        before = after;
      }
      expect([classes.has(2), classes.has(4)], `${REPEATED} makes requests of both kinds`).toEqual([true, true]);
    },
  );
});

const bindings = { ...env, DEVICE_LIMIT: UNLIMITED, CLIENT_IP_LIMIT: UNLIMITED, REFUSED_CALL_LIMIT: UNLIMITED };

/** Sends a request straight to the Worker's entry: thousands are far over the rate limits, which are not tested here. */
async function send({ method, path, headers, body, isChunked }: FuzzRequest): Promise<Exchange> {
  const sent = body === null ? {} : { body: isChunked ? new Blob([body]).stream() : body };
  const request = new Request(`https://badges.example${path}`, { method, headers, ...sent });
  const execution = createExecutionContext();
  const response = await worker.fetch(fromSomewhere(request), bindings, execution);
  const text = await response.text();
  await waitOnExecutionContext(execution);
  // As the service saw it: a URL resolves "." and ".." as steps (RFC 3986 section 5.2.4).
  const { pathname, search } = new URL(request.url);
  return { method, path: pathname + search, status: response.status, headers: response.headers, body: text };
}

/** @returns what is wrong, each with the request that shows it */
function faultsOf({ applications }: World, route: Route, request: FuzzRequest, exchange: Exchange): string[] {
  const isGranted = exchange.status < 300 && exchange.method === route.method && pathOf(route).test(exchange.path);
  const secrets = new Map(applications.map(({ id, secret }) => [id, secret]));
  const faults = [
    ...faultsOfResponse(request, exchange),
    ...(isGranted ? faultsOfGranted(request, route.operation, openApi, secrets) : []),
  ];
  const body = typeof request.body === "string" ? request.body : new TextDecoder().decode(request.body ?? undefined);
  return faults.map((fault) =>
    ascii({ fault, request: { ...request, body }, status: exchange.status, response: exchange.body }).slice(0, 3000),
  );
}

const pathOf = ({ template }: Route): RegExp => new RegExp(`^${template.replaceAll(/\{\w+\}/g, "[^/?]+")}(\\?|$)`);

const named = z.object({
  badgeId: z.string().optional(),
  id: z.string().optional(),
  userId: z.string().optional(),
  revoked: z.array(z.string()).catch([]),
});

/** Badge numbers, users and events of the responses that granted something. Reading changes nothing. */
function grantedNames(exchanges: readonly Exchange[]): Set<string> {
  const granted = exchanges.filter(({ status, body }) => status < 300 && body.startsWith('{"'));
  const changing = granted.filter(({ method }) => !["GET", "HEAD"].includes(method));
  const names = changing.flatMap(({ body }) => {
    const { badgeId, id, userId, revoked } = named.parse(JSON.parse(body));
    return [badgeId, id, userId, ...revoked];
  });
  return new Set(names.filter((name) => name !== undefined));
}
