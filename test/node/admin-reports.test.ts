import { eq } from "drizzle-orm";
import { beforeAll, describe, expect, it } from "vitest";
import { showBadge } from "../../src/admin/badge/show.ts";
import { listSigningKeys } from "../../src/admin/key/commands.ts";
import { type ApplicationId, deviceId, invitationDigest } from "../../src/shared/identifiers.ts";
import { badge, invitation, signingKey } from "../../src/shared/schema.ts";
import { localHomes } from "./support/script.ts";

const { database, create } = await localHomes();
let applicationId: ApplicationId;

const DEVICE = deviceId.parse("device-digest");
const END = { expiresAt: "2027-01-01T00:00:00+01:00", expiresAtTime: 1 };

const METADATA = JSON.stringify({ deviceModel: "iPhone 17", os: "iOS", osVersion: "26.1" });

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
    issued(100, METADATA),
    { number: 110, applicationId, invitation: reserved },
    { ...issued(120), state: "replaced", supersededAt: 2000, endedAt: 2000, change: 121, changedAt: 2000 },
    { ...issued(122), state: "revoked", change: 123, changedAt: 4000, endedAt: 4000 },
    { ...issued(123), state: "suspended", expiresAt: 5000, change: 124, changedAt: 5000 },
  ];
  const invited = { applicationId, number: 110, creatorDevice: DEVICE, createdAt: 1, ...END };
  await database.run((orm) =>
    orm.batch([
      orm.insert(invitation).values({ digest: reserved, state: "pending", ...invited }),
      ...rows.map((row) => orm.insert(badge).values(row)),
    ]),
  );
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
    [122, { state: "revoked", changedAt: "1970-01-01T00:00:04.000Z" }],
    [123, { state: "expired", expiresAt: "1970-01-01T00:00:05.000Z" }],
    [199, { state: "free" }],
    [200, { state: "outside", applicationId: null }],
  ])("badge show prints the present state of %i: %o", async (number, expected) => {
    const shown = await showBadge(database, number);
    expect(shown).toMatchObject({ applicationId, ...expected });
    // Neither the device nor an invitation's token.
    expect(JSON.stringify(shown)).not.toContain("digest");
  });
});
