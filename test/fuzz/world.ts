import { CREATOR, claimedInvitation, invite, revokedInvitation } from "../http/support/invitations.ts";
import { issue } from "../http/support/pages.ts";
import { signIn } from "../http/support/people.ts";
import { createApplication, type TestApplication } from "../support/application.ts";
import { homeDatabase } from "../support/home.ts";
import { call, callServer, serverHeaders } from "../support/http.ts";
import type { Provider } from "../users/provider.ts";
import type { Route } from "./requests.ts";
import type { Known } from "./values.ts";

/** Events are recorded and held: nothing is sent. And no request is refused for want of numbers. */
const HELD = { size: 1_000_000, webhookUrl: "https://hooks.example/", webhookHeldAt: 1 };
const UDIDS = [" ~".repeat(100).trim(), ...Array.from({ length: 20 }, (_, place) => `device-${place}`)];

/** Some applications that have something to lose. */
export async function createWorld(schemas: Known["schemas"], provider: Provider) {
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
    const badgeId = await Promise.all(userId.map((user) => issue(main, operationId, user)));
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
    const issueTo = async (user: string, udid: string) => {
      const headers = { applicationid: personal.id, udid, authorization: await bearer(user) };
      return String((await call("POST", "/v1/badge", { headers, body: { userId: user } })).body.badgeId);
    };
    const own = await Promise.all(["one", "two"].map((udid) => issueTo(userId, `${operationId} ${udid}`)));
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
      values: { id: [...own, ...own, await issueTo("somebody else", `${operationId} else`)] },
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
