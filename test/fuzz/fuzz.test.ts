import { createExecutionContext, waitOnExecutionContext } from "cloudflare:test";
import { env } from "cloudflare:workers";
import { describe, expect, it } from "vitest";
import { openApiDocument } from "../../src/docs-page/openapi/document.ts";
import worker from "../../src/worker/index.ts";
import { block, issueTo } from "../badges/life-support.ts";
import { ascii, inParallel } from "../http/support/draft.ts";
import { signIn } from "../http/support/people.ts";
import { addDoor } from "../live/support.ts";
import { fromSomewhere } from "../support/address.ts";
import { createApplication, type TestApplication } from "../support/application.ts";
import { UNLIMITED } from "../support/bindings.ts";
import { type Exchange, expectDocumented } from "../support/documented.ts";
import { byEffort } from "../support/effort.ts";
import { callServer } from "../support/http.ts";
import { CREATOR, claimedInvitation, invite, revokedInvitation } from "../support/invitations.ts";
import { fc, SEED } from "../support/random.ts";
import { readRows } from "../support/rows.ts";
import { type Provider, useProviders } from "../users/provider.ts";
import { logIn } from "../users/support.ts";
import { type FuzzRequest, type Route, requestsTo } from "./requests.ts";
import type { Known } from "./values.ts";

/** A long form, or a failure once more: `FUZZ_REQUESTS=1000 FUZZ_SEED=… npx vitest run --project workers test/fuzz`. */
const REQUESTS = Number(env.TEST_FUZZ.requests || byEffort(50, 500));
const FIRST_SEED = Number(env.TEST_FUZZ.seed || SEED);
const REPEATED = `FUZZ_SEED=${FIRST_SEED} FUZZ_REQUESTS=${REQUESTS}`;

const { paths } = openApiDocument(Date.now());
/** Of which something can be wrong. */
const routes = Object.entries(paths)
  .flatMap(([template, item]) =>
    Object.entries(item).map(([verb, operation]): Route => ({ template, method: verb.toUpperCase(), operation })),
  )
  .filter(({ operation: { security, parameters = [] } }) => security.length + parameters.length > 0);

/** Events are recorded and held: nothing is sent. And no request is refused for want of numbers. */
const HELD = { size: 1_000_000, webhookUrl: "https://hooks.example/", webhookHeldAt: 1 };
const UDIDS = [" ~".repeat(100).trim(), ...Array.from({ length: 20 }, (_, place) => `device-${place}`)];

/** Some applications that have something to lose. @returns what a generator of requests to an operation should know */
async function createWorld(provider: Provider) {
  const main = await createApplication({ ...HELD, signatureLifetimeSeconds: 300, statusList: true });
  const other = await createApplication(HELD);
  const personal = await createApplication({ ...HELD, ...provider.columns });
  const invitationToken = await invitationsOf(main, other);
  // Those that are claimed can be revoked no more.
  const tokensToRevoke = await invitationsOf(main, other);
  for (const user of ["blocked", "blocked too"]) expect((await block(main, user)).status).toBe(200);

  /** Each operation has badges of its own: one that ended takes no step. */
  async function knownTo({ template, operation: { operationId } }: Route): Promise<Known> {
    if (template.startsWith("/v1/user/")) return knownToPerson(`${operationId} ${"\u{1f600}"}`);
    const userId = ["alice", "a/b ?&#%", "\u{1f600} \u00e9", "../badges"].map((user) => `${operationId} ${user}`);
    const badgeId = await Promise.all(userId.map((user) => issueTo(main, operationId, user)));
    const [, collection = ""] = /^\/v1\/(\w+)\/\{id\}/.exec(template) ?? [];
    const ids: Record<string, string[]> = {
      badges: badgeId,
      users: [...userId, "nobody"],
      invitation: tokensToRevoke,
      events: (await readRows(main)).events.slice(0, 5).map(({ id }) => id),
    };
    // The pages of a user are those of all badges.
    const cursor = operationId.startsWith("list") ? [await cursorOf(main, template.replace("/users/{id}", ""))] : [];
    const headers = {
      ...{ applicationid: [main.id], applicationsecret: [main.secret], invitationtoken: invitationToken },
      // Half of the devices are one that the call may succeed for: it has badges, or created the invitations.
      udid: [...UDIDS, ...UDIDS.map(() => (operationId === "revokeInvitation" ? CREATOR : operationId))],
      ...{ actor: ["", "Tom", "J%C3%BCrgen", "x".repeat(100)], "if-match": ["", '"999999"', "*"] },
    };
    // Of the status lists, the first.
    const values = { userId, badgeId, invitationToken, applicationId: [main.id], id: ids[collection] ?? [], n: ["0"] };
    return { headers, values: { ...values, cursor } };
  }

  /** What a person should know: badges of their own, and one of somebody else. */
  async function knownToPerson(userId: string): Promise<Known> {
    const logInAs = async (user: string) => {
      const { body } = await logIn(personal, await provider.token(user), { userId: user });
      return String(body.badgeId);
    };
    const own = [await logInAs(userId), await logInAs(userId)];
    const headers = { applicationid: [personal.id], authorization: [`Bearer ${await provider.token(userId)}`] };
    return { headers, values: { id: [...own, ...own, await logInAs("somebody else")] } };
  }

  return knownTo;
}

/** Where the second page of a list starts. */
async function cursorOf(application: TestApplication, path: string): Promise<string> {
  if (path === "/v1/access") for (const role of ["viewer", "operator"] as const) await signIn(application, role);
  if (path === "/v1/doors") for (const name of ["north", "south"]) await addDoor(application, name);
  const query = path === "/v1/users" ? "&state=blocked" : "";
  const { headers } = await callServer(application, "GET", `${path}?per_page=1${query}`);
  const cursor = headers.get("pagination-cursor");
  if (cursor === null) throw new Error(`${path} has a second page`);
  return cursor;
}

/** Tokens of invitations, most of them pending, and of another application's. */
async function invitationsOf(main: TestApplication, other: TestApplication): Promise<string[]> {
  const secret = { applicationsecret: main.secret };
  const pending = await Promise.all(Array.from({ length: 50 }, () => invite(main, undefined, secret)));
  const ended = [await claimedInvitation(main), await revokedInvitation(main)];
  return [...pending, ...ended, await invite(other)].map(({ token }) => token);
}

describe(`${REQUESTS} requests made from the OpenAPI document, sound and malformed (contract sections 6 and 7)`, () => {
  const newProvider = useProviders();
  let made: ReturnType<typeof createWorld> | undefined;

  it.for(routes.map((route) => ({ name: route.operation.operationId, route })))(
    "to $name are answered as documented",
    { timeout: 900_000 },
    async ({ route }) => {
      made ??= newProvider().then((provider) => createWorld(provider));
      const known = await (await made)(route);
      const requests = fc.sample(requestsTo(route, known), { numRuns: REQUESTS, seed: FIRST_SEED });
      const exchanges = await inParallel(requests, (request) => send(request, route.method));
      const faults = exchanges.flatMap((sent) => faultsOf(sent, route).map((fault) => described(fault, sent)));
      expect(faults.slice(0, 5), REPEATED).toEqual([]);
      const classes = new Set(exchanges.map(({ status }) => Math.floor(status / 100)));
      expect([classes.has(2), classes.has(4)], `${REPEATED} makes requests of both kinds`).toEqual([true, true]);
    },
  );
});

const bindings = { ...env, DEVICE_LIMIT: UNLIMITED, CLIENT_IP_LIMIT: UNLIMITED, REFUSED_CALL_LIMIT: UNLIMITED };

type FuzzExchange = Exchange & { sent: FuzzRequest };

/** Sends a request straight to the Worker's entry: thousands are far over the rate limits, which are not tested here. */
async function send(sent: FuzzRequest, method: string): Promise<FuzzExchange> {
  const { headers } = sent;
  const body = method === "GET" ? null : sent.body;
  const request = new Request(`https://badges.example${sent.path}`, { method, headers, body });
  const execution = createExecutionContext();
  const response = await worker.fetch(fromSomewhere(request), bindings, execution);
  const text = await response.text();
  await waitOnExecutionContext(execution);
  // As the service saw it: a URL resolves "." and ".." as steps (RFC 3986 section 5.2.4).
  const { pathname, search } = new URL(request.url);
  return { sent, method, path: pathname + search, status: response.status, headers: response.headers, body: text };
}

const described = (fault: string, { sent, status, body }: FuzzExchange): string =>
  ascii({ fault, sent, status, response: body }).slice(0, 3000);

/** No request of a sound form gets one of these. */
const FAULTS_OF_FORM = [400, 401, 405, 413, 422, 429];

/** @returns what is wrong with a response; nothing when all is well */
function faultsOf(exchange: FuzzExchange, { operation }: Route): string[] {
  const { sent, status, headers, body } = exchange;
  const faults: string[] = [];
  if (status >= 500) faults.push("a fault of the service's own");
  // The document cannot say that one of two times is needed.
  const isNoTime = body === '{"error":"UNDEFINED_EXPIRESAT"}' && operation.operationId === "setBadgeTimes";
  if (sent.isSound && !isNoTime && (FAULTS_OF_FORM.includes(status) || body === '{"error":"NOT_FOUND"}')) {
    faults.push("a sound request is refused for its form");
  }
  // The document says it of its own paths only.
  if (status >= 400 && headers.get("cache-control") !== "no-store") faults.push("an error that may be kept");
  try {
    expectDocumented(exchange);
  } catch (error) {
    faults.push(String(error));
  }
  return faults;
}
