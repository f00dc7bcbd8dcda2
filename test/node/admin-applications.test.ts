import { eq } from "drizzle-orm";
import { beforeEach, describe, expect, it } from "vitest";
import { findApplication } from "../../src/admin/application/record.ts";
import { assertPublicUrl } from "../../src/admin/application/settings.ts";
import { type ApplicationId, deviceId } from "../../src/shared/identifiers.ts";
import { application, badge, webhookEvent } from "../../src/shared/schema.ts";
import { clearHomes } from "./support/homes.ts";
import { localHomes } from "./support/script.ts";

const { homes, register, database, admin, create, json, refusal } = await localHomes();

beforeEach(() => clearHomes(homes, register));

const update = (id: ApplicationId, ...words: string[]) => json("application", "update", id, ...words);

const DEFAULTS = {
  ...{ webhookUrl: null, events: ["badge:created"], invitationLink: null, requireSecret: false, reuseAfterSeconds: 0 },
  ...{ signatureLifetimeSeconds: null, statusList: false, statusLifetimeSeconds: 86_400, requireProof: false },
  ...{ bindUntil: null, newBadgesPerHour: 10_000 },
  ...{ userIssuer: null, userAudience: null, userClaim: "sub", userObserve: false },
};

const URL = "http://localhost:9/hooks";
const LINK = "https://app.example.com/visit/{token}";
const ISSUER = "https://login.example.com";
const TIME = "2099-01-31T18:00:00+01:00";
const TIME_IN_UTC = "2099-01-31T17:00:00.000Z";

/** Options that choose something, what is printed of it as JSON and on a page, and options that take it back. */
const SETTINGS: readonly (readonly [on: string[], fields: object, line: string, off: string])[] = [
  [[`--webhook-url=${URL}`], { webhookUrl: URL }, `Webhook URL +${URL}`, "--no-webhook-url"],
  [
    ["--events=badge:suspended, badge:created,badge:suspended"],
    { events: ["badge:created", "badge:suspended"] },
    "Events +badge:created, badge:suspended",
    "--events=badge:created",
  ],
  [[`--invitation-link=${LINK}`], { invitationLink: LINK }, "Invitation link +https:.*", "--no-invitation-link"],
  [["--require-secret"], { requireSecret: true }, "Invitations need the secret +yes", "--no-require-secret"],
  [["--reuse-after=5"], { reuseAfterSeconds: 5 }, "Freed numbers cool down for +5 s", "--reuse-after=0"],
  [
    ["--signature-lifetime=60"],
    { signatureLifetimeSeconds: 60 },
    "Signatures are valid for +60 s",
    "--signature-lifetime=none",
  ],
  [["--status-list"], { statusList: true }, "Status lists +yes, valid for [0-9]+ s", "--no-status-list"],
  [["--status-lifetime=60"], { statusLifetimeSeconds: 60 }, "Status lists +no", "--status-lifetime=86400"],
  [["--require-proof"], { requireProof: true }, "Device calls need a proof +yes", "--no-require-proof"],
  [[`--bind-until=${TIME}`], { bindUntil: TIME_IN_UTC }, "First proofs bind .* until +2099.*", "--bind-until=never"],
  [
    ["--new-badges-per-hour=none"],
    { newBadgesPerHour: null },
    "New badges per clock hour +no limit",
    "--new-badges-per-hour=10000",
  ],
  [
    [`--user-issuer=${ISSUER}`, "--user-audience=app", "--user-claim=email", "--observe", "--unchecked"],
    { userIssuer: ISSUER, userAudience: "app", userClaim: "email", userObserve: true, requireSecret: true },
    "Logins without a token +counted, not refused",
    "--no-user-issuer",
  ],
];

describe("settings of an application (contract sections 7, 10, 14, 15, 18 and 22)", () => {
  const page = async (id: ApplicationId) => (await admin("application", "show", id)).stdout;

  it.each(SETTINGS)("application create and update both set and show %j", async (on, fields, line, off) => {
    const chosen = { ...DEFAULTS, ...fields };
    const { applicationId: id } = await create(...on);
    expect(await json("application", "show", id)).toMatchObject(chosen);
    expect(await json("application", "list")).toMatchObject([chosen]);
    expect(await page(id)).toMatch(new RegExp(`^ {2}${line}$`, "m"));
    expect(await update(id, off)).toMatchObject(DEFAULTS);
    expect(await update(id, ...on)).toMatchObject(chosen);
  });

  it("changing one setting leaves the others as they are", async () => {
    // An issuer requires the secret, whatever another option says.
    const alone = SETTINGS.filter(([, fields]) => !("userIssuer" in fields));
    const { applicationId: id } = await create(...alone.flatMap(([on]) => on));
    let expected: object = Object.assign({}, ...alone.map(([, fields]) => fields));
    for (const [, fields, , off] of alone) {
      const defaults = Object.entries(DEFAULTS).filter(([name]) => name in fields);
      expected = { ...expected, ...Object.fromEntries(defaults) };
      expect(await update(id, off)).toMatchObject(expected);
    }
    expect(await update(id, "--name", "New")).toMatchObject({ name: "New", ...DEFAULTS });
  });

  it("a command that is refused, has no option or names an unknown application changes no setting", async () => {
    const { applicationId: id } = await create("--first=100", "--last=199");
    expect(await json("application", "show", id)).toMatchObject(DEFAULTS);
    await create("--first=200", "--last=299");
    const before = await findApplication(database, id);
    expect(await refusal("application", "update", id, "--name=New", "--last=250")).toContain("overlap");
    expect(await refusal("application", "update", id)).toContain("Nothing to change");
    const nobody = "app_00000000000000000000";
    expect(await refusal("application", "update", nobody, "--name=New")).toContain(`There is no application ${nobody}`);
    expect(await findApplication(database, id)).toEqual(before);
  });

  it("status lists need the deployed service's https PUBLIC_URL; locally http is enough", () => {
    expect(() => assertPublicUrl("https://badges.example.com", "production")).not.toThrow();
    expect(() => assertPublicUrl("http://localhost:8787", undefined)).not.toThrow();
    for (const text of ["http://badges.example.com", "badges.example.com", "https://badges.example.com/?a"]) {
      expect(() => assertPublicUrl(text, "production"), text).toThrow("is not an https URL");
    }
  });
});

describe("application update --require-proof (contract section 15)", () => {
  it("--require-proof prints how many badges are unbound, what happens to them, and how to bind them", async () => {
    const { applicationId: id, firstNumber: number } = await create();
    const text = async (...words: string[]) =>
      (await admin("application", "update", id, "--require-proof", ...words)).stdout;
    const issued = { applicationId: id, device: deviceId.parse("device"), issuedAt: 1000 };
    const keyThumbprint = "0ZcOCORZNYy-DWpqq30jZyJGHTN0d2HglBV3uiguA4I";
    await database.run((orm) =>
      orm.insert(badge).values({ ...issued, number, ordinal: 1, userId: "bound", keyThumbprint }),
    );
    expect(await text()).toContain("Every badge of the application is bound to a key.");
    const unbound = [2, 3].map((ordinal) => ({
      ...issued,
      number: number + ordinal,
      ordinal,
      userId: `user-${ordinal}`,
    }));
    await database.run((orm) => orm.insert(badge).values(unbound));
    const strict = await text();
    for (const part of ["2 badges are not bound to a key.", "401 INVALID_PROOF", "badge rebind NUMBER"]) {
      expect(strict).toContain(part);
    }
    expect(await text("--bind-until", TIME)).toContain(`--bind-until allows that until ${TIME_IN_UTC}`);
  });
});

describe("application update --webhook-url (contract section 8)", () => {
  it("setting the webhook URL releases a held endpoint, and its events are due at once", async () => {
    const { applicationId } = await create("--webhook-url", "https://a.example.com/");
    const isOurs = eq(application.id, applicationId);
    await database.run((orm) => orm.update(application).set({ webhookHeldAt: 1 }).where(isOurs));
    const row = { applicationId, event: "badge:created", payload: "{}", attempts: 3, dueAt: 9, createdAt: 0 } as const;
    const rows = (["held", "exhausted"] as const).map((state) => ({ ...row, id: `evt_${state}`, state }));
    await database.run((orm) => orm.insert(webhookEvent).values(rows));
    await update(applicationId, "--name", "Still held");
    expect((await findApplication(database, applicationId)).webhookHeldAt).toBe(1);
    const webhookUrl = "https://b.example.com/";
    await update(applicationId, "--webhook-url", webhookUrl);
    expect(await findApplication(database, applicationId)).toMatchObject({ webhookUrl, webhookHeldAt: null });
    const events = await database.run((orm) => orm.select().from(webhookEvent).orderBy(webhookEvent.id));
    expect(events).toMatchObject([
      { state: "exhausted", attempts: 3 },
      { state: "pending", attempts: 0, dueAt: 0 },
    ]);
  });
});
