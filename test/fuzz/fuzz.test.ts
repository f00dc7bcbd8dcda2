import { env } from "cloudflare:workers";
import fc from "fast-check";
import { beforeEach, describe, expect, it } from "vitest";
import { z } from "zod";
import { openApiDocument } from "../../src/docs-page/openapi/document.ts";
import type { Operation } from "../../src/docs-page/openapi/types.ts";
import { ascii, inParallel } from "../http/support/draft.ts";
import { useQuietLog } from "../invitations/support/log.ts";
import type { Exchange } from "../support/documented.ts";
import { byEffort } from "../support/effort.ts";
import { everythingStored } from "../support/stored.ts";
import { unexplainedChanges } from "./changes.ts";
import { faultsOfAnswer, faultsOfGranted } from "./judge.ts";
import { type FuzzRequest, requestsTo } from "./requests.ts";
import { send } from "./send.ts";
import { createWorld, type World } from "./world.ts";

/**
 * The long form, or a failure once more: `FUZZ_REQUESTS=1000 FUZZ_SEED=… npx vitest run --project workers test/fuzz`. It
 * also prints how many requests to each operation had which answer.
 */
const REQUESTS = Number(env.TEST_FUZZ.requests || byEffort(100, 1000));
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

describe(`${REQUESTS} requests of the OpenAPI document's own making (contract sections 6 and 7)`, () => {
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
      const exchanges: Exchange[] = [];
      let before = await everythingStored(world.applications);
      for (let start = 0; start < requests.length; start += BATCH) {
        const batch = await inParallel(requests.slice(start, start + BATCH), async (request) => ({
          request,
          exchange: await send(request),
        }));
        const after = await everythingStored(world.applications);
        const faults = batch.flatMap(({ request, exchange }) => faultsOf(route, request, exchange));
        faults.push(...unexplainedChanges(before, after, grantedNumbers(batch.map(({ exchange }) => exchange))));
        expect(faults.slice(0, FAULTS_SHOWN), REPEATED).toEqual([]);
        exchanges.push(...batch.map(({ exchange }) => exchange));
        before = after;
      }
      if (env.TEST_FUZZ.requests !== "") console.info(`${name}: ${tally(exchanges)}`);
      const classes = new Set(exchanges.map(({ status }) => Math.floor(status / 100)));
      expect([classes.has(2), classes.has(4)], `${REPEATED} makes requests of both kinds`).toEqual([true, true]);
    },
  );
});

/** @returns what is wrong, each with the request that shows it */
function faultsOf(route: Route, request: FuzzRequest, exchange: Exchange): string[] {
  const isGranted = exchange.status < 300 && exchange.method === route.method && pathOf(route).test(exchange.path);
  const faults = [
    ...faultsOfAnswer(request, exchange),
    ...(isGranted ? faultsOfGranted(request, route.operation, openApi) : []),
  ];
  const body = typeof request.body === "string" ? request.body : new TextDecoder().decode(request.body ?? undefined);
  return faults.map((fault) =>
    ascii({ fault, request: { ...request, body }, status: exchange.status, answer: exchange.body }).slice(0, 3000),
  );
}

const pathOf = ({ template }: Route): RegExp => new RegExp(`^${template.replaceAll(/\{\w+\}/g, "[^/?]+")}(\\?|$)`);

const numbered = z.object({ badgeId: z.string() });

/** Badge numbers of the answers that granted something. */
function grantedNumbers(exchanges: readonly Exchange[]): Set<string> {
  const granted = exchanges.filter(({ status, body }) => status < 300 && body.startsWith('{"'));
  const parsed = granted.map(({ body }) => numbered.safeParse(JSON.parse(body)));
  return new Set(parsed.flatMap(({ data }) => data?.badgeId ?? []));
}

/** "120 × 200, 3 × 404 NOT_FOUND, …" */
function tally(exchanges: readonly Exchange[]): string {
  const outcomes = Map.groupBy(exchanges, ({ status, body }) =>
    `${status} ${/^\{"error":"(\w+)"\}$/.exec(body)?.[1] ?? ""}`.trim(),
  );
  return [...outcomes]
    .sort(([one], [other]) => one.localeCompare(other))
    .map(([outcome, { length }]) => `${length} × ${outcome}`)
    .join(", ");
}
