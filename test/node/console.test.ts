import { createServer } from "node:http";
import { text } from "node:stream/consumers";
import type { BrowserContext, Page } from "playwright-core";
import { afterAll, beforeAll, describe, expect, it } from "vitest";
import { createApplication } from "../../src/admin/application/create.ts";
import { updateApplication } from "../../src/admin/application/update.ts";
import { addConsoleSecret } from "../../src/admin/secret/secrets.ts";
import { type BadgeServiceError, DeviceClient, ServerClient } from "../../src/client/index.ts";
import { listenSomewhere } from "../../src/dev/demo/listen.ts";
import { byEffort } from "../support/effort.ts";
import { until } from "../support/until.ts";
import { faultsOf } from "./support/axe.ts";
import { browserOfFile, HAS_CHROMIUM, isFailedLoad, LIMIT, signIn } from "./support/browser.ts";
import { consoleSteps, openConsole, openPage } from "./support/console-page.ts";
import { type Harness, startHarness } from "./support/harness.ts";
import { scan } from "./support/scan.ts";

const DESKTOP = { width: 1280, height: 860 };
const PHONE = { width: 390, height: 844 };
const LINK = "https://app.example.com/visit/{token}";

/** The application's own receiver: it fails for one user until it is repaired. */
const receiver = createServer(async (request, response) => {
  // Null: the service was stopped while it sent.
  const body = await text(request).catch(() => null);
  if (body === null) return void response.destroy();
  await mayAnswer;
  const fails = isBroken && body.includes('"userId":"grace"');
  response.writeHead(fails ? 500 : 204).end(fails ? "disk full" : undefined);
});
let isBroken = true;
/** Until then it says nothing. */
let mayAnswer: Promise<unknown> = Promise.resolve();

const { openContext, conduct } = browserOfFile(isFailedLoad);
let service: Harness;
/** Tom, who works at another desk, with calls of his own. */
let tom: ServerClient;
/** Secrets by the name of their people. */
const secrets = new Map<string, string>();

beforeAll(async () => {
  service = await startHarness({ webhookUrl: `${await listenSomewhere(receiver)}/hooks` });
  const { origin: baseUrl, applicationId, database, homes, submit } = service;
  await updateApplication(homes, submit, applicationId, { invitationLink: LINK });
  for (const [name, role] of [
    ["Ann", "operator"],
    ["Tom", "operator"],
    ["Desk", "reception"],
    ["Vic", "viewer"],
  ] as const) {
    const actor = { kind: "administrator", name: "Root" } as const;
    secrets.set(name, (await addConsoleSecret(database, applicationId, { name, role }, actor)).applicationSecret);
  }
  tom = new ServerClient({ baseUrl, applicationId, applicationSecret: secrets.get("Tom") ?? "" });
}, LIMIT);

afterAll(() => void receiver.close());

const phone = (userId: string) => service.phone(encodeURIComponent(userId));

/** Issues a badge to the phone of a user. @returns its number */
async function issue(userId: string): Promise<string> {
  const metadata = { os: "iOS", osVersion: "18.6", deviceModel: "iPhone16,2" };
  return (await phone(userId).requestBadge({ userId, metadata })).badgeId;
}

/** What the phone of a user gets when it asks for a signature. */
const signed = (userId: string) =>
  phone(userId)
    .sign("AAAA")
    .then(
      () => "200",
      ({ status, code }: BadgeServiceError) => `${status} ${code}`,
    );

describe.skipIf(!HAS_CHROMIUM)("/console in a browser (contract sections 19 and 24)", { timeout: LIMIT }, () => {
  let context: BrowserContext;
  let page: Page;
  /** Badge numbers by user. */
  const numbers = new Map<string, string>();
  const number = (user: string) => numbers.get(user) ?? "";

  beforeAll(async () => {
    for (const user of ["alice", "bob", "carol", "dave", "erin", "frank", "grace", " heidi", "ivan"]) {
      numbers.set(user, await issue(user));
    }
    context = await openContext(service.origin, { viewport: DESKTOP, timezoneId: "Asia/Tokyo" });
    await context.grantPermissions(["clipboard-read", "clipboard-write"]);
    page = await context.newPage();
    await openPage(page, service);
  }, LIMIT);

  const signInAs = (name: string) => openConsole(page, service, secrets.get(name) ?? "");
  const { view, row, dialog, press, confirm, notice, undo, openMenu, saveAsCsv } = consoleSteps(() => page);
  const openBadge = (user: string) => view(`badge?id=${number(user)}`, "Badge");
  const fact = (name: string) => page.locator(".field").filter({ hasText: name });
  const step = (label: string) => page.getByRole("main").getByRole("button", { name: label }).click();
  const button = (name: string) => page.getByRole("button", { name });

  /** Opens the menu of a row, and chooses. */
  async function choose(name: string, item: string): Promise<void> {
    await openMenu(name);
    await page.getByRole("menuitem", { name: item }).click();
  }

  describe("signing in", () => {
    it("signing in with a wrong secret is refused with what to do about it", async () => {
      await signIn(page, service.applicationId, "bdss_wrong");
      await page.getByRole("alert").getByText("ask your administrator for a new secret").waitFor();
      await signIn(page, service.applicationId, "gehört mir");
      await page.getByRole("alert").getByText("it has only letters, digits, - and _").waitFor();
      expect(await page.getByText("Needs attention").count()).toBe(0);
    });

    it("the console shows who is signed in, and the secret is not in the URL, in storage or in the DOM", async () => {
      await signInAs("Ann");
      await page.getByRole("region", { name: "Application" }).getByText("Ann").waitFor();
      const found = await page.evaluate(async () => ({
        dom: document.documentElement.outerHTML,
        values: [...document.querySelectorAll("input")].map(({ value }) => value),
        url: location.href,
        history: JSON.stringify(history.state),
        stored: JSON.stringify([{ ...localStorage }, { ...sessionStorage }, document.cookie, name]),
        databases: (await indexedDB.databases()).length,
        caches: (await caches.keys()).length,
      }));
      expect(JSON.stringify(found)).not.toContain("bdss_");
      expect(found).toMatchObject({ stored: '[{},{},"",""]', databases: 0, caches: 0, history: "null", values: [] });
    });

    it("a reload or another page forgets the sign-in, and nothing offers to keep it (section 19)", async () => {
      await view("badges?q=ali", "Badges");
      await page.reload();
      await page.getByRole("button", { name: "Sign in" }).waitFor();
      expect(await page.getByRole("checkbox").count()).toBe(0);
      await signIn(page, service.applicationId, secrets.get("Ann") ?? "");
      await row("alice").waitFor();
      await page.getByRole("link", { name: "API reference" }).click();
      await page.waitForURL("**/docs", { waitUntil: "commit" });
      expect(await page.evaluate(() => sessionStorage.length + localStorage.length)).toBe(0);
      await page.evaluate(() => history.back());
      await page.getByRole("button", { name: "Sign in" }).waitFor();
    });

    it("the console offers a viewer nothing that would be refused, and reception only visitors (section 24)", async () => {
      for (const name of ["Vic", "Desk"]) {
        await signInAs(name);
        await openBadge("alice");
        await fact("Person").getByText("alice").waitFor();
        expect(await page.getByRole("main").getByRole("button", { name: /…$/ }).count()).toBe(0);
        await view("visitors", "Visitors");
        if (name === "Vic") expect(await button("Invite").count()).toBe(0);
      }
      await button("Invite a visitor").waitFor();
      await button("Sign out").click();
      await page.getByText("You are signed out.").waitFor();
    });
  });

  describe("the day of a security manager", () => {
    it("the first view shows what needs attention, each with a link to its list", async () => {
      await tom.setBadgeEnd(number("ivan"), new Date(Date.now() + 3 * 24 * 3_600_000));
      await signInAs("Ann");
      const attention = page.getByRole("region", { name: "Needs attention" });
      await attention.getByRole("link", { name: "1 badge ends within a week" }).click();
      await row("ivan").waitFor();
      expect(await page.getByRole("row").count()).toBe(2);
      await page.goBack();
      await attention.getByRole("link", { name: "1 delivery has failed" }).click();
      await row("HTTP status 500").waitFor();
      await page.goBack();
      await page.getByRole("list").getByRole("link", { name: "Badges in use" }).click();
      await page.getByText("9 badges", { exact: true }).waitFor();
    });

    it("the console says in words when no numbers are left", async () => {
      const full = { name: "Full", range: { first: 17, last: 17 } };
      const { applicationId, applicationSecret } = await createApplication(service.homes, service.submit, full);
      const { origin: baseUrl } = service;
      await new DeviceClient({ baseUrl, applicationId, udid: "phone" }).requestBadge({ userId: "last" });
      const other = await context.newPage();
      await openPage(other, service);
      await signIn(other, applicationId, applicationSecret);
      await other.locator(".urgent").getByText("No badge numbers are left").waitFor();
      await other.close();
    });

    it("a search finds a badge by its number or a part of its user ID in any case, and stays in the address", async () => {
      await view("badges", "Badges");
      const search = async (text: string) => {
        await page.getByLabel("Badge number, or part of").fill(text);
        await page.keyboard.press("Enter");
      };
      await search("ALI");
      await page.waitForURL(/#badges\?q=ALI/);
      await row("bob").waitFor({ state: "detached" });
      await row("alice").waitFor();
      expect(await page.getByRole("row").count()).toBe(2);
      await search(".");
      await page.getByText("at least two characters").waitFor();
      await search("..");
      await page.getByText("No badge matches").first().waitFor();
      await search(number("carol").replace(/(\d{3})$/, "-$1"));
      await fact("Person").getByText("carol").waitFor();
      // A late response opens nothing when the user is elsewhere.
      const { promise: isLate, resolve: goOn } = Promise.withResolvers<void>();
      const late = `**/v1/badges/${number("bob")}`;
      await page.route(late, (route) => isLate.then(() => route.continue()));
      await view("badges", "Badges");
      await search(number("bob"));
      await view("blocked", "Blocked people");
      const response = page.waitForResponse(late);
      goOn();
      await (await response).finished();
      await page.waitForTimeout(300);
      expect(page.url()).toContain("#blocked");
      await page.unroute(late);
      await view("person?user=..", "..");
      await page.getByText("No user can have this ID.").waitFor();
    });

    it("the console marks an ID that only looks like another, also for screen readers", async () => {
      await view("badges?q=heidi", "Badges");
      await row("heidi").getByText("␣").waitFor();
      expect(await row("heidi").getByRole("link").first().innerText()).toContain("contains a blank");
    });

    it("a badge is suspended from a row's menu with a reason, which is in the history, and the suspension is undone", async () => {
      await view("badges", "Badges");
      await choose("bob", "Suspend…");
      await dialog().getByLabel("Reason").fill("Phone\tlost");
      expect(await signed("bob")).toBe("200");
      await confirm("Suspend badge");
      await notice("is suspended.");
      expect(await signed("bob")).toBe("403 SUSPENDED_BADGE");
      await row("bob").getByText("Suspended").waitFor();
      await row("bob").getByText("Ann").waitFor();
      await undo();
      await notice("is as it was");
      expect(await signed("bob")).toBe("200");
      await openBadge("bob");
      await row("Badge suspended").getByText("Phone lost").waitFor();
      await row("Badge resumed").getByText("Ann").waitFor();
    });

    it("start and end are set in the user's time zone, and a past end ends a badge at once", async () => {
      await openBadge("carol");
      await step("Change start or end");
      await dialog().getByLabel("Until").fill("2040-01-31T18:00");
      await confirm("Save");
      await fact("Ends").getByText("31 Jan 2040, 18:00").waitFor();
      expect(await tom.getBadge(number("carol"))).toMatchObject({ expiresAt: "2040-01-31T09:00:00.000Z" });
      await step("Change start or end");
      await dialog().getByLabel("Until").fill("2020-01-01T12:00");
      await dialog().getByText("the badge ends at once").waitFor();
      await confirm("Save");
      await fact("State").getByText("Expired").waitFor();
      expect(await signed("carol")).toBe("403 EXPIRED_BADGE");
      await undo();
      await fact("Ends").getByText("31 Jan 2040, 18:00").waitFor();
      const { expiresAt } = await tom.setBadgeEnd(number("carol"), "2040-01-31T09:00:30.500Z");
      await step("Change start or end");
      await dialog().getByLabel("From").fill("2030-01-01T08:00");
      await confirm("Save");
      await notice("starts 1 Jan 2030, 08:00");
      expect((await tom.getBadge(number("carol"))).expiresAt, "nobody touched it").toBe(expiresAt);
      await undo();
      await notice("is as it was");
    });

    it("the console warns that a revocation is final, and offers no action afterwards", async () => {
      await openBadge("dave");
      await step("Revoke");
      await dialog().getByText("This cannot be undone.").waitFor();
      await confirm("Cancel");
      expect(await signed("dave")).toBe("200");
      await step("Revoke");
      await confirm("Revoke badge");
      await page.getByText("This badge has ended for good.").waitFor();
      expect(await signed("dave")).toBe("403 REVOKED_BADGE");
      expect(await button("Undo").count()).toBe(0);
      await view("badges?state=revoked", "Badges");
      await row("dave").waitFor();
    });

    it("people are blocked, listed, unblocked and erased, also without a badge", async () => {
      await view("person?user=erin", "erin");
      await step("Block");
      await confirm("Block person");
      await notice("erin is blocked; 1 badge revoked.");
      const loseResponse = (what: string) =>
        page.route(`**/v1/users/**/${what}`, (route) => route.fetch().then(() => route.abort()), { times: 1 });
      await issue("judy");
      await view("person?user=judy", "judy");
      await step("Block");
      await loseResponse("block");
      await confirm("Block person");
      await notice("judy is blocked; no badge is left in use.");
      await tom.unblockUser("judy");
      await step("Erase");
      await dialog().getByLabel("To confirm, type the user ID").fill("judy");
      await loseResponse("erase");
      await confirm("Erase for good");
      await page.getByRole("heading", { name: "Badges", level: 1 }).waitFor();
      await notice("The person is erased.");
      await view("blocked", "Blocked people");
      await row("erin").waitFor();
      await page.getByText("Block somebody who has no badge yet").click();
      await page.getByLabel("User ID").fill("mallory");
      await step("Block");
      await confirm("Block person");
      await row("mallory").waitFor();
      await choose("erin", "Unblock…");
      await confirm("Unblock person");
      await row("erin").waitFor({ state: "detached" });
      await page.getByText("1 person", { exact: true }).waitFor();
      expect(await tom.getUser("erin")).toMatchObject({ blocked: false });
      await view("person?user=frank", "frank");
      await step("Erase");
      await dialog().getByText("1 badge in use: revoked now.").waitFor();
      expect(await dialog().getByLabel("Reason").count(), "it would name the person again").toBe(0);
      await confirm("Erase for good");
      await dialog().getByRole("alert").getByText("That is not the user ID.").waitFor();
      expect(await tom.getBadge(number("frank"))).toMatchObject({ userId: "frank", state: "active" });
      await dialog().getByLabel("To confirm, type the user ID").fill("frank");
      await confirm("Erase for good");
      await page.getByRole("heading", { name: /^erased:/, level: 1 }).waitFor();
      await notice("The person is erased from 1 badge.");
      expect((await tom.getBadge(number("frank"))).userId).toMatch(/^erased:/);
    });

    it("a list is saved as CSV completely, and no cell is a formula", async () => {
      // Where a comma is the decimal sign, spreadsheets split lines at semicolons.
      numbers.set("a;=1+1", await issue("a;=1+1"));
      await tom.setBadgeTimes(number("a;=1+1"), { startsAt: "2040-01-01T08:00:00.000Z" });
      await view("badges?state=active", "Badges");
      await row("alice").waitFor();
      const csv = await saveAsCsv();
      expect(csv.split("\r\n")[0]).toBe("\ufeffPerson,Name,Number,State,Issued,Starts,Ends,Last change,Changed by");
      expect(csv).toContain(`alice,,${number("alice")},Active,`);
      const times = "[^,]+,2040-01-01T08:00:00.000Z,,[^,]+";
      expect(csv).toMatch(new RegExp(`a;'=1\\+1,,${number("a;=1+1")},Not begun,${times},Signed in here: Tom\r`));
      expect(csv).not.toContain("dave");
    });

    it("the history and its CSV show who vouches for each actor", async () => {
      const { applicationId, applicationSecret, origin: baseUrl } = service;
      const server = new ServerClient({ baseUrl, applicationId, applicationSecret });
      const id = number("carol");
      await tom.suspendBadge(id);
      await server.resumeBadge(id, { actor: "Tom" });
      await server.suspendBadge(id, { actor: "Administrator: Root" });
      await server.resumeBadge(id);
      await view(`history?badge=${id}`, "History");
      await row("Badge suspended").first().waitFor();
      const cells = await page.getByRole("row").locator("td:nth-of-type(2)").allInnerTexts();
      const shown = cells.map((cell) => cell.replaceAll(/\s+/g, " "));
      const statement = "The application's server which says:";
      expect(shown.slice(0, 4)).toEqual([
        "The application's server",
        `${statement} Administrator: Root`,
        `${statement} Tom`,
        "Tom signed in here",
      ]);
      const csv = await saveAsCsv();
      expect(csv).toContain(`"The application's server, which says: Administrator: Root"`);
      expect(csv).toContain("Signed in here: Tom");
      expect(csv).toContain(`badge:rescheduled,Signed in here: Ann,carol,,"{""startsAt"":null,`);
    });

    it("the console shows deliveries with problems and why one failed, and sends it again", async () => {
      await view("deliveries", "Deliveries");
      await choose("HTTP status 500", "Payload and response");
      await dialog().getByText("disk full").waitFor();
      await confirm("Close");
      isBroken = false;
      // It answers after the console has looked for the first time how it went.
      mayAnswer = page
        .waitForResponse((response) => /state=pending&per_page=200/.test(response.url()))
        .then(() => view("deliveries?state=all", "Deliveries"));
      await choose("HTTP status 500", "Send again");
      await notice("“Badge issued” was sent again: the receiver has confirmed it.");
      await row("The receiver has confirmed it.").first().waitFor();
      await view("deliveries", "Deliveries");
      await page.getByText("No problems").waitFor();
    });
  });

  describe("two people at once", () => {
    it("a dialog says who changed the badge meanwhile, when and how, and leaves the choice", async () => {
      await openBadge("alice");
      await step("Suspend");
      await dialog().getByText("The phone is refused").waitFor();
      await tom.setBadgeEnd(number("alice"), "2041-01-01T00:00:00Z", { reason: "New contract" });
      await confirm("Suspend badge");
      await dialog()
        .getByText(/^Tom changed this badge at \d\d:\d\d: start or end changed\./)
        .waitFor();
      expect(await tom.getBadge(number("alice"))).toMatchObject({ state: "active" });
      await confirm("Suspend badge anyway");
      await notice("is suspended.");
      await tom.resumeBadge(number("alice"));
      await undo();
      await notice(/^Not undone\. Tom changed this badge at .*: badge resumed\. It is active now\./);
    });

    it("a dialog no longer offers a change that has become impossible", async () => {
      await openBadge("bob");
      await step("Suspend");
      await dialog().getByText("The phone is refused").waitFor();
      await tom.revokeBadge(number("bob"));
      await confirm("Suspend badge");
      await dialog()
        .getByText(/Tom changed this badge .*badge revoked/)
        .waitFor();
      expect(await dialog().getByRole("button").allInnerTexts()).toEqual(["Close"]);
      await confirm("Close");
    });

    it("the page reloads its data when the user comes back to it, and a dialog on it says who changed the badge", async () => {
      const comeBack = async () => {
        await page.clock.runFor(5000);
        await page.evaluate(() => dispatchEvent(new Event("focus")));
      };
      await page.clock.install();
      await signInAs("Ann");
      await openBadge("ivan");
      await fact("State").getByText("Active").waitFor();
      await tom.suspendBadge(number("ivan"));
      await comeBack();
      await fact("State").getByText("Suspended").waitFor();
      await row("Badge suspended").getByText("Tom").waitFor();
      await step("Change start or end");
      await dialog().getByRole("button", { name: "Save", exact: true }).waitFor();
      await tom.setBadgeEnd(number("ivan"), "2042-01-01T00:00:00Z");
      await comeBack();
      await dialog()
        .getByText(/^Tom changed this badge at \d\d:\d\d: start or end changed\./)
        .waitFor();
      await dialog().getByRole("button", { name: "Save anyway" }).waitFor();
      expect(await dialog().getByLabel("Until").inputValue()).toBe("2042-01-01T09:00");
      await confirm("Cancel");
    });
  });

  describe("a visitor", () => {
    const passOf = (name: string) => page.getByRole("article", { name: `Pass of ${name}` });
    const pass = () => passOf("Walt Visitor");

    async function invite(name: string, { times, userId = "" }: { times?: string; userId?: string }): Promise<void> {
      await press("Invite a visitor");
      await page.getByLabel("Visitor's name").fill(name);
      await page.getByLabel(/^User ID/).fill(userId);
      if (times !== undefined) await press(times);
      await press("Invite");
    }

    it("a visitor gets a pass whose code opens the configured link, and a badge with name, start and end (section 24)", async () => {
      await signInAs("Desk");
      await view("visitors", "Visitors");
      await press("Invite a visitor");
      await page.getByLabel("Visitor's name").fill("Walt Visitor");
      await page.getByLabel("Host").fill("Tom Berg");
      await press("Tomorrow, 8:00 to 18:00");
      await press("Invite");
      await pass().getByText("visits Tom Berg").waitFor();
      await pass().getByText("18:00 GMT+9").first().waitFor();
      const scanned = await scan(pass().getByRole("img", { name: "QR code" }));
      expect(scanned).toMatch(/^https:\/\/app\.example\.com\/visit\/inv_/);
      await pass().getByText(scanned, { exact: true }).waitFor();
      await button("Copy link").click();
      await page.getByText("Copied.").waitFor();
      expect(await page.evaluate(() => navigator.clipboard.readText())).toBe(scanned);
      const mail = page.getByRole("link", { name: "Mail" });
      const message = decodeURIComponent((await mail.getAttribute("href")) ?? "");
      expect(message).toMatch(/From .* 08:00 GMT\+9 until .* 18:00 GMT\+9\.\nOpen this on your phone by .* GMT\+9: h/);
      expect(message).toContain(scanned);
      const asked: string[] = [];
      page.on("dialog", (question) => {
        asked.push(question.type());
        void question.dismiss();
      });
      await mail.click();
      await button("Copy link").click();
      expect(asked).toEqual([]);
      // In any view, the code is not lost without a question.
      await view("today", "Today");
      await page.evaluate(() => location.assign("/docs"));
      await until(() => expect(asked).toEqual(["beforeunload"]));
      await button("Sign out").click();
      await confirm("Cancel");
      await view("visitors", "Visitors");
      await pass().waitFor();
      const invitationToken = scanned.replace("https://app.example.com/visit/", "");
      const { badgeId, created } = await phone("walt").requestBadge({ userId: "walt", invitationToken });
      expect(created).toBe(true);
      expect(await signed("walt")).toBe("403 EARLY_BADGE");
      const badge = await tom.getBadge(badgeId);
      expect(badge.name).toBe("Walt Visitor");
      expect(badge.startsAt).toMatch(/T23:00:00\.000Z$/); // 8:00 in Tokyo
      expect(badge.expiresAt).toMatch(/T09:00:00\.000Z$/);
    });

    it("printing a pass prints only the pass, on one page", async () => {
      await page.emulateMedia({ media: "print" });
      expect(await pass().isVisible()).toBe(true);
      for (const hidden of [page.getByRole("button"), page.getByRole("link"), page.getByRole("table")]) {
        expect(await hidden.filter({ visible: true }).count()).toBe(0);
      }
      const pdf = (await page.pdf({ format: "A4" })).toString("latin1");
      expect(pdf.match(/\/Type\s*\/Page\b/g)).toHaveLength(1);
      await page.emulateMedia({ media: "screen" });
    });

    it("a pass on the screen says that its invitation was revoked", async () => {
      await press("Done");
      await invite("Walt Visitor", { times: "For a week" });
      await page.locator(".invite-place").getByRole("button", { name: "Revoke…" }).click();
      await confirm("Revoke invitation");
      await pass().getByText("Revoked: this code gives nobody a badge any more.").waitFor();
      // The list is another day's, so it does not say so again.
      await view("today", "Today");
      await view("visitors?day=tomorrow&state=claimed", "Visitors");
      await pass().getByText("Revoked: this code gives nobody a badge any more.").waitFor();
      expect(await pass().getByRole("img").count()).toBe(0);
      await view("visitors", "Visitors");
      await button("Done").click();
    });

    it("a visitor without an end gets the same pass when the first response was lost", async () => {
      await page.route("**/v1/invitations", async (route) => {
        await route.fetch();
        await route.abort();
      });
      await invite("Una Lost", { times: "No end" });
      await page.getByRole("alert").getByText("Check your connection, then try again.").waitFor();
      await page.unroute("**/v1/invitations");
      await press("Invite");
      await passOf("Una Lost").waitFor();
      await button("Done").click();
      await row("Una Lost").waitFor();
      expect(await row("Una Lost").count()).toBe(1);
    });

    it("passes that arrive after their form was closed are shown together, and signing out asks from the call on (section 24)", async () => {
      await signInAs("Desk");
      await view("visitors", "Visitors");
      const waiting: (() => void)[] = [];
      await page.route("**/v1/invitations", (route) => void waiting.push(() => void route.continue()));
      await invite("Nina Closed", {});
      await until(() => expect(waiting).toHaveLength(1));
      await button("Cancel").click();
      await invite("Otto Away", {});
      await until(() => expect(waiting).toHaveLength(2));
      await view("today", "Today");
      await button("Sign out").click();
      await dialog().getByText("They are shown only now").waitFor();
      await confirm("Cancel");
      await view("visitors", "Visitors");
      for (const goOn of waiting) goOn();
      await passOf("Nina Closed").waitFor();
      await passOf("Otto Away").waitFor();
      await page.unroute("**/v1/invitations");
      await button("Done").click();
      await page.getByRole("button", { name: "Invite a visitor" }).waitFor();
    });

    it("if nobody could be invited, the form stays as it was with the reasons, and nothing is lost by signing out", async () => {
      // As a cell is pasted from a spreadsheet.
      await invite("Tab\tby Cell", { userId: ".." });
      await page.getByRole("alert").getByText("Tab by Cell: That cannot be a user ID.").waitFor();
      expect(await page.getByText("0 passes").count()).toBe(0);
      expect(await page.getByLabel("Visitor's name").inputValue()).toContain("by Cell");
      await page.getByLabel(/^User ID/).fill("");
      await press("Invite");
      await passOf("Tab by Cell").waitFor();
      await button("Done").click();
      await invite("Tab by Cell", { userId: ".." });
      await page.getByRole("alert").waitFor();
      await button("Sign out").click();
      await page.getByText("You are signed out.").waitFor();
    });
  });

  describe("everybody", () => {
    const AFTER_AN_HOUR = "You were signed out after an hour without activity.";
    /** The name of the element with the focus. */
    const focused = () =>
      page.locator(":focus").evaluateAll(([element]) => {
        const label = element instanceof HTMLInputElement ? element.labels?.[0] : element;
        return (element?.getAttribute("aria-label") ?? label?.textContent ?? "").trim();
      });
    const focusOn = (name: string | RegExp) =>
      until(async () => expect(await focused()).toEqual(typeof name === "string" ? name : expect.stringMatching(name)));

    it("the console works by keyboard alone and never loses the focus: sign in, find, suspend, undo, sign out", async () => {
      await openPage(page, service);
      const { keyboard: keys } = page;
      /** Goes on to the element of this name. */
      const tabTo = async (name: RegExp) => {
        for (let steps = 0; steps < 80; steps++) {
          await keys.press("Tab");
          if (name.test(await focused())) return;
        }
        throw new Error(`Tab does not come to ${name}`);
      };
      await tabTo(/^Skip to the content$/);
      await keys.press("Enter");
      await focusOn("Sign in");
      await tabTo(/^Application ID/);
      await keys.type(service.applicationId);
      await tabTo(/^Secret/);
      await keys.type(secrets.get("Ann") ?? "");
      await keys.press("Enter");
      await page.getByText("Needs attention").waitFor();
      await focusOn("Today");
      await tabTo(/^Badges$/);
      await keys.press("Enter");
      await page.getByRole("heading", { name: "Badges", level: 1 }).waitFor();
      await tabTo(/^Badge number/);
      await keys.type("grace");
      await keys.press("Enter");
      await row("grace").waitFor();
      await tabTo(/^Actions: badge \d+, grace/);
      await keys.press("Enter");
      await focusOn("Open");
      await keys.press("ArrowDown");
      await focusOn("Suspend…");
      await keys.press("Escape");
      await focusOn(/^Actions/);
      await keys.press("Enter");
      await focusOn("Open");
      await keys.press("ArrowDown");
      await keys.press("Enter");
      await dialog().getByText("The phone is refused").waitFor();
      await tabTo(/^Suspend badge$/);
      await keys.press("Enter");
      await notice("is suspended.");
      expect(await signed("grace")).toBe("403 SUSPENDED_BADGE");
      await focusOn(/is suspended\.$/);
      await keys.press("Tab");
      await focusOn("Undo");
      await keys.press("Enter");
      await notice("is as it was");
      expect(await signed("grace")).toBe("200");
      await tabTo(/^Sign out$/);
      await keys.press("Enter");
      await page.getByText("You are signed out.").waitFor();
      await focusOn(/^You are signed out\./);
    });

    it("a second Enter, or one that is held down, confirms nothing final", async () => {
      await signInAs("Ann");
      await openBadge("grace");
      const calls: string[] = [];
      page.on("request", (request) => request.method() !== "GET" && calls.push(request.url()));
      const { keyboard: keys } = page;
      await page.getByRole("main").getByRole("button", { name: "Revoke…" }).focus();
      await keys.press("Enter");
      await dialog().getByRole("button", { name: "Revoke badge" }).waitFor();
      await keys.press("Enter");
      await keys.press("Escape");
      // The focus returns before the page has heard that the dialog is closed.
      await dialog().waitFor({ state: "detached" });
      await page.locator("button:focus", { hasText: "Revoke…" }).waitFor();
      await keys.down("Enter");
      await dialog().getByRole("button", { name: "Revoke badge" }).waitFor();
      await dialog().getByLabel("Reason").focus();
      await keys.down("Enter");
      await keys.up("Enter");
      await confirm("Cancel");
      await button("Refresh").click();
      expect([calls, (await tom.getBadge(number("grace"))).state]).toEqual([[], "active"]);
    });

    it("the focus stays when what had it is gone: after a search, its end, and other steps", async () => {
      const pressEnter = (name: string) =>
        page
          .getByRole("button", { name, exact: true })
          .or(page.getByRole("link", { name, exact: true }))
          .press("Enter");
      for (const [hash, title, label] of [
        ["badges", "Badges", "Badge number, or part of a user ID or name"],
        ["visitors", "Visitors", "Search by name or user ID"],
      ] as const) {
        await view(hash, title);
        await page.getByLabel(label).fill("al");
        await page.getByLabel(label).press("Enter");
        await page.getByRole("link", { name: "Clear the search" }).waitFor();
        await focusOn(label);
        await pressEnter("Clear the search");
        await page.getByRole("link", { name: "Clear the search" }).waitFor({ state: "detached" });
        await focusOn(title);
        expect(await page.getByLabel(label).inputValue()).toBe("");
      }
      await button("Invite up to 100 from a list").click();
      await page.getByLabel("Visitors, one on each line").fill("Fay");
      await pressEnter("Check the list");
      await pressEnter("Back to the list");
      await focusOn("Visitors");
      await page.getByLabel("Visitors, one on each line").fill("Fay");
      await pressEnter("Check the list");
      await pressEnter("Invite 1 visitor");
      await pressEnter("Done");
      await focusOn("Visitors");
      await view("badges", "Badges");
      await page.getByLabel("Select all that are shown").check();
      await pressEnter("Clear the selection");
      await focusOn("Badges");
      await view("history", "History");
      await page.getByLabel("Done by").fill("Ann");
      await pressEnter("Show");
      await page.getByRole("link", { name: "Show all" }).waitFor();
      await focusOn("Show");
      await pressEnter("Show all");
      await page.getByRole("link", { name: "Show all" }).waitFor({ state: "detached" });
      await focusOn("History");
    });

    it("no view has an axe-core violation, light on a desktop and dark on a phone, and all fit both", async () => {
      const looks = [
        // By default what depends on the colours: the other rules see the elements of the desktop again.
        ["dark", PHONE, byEffort(["color-contrast"], undefined)],
        ["light", DESKTOP, undefined],
      ] as const;
      const faults: string[] = [];
      const look = async (name: string) => {
        for (const [theme, viewport, rules] of looks) {
          await page.setViewportSize(viewport);
          await page.emulateMedia({ colorScheme: theme });
          for (const fault of await faultsOf(page, "html", rules)) faults.push(`${name}, ${theme}: ${fault}`);
          const width = await page.evaluate(() => document.documentElement.scrollWidth);
          if (width > viewport.width) faults.push(`${name}: ${width} px wide instead of ${viewport.width}`);
        }
      };
      await openPage(page, service);
      await look("sign-in");
      await signInAs("Ann");
      await page.getByText("Counted").waitFor();
      await look("today");
      for (const [hash, title, shown] of [
        ["badges", "Badges", "alice"],
        ["visitors", "Visitors", "Walt Visitor"],
        ["blocked", "Blocked people", "mallory"],
        ["history", "History", "Visitor invited"],
        ["deliveries?state=all", "Deliveries", "The receiver has confirmed it."],
        ["badges?q=li&state=all", "Badges", "the person with exactly the user ID"],
        ["access", "Access", "Operator: may do everything here"],
        ["figures", "Figures", "Numbers left"],
        [`badge?id=${number("alice")}`, "Badge", "Bound to the phone's key"],
        ["person?user=mallory", "mallory", "Person blocked"],
      ] as const) {
        await view(hash, title);
        await page.getByText(shown).filter({ visible: true }).first().waitFor();
        await look(hash);
      }
      await view("visitors", "Visitors");
      for (const form of ["Invite a visitor", "Invite up to 100 from a list"]) {
        await page.getByRole("button", { name: form }).click();
        await look(form);
        await button("Cancel").click();
      }
      await view("badges", "Badges");
      await openMenu("alice");
      await look("menu");
      await page.getByRole("menuitem", { name: "Change start or end" }).click();
      await dialog().getByLabel("Until").waitFor();
      await look("dialog");
      await confirm("Cancel");
      await page.getByLabel("Select all that are shown").check();
      await button("Change end…").click();
      await dialog().getByLabel("Until").waitFor();
      await look("dialog of many");
      await confirm("Cancel");
      expect(faults).toEqual([]);
    });

    it("the bars of charts are visible in forced colours", async () => {
      await page.emulateMedia({ forcedColors: "active" });
      await view("figures", "Figures");
      const bar = page.getByRole("table", { name: "Badges by state" }).getByRole("cell").first();
      const [drawn, behind] = await bar.evaluate((cell) =>
        [getComputedStyle(cell), getComputedStyle(document.body)].map((style) => style.backgroundColor),
      );
      expect(drawn).not.toBe(behind);
      await page.emulateMedia({ forcedColors: null });
    });

    it("the console stops loading a long list when the user leaves the view", async () => {
      let requests = 0;
      await page.route("**/v1/badges?**", (route) => {
        requests++;
        return route.fulfill({ json: { badges: [] }, headers: { "pagination-cursor": "more" } });
      });
      await view("badges?q=nobody", "Badges");
      await until(() => expect(requests).toBeGreaterThan(3));
      await view("blocked", "Blocked people");
      await page.getByText("mallory").waitFor();
      requests = 0;
      await page.waitForTimeout(300);
      expect(requests).toBeLessThan(2);
      await page.unroute("**/v1/badges?**");
    });

    it("the console shows a message while the service does not respond, and then continues", async () => {
      await page.route("**/v1/badges?**", (route) => route.abort());
      await view("today", "Today");
      await page.getByText("Badges that end soon could not be counted.").waitFor();
      expect(await page.getByText("Nothing needs your attention.").count()).toBe(0);
      await view("badges?state=active", "Badges");
      await page.getByRole("alert").getByText("Check your connection, then try again.").waitFor();
      await page.unroute("**/v1/badges?**");
      await button("Try again").click();
      await row("alice").waitFor();
      expect(await page.getByRole("alert").count()).toBe(0);
    });

    it("the console signs out when the secret is no longer accepted, and after an idle hour, not before", async () => {
      await page.route("**/v1/history?**", (route) =>
        route.fulfill({ status: 401, json: { error: "INVALID_CREDENTIALS" } }),
      );
      await page.evaluate(() => void location.assign("#history"));
      await page.getByText("The service no longer accepts your secret.").waitFor();
      await page.unroute("**/v1/history?**");
      await signInAs("Ann");
      await page.clock.runFor(59 * 60_000);
      await page.keyboard.press("Shift");
      await page.clock.runFor(59 * 60_000);
      await button("Sign out").waitFor();
      await page.clock.runFor(2 * 60_000);
      await page.getByText(AFTER_AN_HOUR).waitFor();
      expect(await button("Sign out").count()).toBe(0);
    });

    it("the console signs out after the computer slept for an hour, before any key counts, even if its clock was set back", async () => {
      const setClock = async (minutes: number) =>
        page.clock.setSystemTime(await page.evaluate((by) => Date.now() + by * 60_000, minutes));
      await signInAs("Ann");
      await setClock(61);
      await page.keyboard.press("Shift");
      await page.getByText(AFTER_AN_HOUR).waitFor();
      await signInAs("Ann");
      await setClock(-24 * 60);
      await page.clock.runFor(59 * 60_000);
      await button("Sign out").waitFor();
      await page.clock.runFor(2 * 60_000);
      await page.getByText(AFTER_AN_HOUR).waitFor();
    });

    it("the console causes no message in the browser's console and no request to another host", () => {
      expect(conduct).toEqual({ foreignRequests: [], complaints: [] });
    });
  });
});
