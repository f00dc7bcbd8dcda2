import { eq } from "drizzle-orm";
import { drizzle } from "drizzle-orm/d1";
import { afterEach, describe, expect, it, vi } from "vitest";
import { makeConsoleSecret, makeSecret } from "../../../src/shared/credentials.ts";
import { applicationSecret, consoleSecret } from "../../../src/shared/schema.ts";
import { createApplication, type TestApplication, testSealer } from "../../support/application.ts";
import { homeDatabase, runSql } from "../../support/home.ts";
import { call, requestBadge, serverHeaders } from "../../support/http.ts";
import { outcome } from "../support/draft.ts";
import { CREATOR, hoursAhead, tenant } from "../support/invitations.ts";
import { signIn } from "../support/people.ts";

afterEach(() => {
  vi.useRealTimers();
});

/** After 30 s no isolate goes by what it remembers of an application (contract section 9). */
function forgetApplications(): void {
  vi.setSystemTime(Date.now() + 30_000);
}

/** So long a refusal may be remembered that an administrator can take back. */
function passOneSecond(): void {
  vi.setSystemTime(Date.now() + 1000);
}

/** One call of each kind: of a device, of its server, and of either. `server-calls.ts` has every call of a server. */
const CALLS: Record<Kind, (invitation: string) => [method: string, path: string, body?: object]> = {
  issue: () => ["POST", "/v1/badge", { userId: "user" }],
  sign: () => ["POST", "/v1/badge/sign", { base64: "AAAA" }],
  list: () => ["GET", "/v1/badges"],
  invite: () => ["POST", "/v1/invitation", { expiresAt: hoursAhead(1) }],
  revoke: (invitation) => ["PATCH", `/v1/invitation/${invitation}/revoke`],
};

type Kind = "issue" | "sign" | "list" | "invite" | "revoke";
type Outcomes = Record<Kind, string>;
type Headers = Record<string, string>;

async function outcomes(headers: Headers, invitation: string): Promise<Record<string, string>> {
  const found: Record<string, string> = {};
  for (const [kind, callOf] of Object.entries(CALLS)) {
    const [method, path, body] = callOf(invitation);
    found[kind] = outcome(await call(method, path, { headers, body }));
  }
  return found;
}

const NO_APPLICATION = "401 INVALID_APPLICATIONID";
const NO_CREDENTIALS = "401 INVALID_CREDENTIALS";

const GRANTED: Outcomes = { issue: "200", sign: "200", list: "200", invite: "201", revoke: "200" };

const NOTHING_GRANTED: Outcomes = {
  issue: NO_APPLICATION,
  sign: NO_APPLICATION,
  list: NO_CREDENTIALS,
  invite: NO_APPLICATION,
  revoke: NO_APPLICATION,
};

/** With a wrong secret only what needs none is granted. */
const DEVICE_ONLY: Outcomes = {
  ...GRANTED,
  list: NO_CREDENTIALS,
  invite: NO_CREDENTIALS,
  revoke: NO_CREDENTIALS,
};

/** Without an application ID a login says that it is missing. */
const NAMES_NOTHING = { ...NOTHING_GRANTED, issue: "422 UNDEFINED_APPLICATIONID" };

const NO_UDID = { issue: "422 UNDEFINED_UDID", sign: "422 UNDEFINED_UDID", invite: "422 UNDEFINED_UDID" };

interface Scene {
  application: TestApplication;
  foreign: TestApplication;
  /** Of the application's secret, as it is stored. */
  digest: string;
}

const digestOf = async ({ id }: TestApplication): Promise<string> => {
  const rows = drizzle(homeDatabase()).select().from(applicationSecret).where(eq(applicationSecret.applicationId, id));
  return (await rows.all())[0]?.digest ?? "";
};

/** Who presents what, each in some ways, and what they are granted. */
const CALLERS: [who: string, present: (scene: Scene) => Headers[], expected: Outcomes][] = [
  ["nobody without credentials", () => [{}, { udid: CREATOR }], NAMES_NOTHING],
  [
    "nobody with a secret without its application ID",
    ({ application }) => [{ udid: CREATOR, applicationsecret: application.secret }],
    NAMES_NOTHING,
  ],
  [
    "nobody with a text that is no application ID",
    ({ application: { id, secret } }) =>
      ["app_00000000000000000000", id.toUpperCase(), `${id}x`, `${id},${id}`, "' OR 1=1 --"].map((applicationid) => {
        return { applicationid, udid: CREATOR, applicationsecret: secret };
      }),
    NOTHING_GRANTED,
  ],
  [
    "a device with the application ID and its udid: device calls, and its own invitations",
    ({ application }) => [{ applicationid: application.id, udid: CREATOR }],
    { ...GRANTED, list: NO_CREDENTIALS },
  ],
  [
    "no device without a udid",
    ({ application }) => [{ applicationid: application.id }],
    { ...NO_UDID, list: NO_CREDENTIALS, revoke: NO_CREDENTIALS },
  ],
  [
    "no server with a wrong secret, whatever is wrong with it",
    ({ application: { id: applicationid, secret }, foreign, digest }) =>
      [
        ...["wrong", foreign.secret, digest, applicationid],
        ...[secret.slice(0, -1), `${secret}x`, secret.toLowerCase(), `${secret},${secret}`],
      ].map((applicationsecret) => ({ applicationid, applicationsecret, udid: CREATOR })),
    DEVICE_ONLY,
  ],
  [
    "a server with the application ID and secret, for whatever udid",
    ({ application }) => ["another", CREATOR].map((udid) => ({ ...serverHeaders(application), udid })),
    GRANTED,
  ],
  [
    "a server without a udid: all but device calls",
    ({ application }) => [serverHeaders(application)],
    { ...GRANTED, ...NO_UDID },
  ],
];

/** The digest with another character at a place. */
function changedAt(digest: string, place: number): string {
  return `${digest.slice(0, place)}${digest[place] === "A" ? "B" : "A"}${digest.slice(place + 1)}`;
}

const listsFor = async (headers: Headers) => outcome(await call("GET", "/v1/badges", { headers }));

describe("who may call what (contract sections 2 to 5)", () => {
  it.each(CALLERS)("%s", async (_, present, expected) => {
    const { application, invitation } = await tenant();
    const scene = { application, foreign: await createApplication(), digest: await digestOf(application) };
    // The device that signs has a badge.
    expect((await requestBadge(application, "another", { userId: "user" })).status).toBe(201);
    for (const headers of present(scene)) {
      expect({ headers, ...(await outcomes(headers, invitation)) }).toEqual({ headers, ...expected });
    }
  });

  it("no server with a secret whose digest differs in any one character", async () => {
    const application = await createApplication();
    const digest = await digestOf(application);
    expect(await listsFor(serverHeaders(application))).toBe("200");
    for (const place of [0, 7, 15, 21, 31, 42]) {
      const changed = { digest: changedAt(digest, place) };
      const { applicationId } = applicationSecret;
      await drizzle(homeDatabase()).update(applicationSecret).set(changed).where(eq(applicationId, application.id));
      forgetApplications();
      expect(`${place} ${await listsFor(serverHeaders(application))}`).toBe(`${place} ${NO_CREDENTIALS}`);
    }
  });

  it("no person with such a secret either (contract sections 9 and 19)", async () => {
    const application = await createApplication();
    const { row, secret } = await makeConsoleSecret();
    for (const place of [0, 21, 42]) {
      const near = { ...row, digest: changedAt(row.digest, place), name: `Ann ${place}` };
      await drizzle(homeDatabase())
        .insert(consoleSecret)
        .values({ ...near, applicationId: application.id, createdAt: 0 });
    }
    expect(await listsFor({ applicationid: application.id, applicationsecret: secret })).toBe(NO_CREDENTIALS);
  });
});

describe("what an administrator changes (contract section 9)", () => {
  const update = (assignment: string, { id }: TestApplication) =>
    runSql(`UPDATE application SET ${assignment} WHERE id = ?`, id);

  /** @returns the secret and its row */
  async function addSecret({ id }: TestApplication) {
    const made = await makeSecret(await testSealer(), id);
    const added = { ...made.row, applicationId: id, role: "added" as const, createdAt: Date.now() };
    await drizzle(homeDatabase()).insert(applicationSecret).values(added);
    return made;
  }

  it("a disabled application is refused once caches have expired, and served a second after it is enabled", async () => {
    const { application, invitation } = await tenant();
    const headers = { ...serverHeaders(application), udid: CREATOR };
    expect(await outcomes(headers, invitation)).toEqual(GRANTED);
    await update("disabled_at = 1", application);
    forgetApplications();
    expect(await outcomes(headers, invitation)).toEqual(NOTHING_GRANTED);
    expect(await outcomes({ ...headers, applicationsecret: "wrong" }, invitation)).toEqual(NOTHING_GRANTED);
    await update("disabled_at = NULL", application);
    passOneSecond();
    expect(await outcomes(headers, invitation)).toEqual(GRANTED);
  });

  it("a secret that is newer than the cached application is refused if the application was disabled since", async () => {
    const application = await createApplication();
    expect(await listsFor(serverHeaders(application))).toBe("200");
    const { secret } = await addSecret(application);
    await update("disabled_at = 1", application);
    expect(await listsFor({ applicationid: application.id, applicationsecret: secret })).toBe(NO_CREDENTIALS);
  });

  it("no newer setting lifts a refusal if the application was disabled, or a secret required, since", async () => {
    const proving = await createApplication({ requireProof: true });
    const logIn = async () => outcome(await requestBadge(proving, "phone", { userId: "user" }));
    expect(await logIn()).toBe("401 INVALID_PROOF");
    await update("require_proof = 0, disabled_at = 1", proving);
    passOneSecond();
    expect(await logIn()).toBe("401 INVALID_PROOF");

    const limited = await createApplication({ newBadgesPerHour: 1 });
    const [method, path, body] = CALLS.invite("");
    const headers = { applicationid: limited.id, udid: CREATOR };
    const invite = async () => outcome(await call(method, path, { headers, body }));
    expect([await invite(), await invite()]).toEqual(["201", "429 RATE_LIMITED"]);
    await update("require_secret = 1, new_badges_per_hour = NULL", limited);
    passOneSecond();
    expect(await invite()).toBe(NO_CREDENTIALS);
  });

  it.each([
    ["503 NUMBERS_EXHAUSTED", { size: 1 }, "last_number = last_number + 1"],
    ["429 RATE_LIMITED", { newBadgesPerHour: 1 }, "new_badges_per_hour = NULL"],
    ["401 INVALID_PROOF", { requireProof: true }, "require_proof = 0"],
  ])("%s is lifted a second after an administrator has changed the setting", async (refused, columns, assignment) => {
    const application = await createApplication(columns);
    const logIn = async (udid: string) => outcome(await requestBadge(application, udid, { userId: "user" }));
    await logIn("phone");
    expect(await logIn("tablet")).toBe(refused);
    await update(assignment, application);
    passOneSecond();
    expect(await logIn("tablet")).toBe("201");
  });

  it("a disabled application keeps its key set: doors still check what it signed", async () => {
    const application = await createApplication({ disabledAt: 1 });
    expect(outcome(await call("GET", `/v1/applications/${application.id}/jwks.json`))).toBe("200");
  });

  it("an added secret works at once besides the other, also after wrong ones; a retired one stops once caches have expired", async () => {
    const { application, invitation } = await tenant();
    const old = { ...serverHeaders(application), udid: CREATOR };
    expect(await outcomes(old, invitation)).toEqual(GRANTED);
    expect(await listsFor({ ...old, applicationsecret: "wrong" })).toBe(NO_CREDENTIALS);
    const { row, secret } = await addSecret(application);
    const young = { ...old, applicationsecret: secret };
    for (const headers of [young, old]) expect(await outcomes(headers, invitation)).toEqual(GRANTED);
    await homeDatabase().batch([
      homeDatabase()
        .prepare("DELETE FROM application_secret WHERE application_id = ? AND role = 'current'")
        .bind(application.id),
      homeDatabase().prepare("UPDATE application_secret SET role = 'current' WHERE id = ?").bind(row.id),
    ]);
    forgetApplications();
    expect(await outcomes(old, invitation)).toEqual(DEVICE_ONLY);
    expect(await outcomes(young, invitation)).toEqual(GRANTED);
  });

  it("a secret for a person works at once as the server's does, in its own application, and stops when it is retired (contract section 19)", async () => {
    const { application, invitation } = await tenant();
    const server = { ...serverHeaders(application), udid: CREATOR };
    expect(await outcomes(server, invitation)).toEqual(GRANTED);
    const person = { ...(await signIn(application, "operator")), udid: CREATOR };
    for (const headers of [person, server]) expect(await outcomes(headers, invitation)).toEqual(GRANTED);
    const other = await createApplication();
    expect(await listsFor({ ...person, applicationid: other.id })).toBe(NO_CREDENTIALS);
    await drizzle(homeDatabase()).delete(consoleSecret).where(eq(consoleSecret.applicationId, application.id));
    forgetApplications();
    expect(await outcomes(person, invitation)).toEqual(DEVICE_ONLY);
    expect(await outcomes(server, invitation)).toEqual(GRANTED);
  });

  it("a secret is required once isolates have forgotten that none was, and not required a second later", async () => {
    const { application, invitation } = await tenant();
    const device = { applicationid: application.id, udid: CREATOR };
    expect(await outcomes(device, invitation)).toMatchObject({ invite: "201", revoke: "200" });
    await update("require_secret = 1", application);
    forgetApplications();
    expect(await outcomes(device, invitation)).toEqual(DEVICE_ONLY);
    expect(await outcomes({ ...serverHeaders(application), udid: CREATOR }, invitation)).toEqual(GRANTED);
    await update("require_secret = 0", application);
    passOneSecond();
    expect(await outcomes(device, invitation)).toMatchObject({ invite: "201", revoke: "200" });
  });
});
