import { eq } from "drizzle-orm";
import { beforeAll, describe, expect, it } from "vitest";
import { readStatistics } from "../../src/admin/application/stats.ts";
import { showBadge } from "../../src/admin/badge/show.ts";
import { listSigningKeys } from "../../src/admin/key/commands.ts";
import type { HeadStatistics } from "../../src/shared/head-statistics.ts";
import {
  type ApplicationId,
  applicationId as anyApplicationId,
  deviceId,
  invitationDigest,
} from "../../src/shared/identifiers.ts";
import { INITIAL_HEAD } from "../../src/shared/initial-head.ts";
import { applicationHead, badge, freedNumber, invitation, signingKey } from "../../src/shared/schema.ts";
import { DAY_MILLISECONDS } from "../../src/shared/time.ts";
import { localHomes } from "./support/script.ts";

const { database, create } = await localHomes();
let applicationId: ApplicationId;

const DEVICE = deviceId.parse("device-digest");
const END = { expiresAt: "2027-01-01T00:00:00+01:00", expiresAtTime: 1 };

/** Since 1970-01-01. */
const TODAY = Math.floor(Date.now() / DAY_MILLISECONDS);

/** What the allocator has counted, where a test writes the rows itself (contract section 19). */
const counted = (id: ApplicationId, counts: Partial<HeadStatistics>, pastDays: Record<string, number> = {}) =>
  database.run((orm) =>
    orm
      .update(applicationHead)
      .set({ statistics: { ...INITIAL_HEAD.statistics, ...counts }, pastDays })
      .where(eq(applicationHead.applicationId, id)),
  );

const metadata = (deviceModel: string, osVersion: string) => JSON.stringify({ deviceModel, os: "iOS", osVersion });

beforeAll(async () => {
  ({ applicationId } = await create("--first", "100", "--last", "199"));
  const [key] = await database.run((orm) =>
    orm.select().from(signingKey).where(eq(signingKey.applicationId, applicationId)),
  );
  const issued = (number: number, text: string | null = null) => ({
    ...{ number, applicationId, device: DEVICE, userId: `user-${number}`, metadata: text },
    ...{ signingKeyId: key?.id ?? 0, eventId: `evt_${number}`, ordinal: number, loginSequence: number, issuedAt: 1000 },
  });
  const reserved = invitationDigest.parse("digest-of-a-token");
  const rows: (typeof badge.$inferInsert)[] = [
    issued(100, metadata("iPhone 17", "26.1")),
    issued(101, metadata("iPhone 17", "26.2")),
    issued(102, metadata("iPhone 16", "26.1")),
    issued(103),
    { number: 110, applicationId, invitation: reserved },
    { ...issued(120), state: "replaced", supersededAt: 2000, endedAt: 2000, change: 121, changedAt: 2000 },
    { ...issued(121), state: "suspended", change: 122, changedAt: 3000, expiresAt: 4_102_444_800_000 },
    { ...issued(122), state: "revoked", change: 123, changedAt: 4000, endedAt: 4000 },
    { ...issued(123), state: "suspended", expiresAt: 5000, change: 124, changedAt: 5000 },
    // Another application's, as if ranges were not apart.
    { ...issued(300, metadata("Other", "1")), applicationId: anyApplicationId.parse("app_other") },
  ];
  const invited = { applicationId, number: 110, creatorDevice: DEVICE, createdAt: 1, ...END };
  await database.run((orm) =>
    orm.batch([
      orm.insert(invitation).values([
        { digest: reserved, state: "pending", ...invited },
        { digest: invitationDigest.parse("another"), state: "revoked", endedAt: 1, ...invited },
        { digest: invitationDigest.parse("a-third"), state: "expired", endedAt: 1, ...invited },
      ]),
      ...rows.map((row) => orm.insert(badge).values(row)),
    ]),
  );
  const counts = {
    badges: { active: 4, suspended: 1, revoked: 1, expired: 1, replaced: 1 },
    invitations: { pending: 1, claimed: 0, revoked: 1, expired: 1 },
    retired: 1,
    newBadges: { day: TODAY, count: 3 },
  };
  await counted(applicationId, counts, { [TODAY - 2]: 5, [TODAY - 200]: 7 });
});

describe("badge show (contract sections 10 and 12)", () => {
  it("badge show prints an issued badge", async () => {
    const [key] = await listSigningKeys(database, applicationId);
    expect(await showBadge(database, 100)).toEqual({
      number: "100",
      state: "active",
      applicationId,
      userId: "user-100",
      name: null,
      startsAt: null,
      metadata: { deviceModel: "iPhone 17", os: "iOS", osVersion: "26.1" },
      issuedAt: "1970-01-01T00:00:01.000Z",
      expiresAt: null,
      changedAt: "1970-01-01T00:00:01.000Z",
      supersededAt: null,
      keyId: key?.keyId,
      keyThumbprint: null,
      rebindUntil: null,
      eventId: "evt_100",
      invitation: null,
      cards: ["h10301", "h10302", "h10304", "corporate1000", "corporate1000_48"].map((format) =>
        expect.objectContaining({ format, cardNumber: 100 }),
      ),
    });
  });

  it.each([
    [110, { state: "reserved", userId: null, invitation: { state: "pending", expiresAt: END.expiresAt } }],
    [120, { state: "replaced", supersededAt: "1970-01-01T00:00:02.000Z" }],
    [121, { state: "suspended", expiresAt: "2100-01-01T00:00:00.000Z", changedAt: "1970-01-01T00:00:03.000Z" }],
    [122, { state: "revoked", changedAt: "1970-01-01T00:00:04.000Z" }],
    [123, { state: "expired", expiresAt: "1970-01-01T00:00:05.000Z" }],
    [199, { state: "free" }],
    [200, { state: "outside", applicationId: null }],
    [99, { state: "outside", applicationId: null }],
  ])("badge show prints the present state of %i: %o", async (number, expected) => {
    const shown = await showBadge(database, number);
    expect(shown).toMatchObject({ applicationId, ...expected });
    // Neither the device nor an invitation's token.
    expect(JSON.stringify(shown)).not.toContain("digest");
  });
});

describe("stats (contract section 10)", () => {
  it("stats counts badges by metadata and state, invitations by state, and numbers", async () => {
    const notTold = { value: null, badges: 4 };
    const { badgesPerDay, asOf, ...figures } = await readStatistics(database, applicationId);
    expect(badgesPerDay).toHaveLength(90);
    const dayOf = (day: number) => new Date(day * DAY_MILLISECONDS).toISOString().slice(0, 10);
    expect(badgesPerDay.filter(({ badges }) => badges > 0)).toEqual([
      { day: dayOf(TODAY - 2), badges: 5 },
      { day: dayOf(TODAY), badges: 3 },
    ]);
    expect(Math.abs(Date.parse(asOf) - Date.now())).toBeLessThan(60_000);
    expect(figures).toEqual({
      applicationId,
      name: "App",
      numbers: { size: 100, issued: 7, reserved: 1, retired: 1, coolingDown: 0, left: 91, used: 9, usedPercent: 9 },
      badges: {
        deviceModel: {
          values: [notTold, { value: "iPhone 17", badges: 2 }, { value: "iPhone 16", badges: 1 }],
          others: 0,
        },
        os: { values: [notTold, { value: "iOS", badges: 3 }], others: 0 },
        osVersion: { values: [notTold, { value: "26.1", badges: 2 }, { value: "26.2", badges: 1 }], others: 0 },
        sdkVersion: { values: [{ value: null, badges: 7 }], others: 0 },
      },
      sampled: 7,
      invitations: { pending: 1, claimed: 0, revoked: 1, expired: 1 },
      badgesByState: { active: 4, suspended: 1, revoked: 1, expired: 1, replaced: 1 },
      deliveries: [],
      logins: { withToken: 0, withoutToken: 0, withWrongToken: 0 },
    });
  });

  it("stats counts freed numbers as used until their reuse delay is over", async () => {
    const { applicationId: id } = await create("--first", "1", "--last", "3", "--reuse-after", "3600");
    const reserved = { number: 1, applicationId: id, invitation: invitationDigest.parse("reserved") };
    await database.run((orm) =>
      orm.batch([
        orm.insert(badge).values(reserved),
        orm.insert(freedNumber).values([
          { number: 2, applicationId: id, freedAt: Date.now() - 3000_000 },
          { number: 3, applicationId: id, freedAt: Date.now() - 4000_000 },
        ]),
      ]),
    );
    await counted(id, { invitations: { pending: 1, claimed: 0, revoked: 2, expired: 0 }, freed: 2 });
    const { numbers } = await readStatistics(database, id);
    expect(numbers).toMatchObject({ size: 3, reserved: 1, coolingDown: 1, used: 2, left: 1, usedPercent: 66.6 });
    // An administrator sees what was changed a moment ago, unlike the callers of GET /v1/stats.
    await database.run((orm) => orm.delete(freedNumber).where(eq(freedNumber.applicationId, id)));
    expect((await readStatistics(database, id)).numbers).toMatchObject({ coolingDown: 0, left: 2 });
  });
});
