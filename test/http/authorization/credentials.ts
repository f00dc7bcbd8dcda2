import { eq } from "drizzle-orm";
import { drizzle } from "drizzle-orm/d1";
import { afterEach, beforeEach, describe, expect, it, vi } from "vitest";
import { makeConsoleSecret, makeSecret } from "../../../src/shared/credentials.ts";
import { applicationSecret, consoleSecret } from "../../../src/shared/schema.ts";
import { createApplication, type TestApplication, testSealer } from "../../support/application.ts";
import { homeDatabase } from "../../support/home.ts";
import { type Answer, call, requestBadge, serverHeaders } from "../../support/http.ts";
import { outcome } from "../support/draft.ts";
import { CREATOR, hoursAhead, invite, tenant } from "../support/invitations.ts";

beforeEach(() => {
  vi.spyOn(console, "log").mockImplementation(() => {});
});

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
interface Calls {
  issue: Answer;
  sign: Answer;
  list: Answer;
  listOfUser: Answer;
  invite: Answer;
  revoke: Answer;
}

async function callAll(headers: Record<string, string>, invitation: string): Promise<Calls> {
  return {
    issue: await call("POST", "/v1/badge", { headers, body: { userId: "user" } }),
    sign: await call("POST", "/v1/badge/sign", { headers, body: { base64: "AAAA" } }),
    list: await call("GET", "/v1/badges", { headers }),
    listOfUser: await call("GET", "/v1/users/user/badges", { headers }),
    invite: await call("POST", "/v1/invitation", { headers, body: { expiresAt: hoursAhead(1) } }),
    revoke: await call("PATCH", `/v1/invitation/${invitation}/revoke`, { headers }),
  };
}

async function outcomes(headers: Record<string, string>, invitation: string): Promise<Record<keyof Calls, string>> {
  const { issue, sign, list, listOfUser, invite: created, revoke } = await callAll(headers, invitation);
  return {
    issue: outcome(issue),
    sign: outcome(sign),
    list: outcome(list),
    listOfUser: outcome(listOfUser),
    invite: outcome(created),
    revoke: outcome(revoke),
  };
}

const NO_APPLICATION = "401 INVALID_APPLICATIONID";
const NO_CREDENTIALS = "401 INVALID_CREDENTIALS";

const GRANTED = { issue: "200", sign: "200", list: "200", listOfUser: "200", invite: "201", revoke: "200" };

const NOTHING_GRANTED = {
  issue: NO_APPLICATION,
  sign: NO_APPLICATION,
  list: NO_CREDENTIALS,
  listOfUser: NO_CREDENTIALS,
  invite: NO_APPLICATION,
  revoke: NO_APPLICATION,
};

/** With a wrong secret only what needs none is granted. */
const DEVICE_ONLY = {
  ...GRANTED,
  list: NO_CREDENTIALS,
  listOfUser: NO_CREDENTIALS,
  invite: NO_CREDENTIALS,
  revoke: NO_CREDENTIALS,
};

describe("who may call what (contract sections 2 to 5)", () => {
  it("nobody without credentials", async () => {
    const { invitation } = await tenant();
    const expected = { ...NOTHING_GRANTED, issue: "422 UNDEFINED_APPLICATIONID" };
    expect(await outcomes({}, invitation)).toEqual(expected);
    expect(await outcomes({ udid: CREATOR }, invitation)).toEqual(expected);
  });

  it("nobody with a secret without its application ID, or with a text that is no application ID", async () => {
    const { application, invitation } = await tenant();
    const { secret: applicationsecret, id } = application;
    const expected = { ...NOTHING_GRANTED, issue: "422 UNDEFINED_APPLICATIONID" };
    expect(await outcomes({ udid: CREATOR, applicationsecret }, invitation)).toEqual(expected);
    for (const applicationid of [
      "app_00000000000000000000",
      id.toUpperCase(),
      `${id}x`,
      `${id},${id}`,
      "' OR 1=1 --",
    ]) {
      const answers = await outcomes({ applicationid, udid: CREATOR, applicationsecret }, invitation);
      expect({ applicationid, ...answers }).toEqual({ applicationid, ...NOTHING_GRANTED });
    }
  });

  it("a device with the application ID and its udid: device calls, and its own invitations", async () => {
    const { application, invitation } = await tenant();
    const headers = { applicationid: application.id, udid: CREATOR };
    expect(await outcomes(headers, invitation)).toEqual({
      ...GRANTED,
      list: NO_CREDENTIALS,
      listOfUser: NO_CREDENTIALS,
    });
  });

  it("no device without a udid", async () => {
    const { application, invitation } = await tenant();
    expect(await outcomes({ applicationid: application.id }, invitation)).toEqual({
      issue: "422 UNDEFINED_UDID",
      sign: "422 UNDEFINED_UDID",
      list: NO_CREDENTIALS,
      listOfUser: NO_CREDENTIALS,
      invite: "422 UNDEFINED_UDID",
      revoke: NO_CREDENTIALS,
    });
  });

  it("no server with a wrong secret, whatever is wrong with it", async () => {
    const { application, invitation } = await tenant();
    const { id: applicationid, secret } = application;
    const foreign = await createApplication();
    const { digest } = (await drizzle(homeDatabase()).select().from(applicationSecret).all()).find(
      (row) => row.applicationId === applicationid,
    ) ?? { digest: "" };
    const nearly = [secret.slice(0, -1), `${secret}x`, secret.toLowerCase(), `${secret},${secret}`];
    for (const applicationsecret of ["wrong", foreign.secret, digest, applicationid, ...nearly]) {
      const answers = await outcomes({ applicationid, applicationsecret, udid: CREATOR }, invitation);
      expect({ applicationsecret, ...answers }).toEqual({ applicationsecret, ...DEVICE_ONLY });
    }
  });

  it("no server with a secret whose digest differs in any one character", async () => {
    for (const position of [1, 8, 16, 22, 32, 42]) {
      const application = await createApplication();
      const { id: applicationid } = application;
      expect(outcome(await call("GET", "/v1/badges", { headers: serverHeaders(application) }))).toBe("200");
      const other = `iif(substr(digest, ${position}, 1) = 'A', 'B', 'A')`;
      const changed = `substr(digest, 1, ${position - 1}) || ${other} || substr(digest, ${position + 1})`;
      const sql = `UPDATE application_secret SET digest = ${changed} WHERE application_id = ?`;
      await homeDatabase().prepare(sql).bind(applicationid).run();
      forgetApplications();
      const refused = await call("GET", "/v1/badges", { headers: serverHeaders(application) });
      expect({ position, is: outcome(refused) }).toEqual({ position, is: NO_CREDENTIALS });
    }
  });

  it("a server with the application ID and secret; it needs a udid only for device calls", async () => {
    const { application, invitation } = await tenant();
    const headers = serverHeaders(application);
    expect(await outcomes({ ...headers, udid: CREATOR }, invitation)).toEqual(GRANTED);
    expect(await outcomes(headers, invitation)).toEqual({
      ...GRANTED,
      issue: "422 UNDEFINED_UDID",
      sign: "422 UNDEFINED_UDID",
      invite: "422 UNDEFINED_UDID",
    });
    expect(await outcomes({ ...headers, udid: "another" }, invitation)).toMatchObject({ invite: "201", revoke: "200" });
  });

  it("no device may invite if the application requires the secret", async () => {
    const application = await createApplication({ requireSecret: true });
    const server = { ...serverHeaders(application), udid: CREATOR };
    const { id } = await invite(application, hoursAhead(1), server);
    expect((await requestBadge(application, CREATOR, { userId: "user" })).status).toBe(201);
    expect(await outcomes({ applicationid: application.id, udid: CREATOR }, id)).toEqual(DEVICE_ONLY);
    expect(await outcomes(server, id)).toEqual(GRANTED);
  });
});

describe("what an administrator changes (contract section 9)", () => {
  const update = (assignment: string, { id }: TestApplication) =>
    homeDatabase().prepare(`UPDATE application SET ${assignment} WHERE id = ?`).bind(id).run();

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
    const { application, invitation } = await tenant();
    const { id: applicationid } = application;
    const headers = { ...serverHeaders(application), udid: CREATOR };
    expect(await outcomes(headers, invitation)).toEqual(GRANTED);
    const { row, secret } = await makeSecret(await testSealer(), applicationid);
    const added = { ...row, applicationId: applicationid, role: "added" as const, createdAt: Date.now() };
    await drizzle(homeDatabase()).insert(applicationSecret).values(added);
    await update("disabled_at = 1", application);
    expect(outcome(await call("GET", "/v1/badges", { headers: { applicationid, applicationsecret: secret } }))).toBe(
      NO_CREDENTIALS,
    );
  });

  it("a disabled application keeps its key set: doors still check what it signed", async () => {
    const application = await createApplication({ disabledAt: 1 });
    expect(outcome(await call("GET", `/v1/applications/${application.id}/jwks.json`))).toBe("200");
  });

  it("an added secret works at once besides the other; a retired one stops once caches have expired", async () => {
    const { application, invitation } = await tenant();
    const old = { ...serverHeaders(application), udid: CREATOR };
    expect(await outcomes(old, invitation)).toEqual(GRANTED);
    const { row, secret } = await makeSecret(await testSealer(), application.id);
    const added = { ...row, applicationId: application.id, role: "added" as const, createdAt: Date.now() };
    await drizzle(homeDatabase()).insert(applicationSecret).values(added);
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
    const { row, secret } = await makeConsoleSecret();
    const added = { ...row, applicationId: application.id, name: "Ann", createdAt: Date.now() };
    await drizzle(homeDatabase()).insert(consoleSecret).values(added);
    const person = { ...server, applicationsecret: secret };
    for (const headers of [person, server]) expect(await outcomes(headers, invitation)).toEqual(GRANTED);
    const other = await createApplication();
    const elsewhere = await call("GET", "/v1/badges", { headers: { ...person, applicationid: other.id } });
    expect(outcome(elsewhere)).toBe(NO_CREDENTIALS);
    await drizzle(homeDatabase()).delete(consoleSecret).where(eq(consoleSecret.id, row.id));
    forgetApplications();
    expect(await outcomes(person, invitation)).toEqual(DEVICE_ONLY);
    expect(await outcomes(server, invitation)).toEqual(GRANTED);
  });

  it("a secret for a person is compared like the server's: one character of the digest decides (contract sections 9 and 19)", async () => {
    const application = await createApplication();
    const { row, secret } = await makeConsoleSecret();
    for (const position of [0, 21, 42]) {
      const digest = `${row.digest.slice(0, position)}${row.digest[position] === "A" ? "B" : "A"}${row.digest.slice(position + 1)}`;
      const values = { ...row, digest, applicationId: application.id, name: `Ann ${position}`, createdAt: 0 };
      await drizzle(homeDatabase()).insert(consoleSecret).values(values);
    }
    const headers = { applicationid: application.id, applicationsecret: secret };
    expect(outcome(await call("GET", "/v1/badges", { headers }))).toBe(NO_CREDENTIALS);
  });

  it("a secret is required once isolates have forgotten that none was, and not required a second later", async () => {
    const { application, invitation } = await tenant();
    const device = { applicationid: application.id, udid: CREATOR };
    expect(await outcomes(device, invitation)).toMatchObject({ invite: "201", revoke: "200" });
    await update("require_secret = 1", application);
    forgetApplications();
    expect(await outcomes(device, invitation)).toEqual(DEVICE_ONLY);
    await update("require_secret = 0", application);
    passOneSecond();
    expect(await outcomes(device, invitation)).toMatchObject({ invite: "201", revoke: "200" });
  });
});
