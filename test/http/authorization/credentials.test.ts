import { eq } from "drizzle-orm";
import { drizzle } from "drizzle-orm/d1";
import { afterEach, describe, expect, it, onTestFinished, vi } from "vitest";
import { makeConsoleSecret, makeSecret } from "../../../src/shared/credentials.ts";
import { applicationSecret, consoleSecret } from "../../../src/shared/schema.ts";
import { ApplicationCache } from "../../../src/worker/applications/application-cache.ts";
import { issueTo, takeStep } from "../../badges/life-support.ts";
import { moveClock, SECOND } from "../../invitations/support/clock.ts";
import { createApplication, type TestApplication, testSealer } from "../../support/application.ts";
import { callWith } from "../../support/bindings.ts";
import { aroundD1 } from "../../support/d1.ts";
import { bindDatabase, homeDatabase, runSql } from "../../support/home.ts";
import { call, requestBadge, serverHeaders } from "../../support/http.ts";
import { outcome } from "../support/draft.ts";
import { CREATOR, hoursAhead, tenant } from "../support/invitations.ts";
import { signIn } from "../support/people.ts";

afterEach(() => {
  vi.useRealTimers();
});

/** After 30 s no isolate goes by what it remembers of an application (contract section 9). */
const forgetApplications = () => moveClock(30 * SECOND);
/** So long a refusal may be remembered that an administrator can take back. */
const passOneSecond = () => moveClock(SECOND);

type Headers = Record<string, string>;

const INVITE = { path: "/v1/invitation", body: { expiresAt: hoursAhead(1) } };

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
describe("secrets (contract sections 4, 9 and 19)", () => {
  it("a secret is refused when its digest differs in any one character, that of a server or of a person, and so is a digest", async () => {
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
    // Doors still check what it signed.
    expect(outcome(await call("GET", `/v1/applications/${application.id}/jwks.json`))).toBe("200");
    await update("disabled_at = NULL", application);
    passOneSecond();
    expect(await outcomes(headers, invitation)).toEqual(GRANTED);
  });

  it("no newer secret or setting lifts a refusal if the application was disabled, or a secret required, since", async () => {
    const known = await createApplication();
    expect(await listsFor(serverHeaders(known))).toBe("200");
    const { secret } = await addSecret(known);
    await update("disabled_at = 1", known);
    expect(await listsFor({ applicationid: known.id, applicationsecret: secret })).toBe(NO_CREDENTIALS);

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

  it("a refusal that no setting can lift does not read the settings again", async () => {
    const application = await createApplication();
    await takeStep(application, await issueTo(application, "phone", "user"), "suspend");
    passOneSecond();
    const reads = vi.spyOn(ApplicationCache.prototype, "findRecent");
    onTestFinished(() => reads.mockRestore());
    expect(outcome(await requestBadge(application, "phone", { userId: "user" }))).toBe("403 SUSPENDED_BADGE");
    const headers = { applicationid: application.id, udid: "phone", DPoP: "none" };
    expect(outcome(await call("POST", "/v1/badge", { headers, body: { userId: "user" } }))).toBe("401 INVALID_PROOF");
    expect(reads).not.toHaveBeenCalled();
  });

  it("a refusal by settings that have not changed is not tried again", async () => {
    const application = await createApplication({ requireProof: true });
    const headers = { applicationid: application.id, udid: "phone" };
    const tripsOf = async () => {
      let trips = 0;
      const d1 = aroundD1(homeDatabase(), (_, send) => {
        trips++;
        return send();
      });
      const init = { method: "POST", headers, body: '{"userId":"user"}' };
      const refused = await callWith(bindDatabase(d1), new Request("https://badges.example/v1/badge", init));
      expect(outcome(refused)).toBe("401 INVALID_PROOF");
      return trips;
    };
    await tripsOf();
    const within = await tripsOf();
    passOneSecond();
    // One more, for the settings.
    expect(await tripsOf()).toBe(within + 1);
  });

  it("an added secret works at once besides the other, also after wrong ones; a retired one stops once caches have expired", async () => {
    const { application, invitation } = await tenant();
    const old = { ...serverHeaders(application), udid: CREATOR };
    expect(await outcomes(old, invitation)).toEqual(GRANTED);
    expect(await listsFor({ ...old, applicationsecret: "wrong" })).toBe(NO_CREDENTIALS);
    const { row, secret } = await addSecret(application);
    const young = { ...old, applicationsecret: secret };
    for (const headers of [young, old]) expect(await outcomes(headers, invitation)).toEqual(GRANTED);
    await runSql("DELETE FROM application_secret WHERE application_id = ? AND role = 'current'", application.id);
    await runSql("UPDATE application_secret SET role = 'current' WHERE id = ?", row.id);
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
