import { expect } from "vitest";
import { z } from "zod";
import {
  CREATOR,
  claimedInvitation,
  expiredInvitation,
  invite,
  revokedInvitation,
} from "../http/support/invitations.ts";
import { issue } from "../http/support/pages.ts";
import { createApplication, type TestApplication } from "../support/application.ts";
import { homeDatabase } from "../support/home.ts";
import { call, requestBadge, serverHeaders } from "../support/http.ts";
import type { Known } from "./requests.ts";

/** Some applications that have something to lose. */
export interface World {
  applications: readonly TestApplication[];
  /** What a generator of requests to an operation should know. */
  knownTo(operationId: string): Known;
}

/** More numbers than any run asks for: none is refused for want of numbers. */
const SIZE = 1_000_000;
/** Events are recorded and held: nothing is sent. */
const HELD = { size: SIZE, webhookUrl: "https://hooks.example/", webhookHeldAt: 1 };
const USERS = ["alice", "a/b ?&#%", "\u{1f600} \u00e9", "../badges"];
const UDIDS = [
  "phone",
  "tablet",
  " ~".repeat(100).trim(),
  ...Array.from({ length: 20 }, (_, place) => `device-${place}`),
];

export async function createWorld(): Promise<World> {
  const main = await createApplication({ ...HELD, signatureLifetimeSeconds: 300, statusList: true });
  const other = await createApplication(HELD);
  const strict = await createApplication({ ...HELD, requireSecret: true });
  const disabled = await createApplication({ ...HELD, disabledAt: Date.now() });
  const applications = [main, other, strict, disabled];
  for (const userId of USERS) expect((await requestBadge(main, "phone", { userId })).status).toBe(201);
  const tokens = await invitationsOf(main, other);
  // Those that are claimed can be revoked no more.
  const tokensToRevoke = await invitationsOf(main, other);
  // Each step has badges of its own: one that has ended takes no other.
  const badgesOf = (operationId: string) =>
    Promise.all(Array.from({ length: 5 }, (_, place) => issue(main, "phone", `${operationId} ${place}`)));
  const toRead = await badgesOf("getBadge");
  const events = eventIds.parse(
    (await homeDatabase().prepare("SELECT id FROM webhook_event WHERE application_id = ?1 LIMIT 5").bind(main.id).all())
      .results,
  );
  const shared = {
    userId: [...USERS, "bob"],
    invitationToken: tokens,
    applicationId: [main.id, disabled.id],
    // The first status list.
    n: ["0"],
  };
  const ids: Record<string, readonly string[]> = {
    listUserBadges: [...USERS, "nobody"],
    getUser: [...USERS, "nobody"],
    blockUser: await usersOf("blockUser", badgesOf),
    unblockUser: await usersOf("unblockUser", badgesOf),
    revokeInvitation: tokensToRevoke,
    getBadge: toRead,
    setBadgeEnd: await badgesOf("setBadgeEnd"),
    suspendBadge: await badgesOf("suspendBadge"),
    resumeBadge: await badgesOf("resumeBadge"),
    revokeBadge: await badgesOf("revokeBadge"),
    rebindBadge: await badgesOf("rebindBadge"),
    replayEvent: events.map(({ id }) => id),
  };
  const cursors: Record<string, string> = {
    listBadges: await cursorOf(main, "/v1/badges"),
    listUserBadges: await cursorOf(main, "/v1/badges"),
    listChanges: await cursorOf(main, "/v1/changes"),
    listInvitations: await cursorOf(main, "/v1/invitations"),
    listEvents: await cursorOf(main, "/v1/events"),
  };
  return {
    applications,
    knownTo: (operationId) => ({
      credentials: [
        ...applications.map((application) => serverHeaders(application)),
        { applicationid: main.id, applicationsecret: other.secret },
        { applicationid: "app_unknown", applicationsecret: main.secret },
      ],
      // Half of the revocations that name no secret are the creator's.
      udids: operationId === "revokeInvitation" ? [...UDIDS, ...UDIDS.map(() => CREATOR)] : UDIDS,
      values: { ...shared, id: ids[operationId] ?? [], cursor: [cursors[operationId] ?? ""] },
    }),
  };
}

const eventIds = z.array(z.object({ id: z.string() }));

/** Users with a badge each. */
async function usersOf(name: string, badgesOf: (name: string) => Promise<string[]>): Promise<string[]> {
  const { length } = await badgesOf(name);
  return Array.from({ length }, (_, place) => `${name} ${place}`);
}

/** Where the second page of a list starts. */
async function cursorOf(application: TestApplication, path: string): Promise<string> {
  const { headers } = await call("GET", `${path}?per_page=1`, { headers: serverHeaders(application) });
  const cursor = headers.get("pagination-cursor");
  if (cursor === null) throw new Error(`${path} has a second page`);
  return cursor;
}

/** Tokens of invitations in every state, many of them pending, and of another application's. */
async function invitationsOf(main: TestApplication, other: TestApplication): Promise<string[]> {
  const secret = { applicationsecret: main.secret };
  const pending = await Promise.all(Array.from({ length: 50 }, () => invite(main, undefined, secret)));
  const ended = [await claimedInvitation(main), await revokedInvitation(main), await endedByTime(main)];
  return [...pending, ...ended, await invite(other)].map(({ id }) => id);
}

/** An expired invitation that storage knows as expired: whoever notices the end first writes it down. */
async function endedByTime(application: TestApplication): Promise<{ id: string }> {
  const { id } = await expiredInvitation(application);
  const headers = serverHeaders(application);
  expect((await call("PATCH", `/v1/invitation/${id}/revoke`, { headers })).status).toBe(410);
  await homeDatabase()
    .prepare("UPDATE invitation SET released_at = ?1 WHERE state = 'expired' AND released_at IS NULL")
    .bind(Date.now())
    .run();
  return { id };
}
