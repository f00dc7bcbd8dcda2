import { eq } from "drizzle-orm";
import { drizzle } from "drizzle-orm/d1";
import { describe, expect, it } from "vitest";
import { makeConsoleSecret } from "../../../src/shared/credentials.ts";
import { applicationSecret, consoleSecret } from "../../../src/shared/schema.ts";
import { issueTo, takeStep } from "../../badges/life-support.ts";
import { addSecret, createApplication, type TestApplication } from "../../support/application.ts";
import { callWith } from "../../support/bindings.ts";
import { ahead, HOUR, moveClock, SECOND, useStandingClock } from "../../support/clock.ts";
import { countedD1 } from "../../support/d1.ts";
import { bindDatabase, homeDatabase, runSql } from "../../support/home.ts";
import { call, outcome, requestBadge, serverHeaders } from "../../support/http.ts";
import { CREATOR, invite } from "../../support/invitations.ts";
import { signIn } from "../support/people.ts";

useStandingClock();

/** After 30 s no isolate goes by what it remembers of an application (contract section 9). */
const forgetApplications = () => moveClock(30 * SECOND);
/** So long a refusal may be remembered that an administrator can take back. */
const passOneSecond = () => moveClock(SECOND);

type Headers = Record<string, string>;

const INVITE = { path: "/v1/invitation", body: { expiresAt: ahead(HOUR) } };

/** Of one call of each kind: of a device, of its server, and of either. */
async function outcomes(headers: Headers, invitation: string): Promise<Record<string, string>> {
  const ask = async (method: string, path: string, body?: object) =>
    outcome(await call(method, path, { headers, body }));
  return {
    issue: await ask("POST", "/v1/badge", { userId: "user" }),
    sign: await ask("POST", "/v1/badge/sign", { base64: "AAAA" }),
    list: await ask("GET", "/v1/badges"),
    invite: await ask("POST", INVITE.path, INVITE.body),
    revoke: await ask("PATCH", `/v1/invitation/${invitation}/revoke`),
  };
}

/** An application with a badge and an invitation, both of the device `CREATOR`. */
async function tenant(): Promise<{ application: TestApplication; invitation: string }> {
  const application = await createApplication();
  await issueTo(application, CREATOR, "user");
  return { application, invitation: (await invite(application)).token };
}

const NO_APPLICATION = "401 INVALID_APPLICATIONID";
const NO_CREDENTIALS = "401 INVALID_CREDENTIALS";

const GRANTED = { issue: "200", sign: "200", list: "200", invite: "201", revoke: "200" };
/** With a wrong secret only what needs none is granted. */
const DEVICE_ONLY = { ...GRANTED, list: NO_CREDENTIALS, invite: NO_CREDENTIALS, revoke: NO_CREDENTIALS };
const NOTHING_GRANTED = {
  ...{ issue: NO_APPLICATION, sign: NO_APPLICATION, list: NO_CREDENTIALS },
  ...{ invite: NO_APPLICATION, revoke: NO_APPLICATION },
};

/** The digest with another character at a place. */
function changedAt(digest: string, place: number): string {
  return `${digest.slice(0, place)}${digest[place] === "A" ? "B" : "A"}${digest.slice(place + 1)}`;
}

const listsFor = async (headers: Headers) => outcome(await call("GET", "/v1/badges", { headers }));

// Of whom each route asks for what: test/http/errors/order.test.ts.
it("a secret is refused when its digest differs in any one character, that of a server or of a person, and so is a digest (contract sections 4, 9 and 19)", async () => {
  const { id: applicationid, secret } = await createApplication();
  const console = await makeConsoleSecret();
  const orm = drizzle(homeDatabase());
  const ofApplication = eq(applicationSecret.applicationId, applicationid);
  const { digest = "" } = (await orm.select().from(applicationSecret).where(ofApplication).get()) ?? {};
  expect(await listsFor({ applicationid, applicationsecret: secret })).toBe("200");
  expect(await listsFor({ applicationid, applicationsecret: digest })).toBe(NO_CREDENTIALS);
  for (const place of [0, 7, 21, 42]) {
    const near = { ...console.row, digest: changedAt(console.row.digest, place), name: `Ann ${place}` };
    await orm.insert(consoleSecret).values({ ...near, applicationId: applicationid, createdAt: 0 });
    await orm
      .update(applicationSecret)
      .set({ digest: changedAt(digest, place) })
      .where(ofApplication);
    forgetApplications();
    for (const applicationsecret of [secret, console.secret]) {
      expect(`${place} ${await listsFor({ applicationid, applicationsecret })}`).toBe(`${place} ${NO_CREDENTIALS}`);
    }
  }
});

describe("what an administrator changes (contract section 9)", () => {
  const update = (assignment: string, { id }: TestApplication) =>
    runSql(`UPDATE application SET ${assignment} WHERE id = ?`, id);

  const addedTo = async (of: TestApplication): Promise<Headers> => {
    return { applicationid: of.id, applicationsecret: await addSecret(of, "added") };
  };

  it.each([
    ["a disabled application is refused", "disabled_at", "NULL", NOTHING_GRANTED],
    ["a secret is required", "require_secret", "0", GRANTED],
  ])("%s once caches have expired, and no longer a second after that was undone", async (_, column, undone, server) => {
    const { application, invitation } = await tenant();
    const byServer = { ...serverHeaders(application), udid: CREATOR };
    const byDevice = { applicationid: application.id, udid: CREATOR };
    const [before, ofDevice] = [await outcomes(byServer, invitation), await outcomes(byDevice, invitation)];
    expect([before, ofDevice]).toEqual([GRANTED, { ...GRANTED, list: NO_CREDENTIALS }]);
    await update(`${column} = 1`, application);
    forgetApplications();
    expect(await outcomes(byServer, invitation)).toEqual(server);
    expect(await outcomes(byDevice, invitation)).toEqual(server === GRANTED ? DEVICE_ONLY : NOTHING_GRANTED);
    // Doors still check what it signed.
    expect(outcome(await call("GET", `/v1/applications/${application.id}/jwks.json`))).toBe("200");
    await update(`${column} = ${undone}`, application);
    passOneSecond();
    expect(await outcomes(byServer, invitation)).toEqual(before);
    expect(await outcomes(byDevice, invitation)).toEqual(ofDevice);
  });

  it("a secret that was just added counts for a login beyond the hour's limit, too (contract section 7)", async () => {
    const application = await createApplication({ newBadgesPerHour: 1 });
    const logIn = async (userId: string, secret = {}) =>
      outcome(await call("POST", "/v1/badge", { headers: { ...secret, udid: userId }, body: { userId } }));
    const device = { applicationid: application.id };
    expect([await logIn("ada", device), await logIn("bob", device)]).toEqual(["201", "429 RATE_LIMITED"]);
    const added = await addedTo(application);
    passOneSecond();
    expect([await logIn("bob", added), await logIn("carl", device)]).toEqual(["201", "429 RATE_LIMITED"]);
  });

  it("no newer secret or setting lifts a refusal if the application was disabled, or a secret required, since", async () => {
    const known = await createApplication();
    expect(await listsFor(serverHeaders(known))).toBe("200");
    const added = await addedTo(known);
    await update("disabled_at = 1", known);
    expect(await listsFor(added)).toBe(NO_CREDENTIALS);

    const proving = await createApplication({ requireProof: true });
    const logIn = async () => outcome(await requestBadge(proving, "phone", { userId: "user" }));
    expect(await logIn()).toBe("401 INVALID_PROOF");
    await update("require_proof = 0, disabled_at = 1", proving);
    passOneSecond();
    expect(await logIn()).toBe("401 INVALID_PROOF");

    const limited = await createApplication({ newBadgesPerHour: 1 });
    const headers = { applicationid: limited.id, udid: CREATOR };
    const invite = async () => outcome(await call("POST", INVITE.path, { headers, body: INVITE.body }));
    expect([await invite(), await invite()]).toEqual(["201", "429 RATE_LIMITED"]);
    await update("require_secret = 1, new_badges_per_hour = NULL", limited);
    passOneSecond();
    expect(await invite()).toBe(NO_CREDENTIALS);
  });

  it.each([
    ["by settings that have not changed is not tried again with them", "503 NUMBERS_EXHAUSTED", "tablet", "", [1, 2]],
    ["of a wrong proof does not read the settings again", "401 INVALID_PROOF", "phone", "none", [0, 0]],
    ["by a badge's state does not read the settings again", "403 SUSPENDED_BADGE", "phone", "", [1, 1]],
  ])("a refusal %s", async (_, refused, udid, dpop, trips) => {
    const application = await createApplication({ size: 1 });
    await takeStep(application, await issueTo(application, "phone", "user"), "suspend");
    const headers = { applicationid: application.id, udid, dpop };
    const tripsOf = async () => {
      const counted = countedD1(homeDatabase());
      const login = callWith(bindDatabase(counted.d1), "POST", "/v1/badge", { headers, body: { userId: "user" } });
      expect(outcome(await login)).toBe(refused);
      return counted.trips;
    };
    const within = await tripsOf();
    passOneSecond();
    expect([within, await tripsOf()]).toEqual(trips);
  });

  it.each([
    ["of the server", addedTo, "DELETE FROM application_secret WHERE role = 'added' AND application_id = ?"],
    [
      "of a person (contract section 19)",
      (of: TestApplication) => signIn(of, "operator"),
      "DELETE FROM console_secret WHERE application_id = ?",
    ],
  ])(
    "a secret works at once besides the other, also after wrong ones, in its own application, and stops once caches have expired after it was retired: one %s",
    async (_, add, retire) => {
      const { application, invitation } = await tenant();
      const server = { ...serverHeaders(application), udid: CREATOR };
      expect(await outcomes(server, invitation)).toEqual(GRANTED);
      expect(await listsFor({ ...server, applicationsecret: "wrong" })).toBe(NO_CREDENTIALS);
      const added = { ...(await add(application)), udid: CREATOR };
      for (const headers of [added, server]) expect(await outcomes(headers, invitation)).toEqual(GRANTED);
      const other = await createApplication();
      expect(await listsFor({ ...added, applicationid: other.id })).toBe(NO_CREDENTIALS);
      await runSql(retire, application.id);
      forgetApplications();
      expect(await outcomes(added, invitation)).toEqual(DEVICE_ONLY);
      expect(await outcomes(server, invitation)).toEqual(GRANTED);
      // A rotation after a leak.
      const next = { ...(await addedTo(application)), udid: CREATOR };
      await runSql("DELETE FROM application_secret WHERE role = 'current' AND application_id = ?", application.id);
      await runSql("UPDATE application_secret SET role = 'current' WHERE application_id = ?", application.id);
      forgetApplications();
      expect(await outcomes(server, invitation)).toEqual(DEVICE_ONLY);
      expect(await outcomes(next, invitation)).toEqual(GRANTED);
    },
  );

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
});
