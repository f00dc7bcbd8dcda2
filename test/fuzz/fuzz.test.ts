import { createExecutionContext, waitOnExecutionContext } from "cloudflare:test";
import { env } from "cloudflare:workers";
import type { Validator } from "@cfworker/json-schema";
import { describe, expect, it } from "vitest";
import { z } from "zod";
import { openApiDocument } from "../../src/docs-page/openapi/document.ts";
import type { Operation, Parameter } from "../../src/docs-page/openapi/types.ts";
import worker from "../../src/worker/index.ts";
import { issueTo } from "../badges/life-support.ts";
import { ascii, inParallel } from "../http/support/draft.ts";
import { CREATOR, claimedInvitation, invite, revokedInvitation } from "../http/support/invitations.ts";
import { signIn } from "../http/support/people.ts";
import { useQuietLog } from "../invitations/support/log.ts";
import { fromSomewhere } from "../support/address.ts";
import { createApplication, type TestApplication } from "../support/application.ts";
import { UNLIMITED } from "../support/bindings.ts";
import { type Exchange, expectDocumented } from "../support/documented.ts";
import { byEffort } from "../support/effort.ts";
import { homeDatabase } from "../support/home.ts";
import { call, callServer, serverHeaders } from "../support/http.ts";
import { fc, SEED } from "../support/random.ts";
import { everythingStored } from "../support/stored.ts";
import { type Provider, useProviders } from "../users/provider.ts";
import { type FuzzRequest, MAX_BODY_BYTES, type Route, requestsTo } from "./requests.ts";
import { type Known, validatorOf } from "./values.ts";

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

/** Events are recorded and held: nothing is sent. And no request is refused for want of numbers. */
const HELD = { size: 1_000_000, webhookUrl: "https://hooks.example/", webhookHeldAt: 1 };
const UDIDS = [" ~".repeat(100).trim(), ...Array.from({ length: 20 }, (_, place) => `device-${place}`)];

/** Some applications that have something to lose. */
async function createWorld(schemas: Known["schemas"], provider: Provider) {
  const main = await createApplication({ ...HELD, signatureLifetimeSeconds: 300, statusList: true });
  const other = await createApplication(HELD);
  const strict = await createApplication({ ...HELD, requireSecret: true });
  const disabled = await createApplication({ ...HELD, disabledAt: Date.now() });
  const personal = await createApplication({ ...HELD, ...provider.columns });
  const applications = [main, other, strict, disabled, personal];
  const invitationToken = await invitationsOf(main, other);
  // Those that are claimed can be revoked no more.
  const tokensToRevoke = await invitationsOf(main, other);
  for (const user of ["blocked", "blocked too"]) {
    const { status } = await callServer(main, "PATCH", `/v1/users/${encodeURIComponent(user)}/block`);
    if (status !== 200) throw new Error(`blocking ${user} responds ${status}`);
  }
  const credentials = [
    ...applications.map((application) => serverHeaders(application)),
    { applicationid: main.id, applicationsecret: other.secret },
    { applicationid: "app_unknown", applicationsecret: main.secret },
  ];

  /** What a generator of requests to an operation should know. Each has badges of its own: one that ended takes no step. */
  async function knownTo({ template, operation: { operationId } }: Route): Promise<Known> {
    const userId = ["alice", "a/b ?&#%", "\u{1f600} \u00e9", "../badges"].map((user) => `${operationId} ${user}`);
    if (template.startsWith("/v1/user/")) return knownToPerson(operationId, `${operationId} ${"\u{1f600}"}`);
    const badgeId = await Promise.all(userId.map((user) => issueTo(main, operationId, user)));
    const [, collection = ""] = /^\/v1\/(\w+)\/\{id\}/.exec(template) ?? [];
    const ids: Record<string, string[]> = {
      badges: badgeId,
      users: [...userId, "nobody"],
      invitation: tokensToRevoke,
      events: await eventsOf(main),
    };
    // The pages of a user are those of all badges.
    const cursor = operationId.startsWith("list") ? [await cursorOf(main, template.replace("/users/{id}", ""))] : [];
    const known = { userId, badgeId, invitationToken, cursor, applicationId: [main.id, disabled.id] };
    return {
      schemas,
      credentials,
      secrets: new Map(applications.map(({ id, secret }) => [id, secret])),
      // Half of the devices are one that the call may succeed for: it has badges, or created the invitations.
      udids: [...UDIDS, ...UDIDS.map(() => (operationId === "revokeInvitation" ? CREATOR : operationId))],
      // Of the status lists, the first.
      values: { ...known, id: ids[collection] ?? [], n: ["0"] },
    };
  }

  /** What a person should know: badges of their own, and one of somebody else. */
  async function knownToPerson(operationId: string, userId: string): Promise<Known> {
    const bearer = async (user: string) => `Bearer ${await provider.token(user)}`;
    const issueOwn = async (user: string, udid: string) => {
      const headers = { applicationid: personal.id, udid, authorization: await bearer(user) };
      return String((await call("POST", "/v1/badge", { headers, body: { userId: user } })).body.badgeId);
    };
    const own = await Promise.all(["one", "two"].map((udid) => issueOwn(userId, `${operationId} ${udid}`)));
    const authorization = await bearer(userId);
    return {
      schemas,
      credentials: [
        { applicationid: personal.id, authorization },
        { applicationid: personal.id, authorization: `Bearer ${await provider.token(userId, { aud: "another-app" })}` },
        { applicationid: other.id, authorization },
        { applicationid: disabled.id, authorization },
      ],
      secrets: new Map([[personal.id, personal.secret]]),
      tokens: [authorization],
      udids: UDIDS,
      values: { id: [...own, ...own, await issueOwn("somebody else", `${operationId} else`)] },
    };
  }

  return { applications, knownTo };
}

async function eventsOf({ id }: TestApplication): Promise<string[]> {
  const query = homeDatabase().prepare("SELECT id FROM webhook_event WHERE application_id = ?1 LIMIT 5").bind(id);
  return (await query.raw()).flat().map(String);
}

async function addDoors({ id }: TestApplication): Promise<void> {
  const insert = homeDatabase().prepare(
    "INSERT INTO door_secret (application_id, name, id, digest, created_at) VALUES (?1, ?2, ?2, ?2, 0)",
  );
  await homeDatabase().batch(["north", "south"].map((name) => insert.bind(id, name)));
}

/** Where the second page of a list starts. */
async function cursorOf(application: TestApplication, path: string): Promise<string> {
  if (path === "/v1/access") for (const role of ["viewer", "operator"] as const) await signIn(application, role);
  if (path === "/v1/doors") await addDoors(application);
  const { headers } = await callServer(
    application,
    "GET",
    `${path}?per_page=1${path === "/v1/users" ? "&state=blocked" : ""}`,
  );
  const cursor = headers.get("pagination-cursor");
  if (cursor === null) throw new Error(`${path} has a second page`);
  return cursor;
}

/** Tokens of invitations, most of them pending, and of another application's. */
async function invitationsOf(main: TestApplication, other: TestApplication): Promise<string[]> {
  const secret = { applicationsecret: main.secret };
  const pending = await Promise.all(Array.from({ length: 50 }, () => invite(main, undefined, secret)));
  const ended = [await claimedInvitation(main), await revokedInvitation(main)];
  return [...pending, ...ended, await invite(other)].map(({ id }) => id);
}

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

/** No request of a sound form gets one of these. */
const FAULTS_OF_FORM = [400, 401, 405, 413, 422, 429];

/** A request, and its response. */
type FuzzExchange = Exchange & { sent: FuzzRequest };

/** @returns what is wrong with a response; nothing when all is well */
function faultsOf(exchange: FuzzExchange, route: Route, known: Known): string[] {
  const { sent, method, path, status, headers, body } = exchange;
  const faults: string[] = [];
  if (status >= 500) faults.push("a fault of the service's own");
  // The document cannot say that one of two times is needed.
  const isNoTime = body === '{"error":"UNDEFINED_EXPIRESAT"}' && route.operation.operationId === "setBadgeTimes";
  if (sent.isSound && !isNoTime && (FAULTS_OF_FORM.includes(status) || body === '{"error":"NOT_FOUND"}')) {
    faults.push("a sound request is refused for its form");
  }
  // The document says it of its own paths only.
  if (status >= 400 && headers.get("cache-control") !== "no-store") faults.push("an error that may be kept");
  const ofTemplate = new RegExp(`^${route.template.replaceAll(/\{\w+\}/g, "[^/?]+")}(\\?|$)`);
  const isGranted = status < 300 && method === route.method && ofTemplate.test(path);
  try {
    expectDocumented(exchange);
    if (isGranted) faults.push(...faultsOfGranted(exchange, route.operation, known));
  } catch (error) {
    faults.push(String(error));
  }
  return faults;
}

/** Calls that succeed even if their body is invalid (contract sections 5 and 23). */
const ACCEPT_ANY_BODY = ["revokeInvitation", "suspendOwnBadge"];

/** What the service granted although it must not: a form that the document does not allow, or wrong credentials. */
function faultsOfGranted(
  { sent: { path, headers, body }, body: response }: FuzzExchange,
  { operationId, parameters = [], requestBody, security }: Operation,
  { schemas, secrets, tokens }: Known,
): string[] {
  const { searchParams } = new URL(path, "https://badges.example");
  // Headers that are blank count as missing (contract section 2).
  const header = (name: string) => (headers[name.toLowerCase()] ?? "").trim();
  // A device says nothing of who asked for it: without a secret that header counts for nothing (contract section 23).
  const isIgnored = (name: string) => name === "actor" && header("applicationsecret") === "";
  // What is not UTF-8 is taken as it is written, percent signs included; the URL's own reader has U+FFFD for it.
  const texts = (name: string) => searchParams.getAll(name).filter((text) => !text.includes("\ufffd"));
  const given = ({ in: place, name }: Parameter) =>
    isIgnored(name) ? [] : place === "query" ? texts(name) : [header(name)].filter((text) => text !== "");
  const wrong = parameters.flatMap((parameter) => {
    const validator = validatorOf(parameter.schema, schemas);
    const read = parameter.schema.type === "integer" ? integer : (text: string) => text;
    const refused = given(parameter).filter((text) => !validator.validate(read(text)).valid);
    return refused.map((text) => `granted with ${parameter.name}=${text}`);
  });
  const schema = requestBody?.content["application/json"]?.schema;
  if (schema && !ACCEPT_ANY_BODY.includes(operationId)) {
    // Of several invitations in one call, of at most 256 KiB, each is granted or refused (contract section 24).
    const isOfMany = operationId === "createInvitations";
    if (body.byteLength > (isOfMany ? 256 * 1024 : MAX_BODY_BYTES)) wrong.push(`granted with ${body.byteLength} bytes`);
    const one = isOfMany ? schemas.InvitationRequest : schema;
    const text = new TextDecoder("utf-8", { fatal: true, ignoreBOM: false }).decode(body);
    // An empty or blank body counts as {} (contract section 2).
    const whole = text.trim() === "" ? "{}" : text;
    const values = isOfMany ? grantedInvitations(whole, response) : [JSON.parse(whole)];
    for (const value of values)
      wrong.push(...faultsOfGrantedBody(JSON.stringify(value), validatorOf(one ?? {}, schemas)));
  }
  if (security.length === 0) return wrong;
  const isNamed = security.some((schemes) => Object.keys(schemes).every((name) => header(name) !== ""));
  const secret = secrets.get(header("applicationid"));
  const isGenuine =
    secret !== undefined &&
    ["", secret].includes(header("applicationsecret")) &&
    (tokens === undefined || tokens.some((token) => sameToken(token, header("authorization"))));
  if (!isNamed) wrong.push("granted without its credentials");
  if (!isGenuine) wrong.push("granted with wrong credentials");
  return wrong;
}

/** The scheme is written in any case, with any spaces behind it (RFC 9110 section 11.1). */
const sameToken = (one: string, other: string): boolean => other.replace(/^bearer +/i, "Bearer ") === one;

const integer = (text: string): number | string =>
  /^\d+$/.test(text) ? Math.min(Number(text), Number.MAX_SAFE_INTEGER) : text;

const invitationsMade = z.object({ invitations: z.array(z.object({ error: z.string().optional() })) });

function grantedInvitations(request: string, response: string): unknown[] {
  const made = invitationsMade.parse(JSON.parse(response)).invitations;
  const asked = z.object({ invitations: z.array(z.unknown()) }).parse(JSON.parse(request)).invitations;
  return asked.filter((_, place) => made[place]?.error === undefined);
}

function faultsOfGrantedBody(text: string, validator: Validator): string[] {
  const without = (isMissing: (value: unknown) => boolean): unknown =>
    JSON.parse(text, (_, value) => (isMissing(value) ? undefined : value));
  // Fields that are null, empty or blank count as missing (contract section 2); the document says where null is a value.
  const isBlank = (value: unknown) => typeof value === "string" && value.trim() === "";
  if (validator.validate(without(isBlank)).valid) return [];
  const { valid, errors } = validator.validate(without((value) => value === null || isBlank(value)));
  return valid ? [] : errors.map(({ instanceLocation, error }) => `granted with ${instanceLocation} ${error}`);
}

/** Rows of tables, by name. */
type Stored = Record<string, unknown[]>;

const linesOf = (stored: Stored): Set<string> =>
  new Set(Object.entries(stored).flatMap(([table, rows]) => rows.map((row) => `${table} ${JSON.stringify(row)}`)));

/**
 * Changes of storage that no granted request of a batch explains. A granted request that changes something names a badge
 * number, a user or an event, in its path or its response, and every row that it writes has that, or comes with one that does:
 * the event of a claim names the number that it replaced, and an erased user's badges get another user ID. Only the
 * application's head and its allocator's log and erasures name nobody.
 */
function unexplainedChanges(before: Stored, after: Stored, batch: readonly Exchange[]): string[] {
  const granted = grantedNames(batch);
  const [old, fresh] = [linesOf(before), linesOf(after)];
  const changes = [...[...old].filter((row) => !fresh.has(row)), ...[...fresh].filter((row) => !old.has(row))];
  const isNamed = (row: string, names = granted) => namesIn(row).some((name) => names.has(name));
  const tellingMore = changes.filter((row) => /^(webhook_event|badge) /.test(row) && isNamed(row));
  const explained = new Set([...granted, ...tellingMore.flatMap(badgeNumbersIn)]);
  return changes.filter((row) => {
    return /^(application_head |(entry|erasure) of )/.test(row) ? granted.size === 0 : !isNamed(row, explained);
  });
}

const text = z.string();
const named = z.object({ badgeId: text, id: text, userId: text, revoked: z.array(text) }).partial();
const namedMany = named.extend({ invitations: z.array(named).optional() });

/** Badge numbers, users and events of the requests that were granted something. Reading changes nothing. */
function grantedNames(batch: readonly Exchange[]): Set<unknown> {
  const granted = batch.filter(({ method, status }) => status < 300 && !["GET", "HEAD", "OPTIONS"].includes(method));
  return new Set(
    granted.flatMap(({ path, body }) => {
      const { invitations = [], ...own } = namedMany.parse(JSON.parse(body));
      const [, user] = /^\/v1\/users\/([^/]+)\//.exec(path) ?? [];
      return [own, ...invitations]
        .flatMap((each) => Object.values(each).flat())
        .concat(user === undefined ? [] : decodeURIComponent(user));
    }),
  );
}

/** Whole values of the row, such as a user, and the badge numbers and events in them. */
const namesIn = (row: string): unknown[] =>
  Object.values<unknown>(JSON.parse(row.slice(row.indexOf("{")))).concat(
    badgeNumbersIn(row),
    row.match(/\bevt_\w+/g) ?? [],
  );

/** The ranges of tests have numbers of ten digits. */
const badgeNumbersIn = (row: string): string[] => row.match(/\b\d{10}\b/g) ?? [];
