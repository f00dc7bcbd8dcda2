import { createServer } from "node:http";
import type { BrowserContext, Page } from "playwright-core";
import { afterAll, beforeAll, describe, expect, it } from "vitest";
import { createApplication } from "../../src/admin/application/create.ts";
import { updateApplication } from "../../src/admin/application/update.ts";
import { addConsoleSecret } from "../../src/admin/secret/secrets.ts";
import { ServerClient } from "../../src/client/index.ts";
import { until } from "../support/until.ts";
import { browserOfFile, HAS_CHROMIUM, isFailedLoad, LIMIT, signIn } from "./support/browser.ts";
import { consoleSteps, openConsole } from "./support/console-page.ts";
import { type Harness, startHarness } from "./support/harness.ts";
import { listen } from "./support/listen.ts";
import { scan } from "./support/scan.ts";

const HOUR = 3_600_000;
const DAY = 24 * HOUR;

/** The application's own receiver, which refuses everything until it is repaired. */
const receiver = createServer((_, response) => void response.writeHead(isBroken ? 500 : 204).end());
let isBroken = true;

const { openContext, conduct } = browserOfFile(isFailedLoad);
let service: Harness;
let tom: ServerClient;
let annsSecret: string;

beforeAll(async () => {
  service = await startHarness({ webhookUrl: `${await listen(receiver)}/hooks` });
  const { origin: baseUrl, applicationId, database } = service;
  const actor = { kind: "administrator", name: "Root" } as const;
  const add = async (name: string) =>
    (await addConsoleSecret(database, applicationId, { name, role: "operator" }, actor)).applicationSecret;
  annsSecret = await add("Ann");
  tom = new ServerClient({ baseUrl, applicationId, applicationSecret: await add("Tom") });
}, LIMIT);

afterAll(() => void receiver.close());

/** Reception of a building, at its desk in Berlin. */
describe.skipIf(!HAS_CHROMIUM)(
  "a reception's morning at /console (contract sections 19, 23 and 24)",
  { timeout: LIMIT },
  () => {
    let context: BrowserContext;
    let page: Page;

    beforeAll(async () => {
      const viewport = { width: 1280, height: 900 };
      context = await openContext(service.origin, { timezoneId: "Europe/Berlin", viewport });
      page = await context.newPage();
      await openConsole(page, service, annsSecret);
    }, LIMIT);

    const { view, row, dialog, saveAsCsv } = consoleSteps(() => page);
    const rows = (table: string) => page.getByRole("table", { name: table }).locator("tbody tr");
    const firstCells = (table: string) => rows(table).locator("th").allInnerTexts();
    const shows = async (table: string, names: readonly string[]) =>
      until(async () => expect((await firstCells(table)).map((text) => text.split("\n")[0])).toEqual(names));

    describe("visitors", () => {
      beforeAll(async () => {
        const visit = (name: string, from: number, hours: number, userId?: string) =>
          tom.createInvitation({
            ...{ udid: "desk", name, userId, expiresAt: new Date(from + hours * HOUR) },
            badgeStartsAt: new Date(from),
            badgeExpiresAt: new Date(from + hours * HOUR),
          });
        const now = Date.now();
        await visit("Late Today", now + 60_000, 1 / 30);
        await visit("Early Today", now - HOUR, 2, "early");
        // Thirty hours ahead is tomorrow or the day after it, never today.
        await visit("Not Today", now + 30 * HOUR, 1);
      }, LIMIT);

      it("today's visitors are listed in order of arrival with totals, and found by name on any day, the next ones first", async () => {
        await view("visitors", "Visitors");
        await shows("invitations", ["Early Today", "Late Today"]);
        await page.getByText("2 visitors expected: 0 with a pass on the phone, 2 without.").waitFor();
        await page.getByLabel("Search by name or user ID").fill("NOT TO");
        await page.getByRole("button", { name: "Search", exact: true }).click();
        await shows("invitations", ["Not Today"]);
        await page.getByLabel("Search by name or user ID").fill("today");
        await page.getByRole("button", { name: "Search", exact: true }).click();
        await shows("invitations", ["Early Today", "Late Today", "Not Today"]);
        await page.getByRole("link", { name: "Clear the search" }).click();
        const day = new Intl.DateTimeFormat("sv-SE", { timeZone: "Europe/Berlin" }).format(Date.now() + 30 * HOUR);
        await page.getByLabel("A day").fill(day);
        await shows("invitations", ["Not Today"]);
        expect(page.url()).toContain(`day=${day}`);
        await page.getByRole("link", { name: "All", exact: true }).click();
        await shows("invitations", ["Not Today", "Early Today", "Late Today"]);
      });

      it("a pasted list of visitors is refused for an unknown column, and previewed with its times before anything is sent", async () => {
        const posts: string[] = [];
        page.on("request", (request) => request.method() === "POST" && posts.push(request.url()));
        await view("visitors", "Visitors");
        await page.getByRole("button", { name: "Invite up to 100 from a list" }).click();
        const list = page.getByLabel("Visitors, one on each line");
        await list.fill("Name\tFirma\nGreta\tACME");
        await page.getByRole("button", { name: "Check the list" }).click();
        await page.getByRole("alert").getByText("The column “Firma” is not known.").waitFor();
        await list.fill(
          "Besucher;Von;Bis;Gastgeber\nGreta Gast;31.01.2030 9:00;31.01.2030 17:00;Tom Berg\nHans Heute;;;",
        );
        await page.getByRole("button", { name: "Check the list" }).click();
        await shows("Visitors to invite", ["Greta Gast", "Hans Heute"]);
        await row("Greta Gast").getByText("31 Jan 2030, 09:00").waitFor();
        await row("Greta Gast").getByText("31 Jan 2030, 17:00").waitFor();
        await row("Hans Heute").getByText("at once").waitFor();
        expect(posts).toEqual([]);
        await page.getByRole("button", { name: "Back to the list" }).click();
        expect(await list.inputValue()).toContain("Hans Heute");
        await page.getByRole("button", { name: "Check the list" }).click();
        await page.getByRole("button", { name: "Invite 2 visitors" }).click();
        await page.getByRole("article", { name: "Pass of Greta Gast" }).waitFor();
        expect(posts).toEqual([`${service.origin}/v1/invitations`]);
        const found = [];
        for await (const { name, badgeStartsAt } of tom.listInvitations({ q: "greta" }).invitations()) {
          found.push([name, badgeStartsAt]);
        }
        expect(found).toEqual([["Greta Gast", "2030-01-31T08:00:00.000Z"]]);
      });

      it("visitors' passes have codes that open the service's own page by default (section 27), and several fit on a printed page", async () => {
        const pass = page.getByRole("article", { name: "Pass of Hans Heute" });
        expect(await scan(pass.getByRole("img", { name: "QR code" }))).toMatch(
          new RegExp(`/pass#${service.applicationId}/inv_[\\w-]+$`),
        );
        await page.emulateMedia({ media: "print" });
        const pdf = (await page.pdf({ format: "A4" })).toString("latin1");
        expect(pdf.match(/\/Type\s*\/Page\b/g)).toHaveLength(1);
        await page.emulateMedia({ media: "screen" });
        await page.getByRole("button", { name: "Done" }).click();
      });

      it("a day is typed digit by digit", async () => {
        await tom.createInvitation({
          ...{ udid: "desk", name: "Mara March", expiresAt: new Date(Date.now() + HOUR) },
          ...{ badgeStartsAt: "2031-03-03T08:00:00Z", badgeExpiresAt: "2031-03-03T16:00:00Z" },
        });
        await view("visitors?day=all", "Visitors");
        await until(async () => expect(await page.getByLabel("A day").inputValue()).toBe(""));
        await page.getByLabel("A day").focus();
        // The browser's language decides whether the day or the month comes first.
        await page.keyboard.type("03032031");
        await shows("invitations", ["Mara March"]);
        expect(page.url()).toContain("day=2031-03-03");
      });

      it("a new pass is not shown as revoked because an earlier visitor's with its number was, but when it is itself", async () => {
        const one = { name: "One number", range: { first: 19, last: 19 } };
        const { applicationId, applicationSecret } = await createApplication(service.homes, service.submit, one);
        const server = new ServerClient({ baseUrl: service.origin, applicationId, applicationSecret });
        const earlier = { udid: "desk", name: "Early Ed", expiresAt: new Date(Date.now() + HOUR) };
        await server.revokeInvitation((await server.createInvitation(earlier)).id);
        const desk = await context.newPage();
        await desk.goto(`${service.origin}/console#visitors`);
        await signIn(desk, applicationId, applicationSecret);
        await desk.getByRole("row").filter({ hasText: "Early Ed" }).waitFor();
        const pass = (name: string) => desk.getByRole("article", { name: `Pass of ${name}` });
        const inviteOne = async (name: string, times: string) => {
          await desk.getByRole("button", { name: "Invite a visitor" }).click();
          await desk.getByLabel("Visitor's name").fill(name);
          await desk.getByRole("button", { name: times }).click();
          const isReloaded = desk.waitForResponse((response) => response.url().includes("/v1/invitations?"));
          await desk.getByRole("button", { name: "Invite", exact: true }).click();
          await pass(name).waitFor();
          // Without the marks that odd characters have.
          expect(await pass(name).getByRole("heading").innerText()).toBe(name);
          await isReloaded;
          await desk.waitForTimeout(300);
          expect(await pass(name).getByText("Revoked").count()).toBe(0);
        };
        await inviteOne("Wanda Week", "For a week");
        await server.revokeInvitation("19");
        await desk.getByRole("button", { name: "Refresh" }).click();
        await pass("Wanda Week").getByText("Revoked").waitFor();
        // Her number is the next visitor's, whose invitation is not revoked with hers.
        const { id: next } = await server.createInvitation({ ...earlier, name: "Next Ned" });
        await desk.locator(".invite-place").getByRole("button", { name: "Revoke…" }).click();
        const question = desk.getByRole("dialog");
        await question.getByRole("button", { name: "Revoke invitation" }).click();
        await question.waitFor({ state: "detached" });
        for await (const { invitations } of server.listInvitations({ state: "pending" })) {
          expect(invitations.map(({ name }) => name)).toEqual(["Next Ned"]);
        }
        // Nor is the one after him revoked with his row of a list that is out of date.
        await desk.getByRole("button", { name: "Refresh" }).click();
        await desk.getByRole("button", { name: "Actions: invitation 19, Next Ned" }).click();
        await desk.getByRole("menuitem", { name: "Revoke…" }).click();
        await server.revokeInvitation(next);
        const { id: last } = await server.createInvitation({ ...earlier, name: "Last Lou" });
        await question.getByRole("button", { name: "Revoke invitation" }).click();
        await desk.getByText("The invitation has been revoked or has expired meanwhile.").waitFor();
        await desk.getByRole("row").filter({ hasText: "Last Lou" }).getByText("Waiting").waitFor();
        await server.revokeInvitation(last);
        await desk.getByRole("button", { name: "Done" }).click();
        // The list is today's, so it does not have this one.
        await inviteOne("สมศรี", "Tomorrow, 8:00 to 18:00");
        await server.revokeInvitation("19");
        await desk.getByRole("link", { name: "Tomorrow", exact: true }).click();
        await pass("สมศรี").getByText("Revoked").waitFor();
        // Its address alone would ask before it is left.
        await desk.getByRole("button", { name: "Done" }).click();
        await desk.close();
      });
    });

    describe("badges", () => {
      const numbers = new Map<string, string>();
      const number = (user: string) => numbers.get(user) ?? "";

      beforeAll(async () => {
        for (const user of ["kim-1", "kim-2", "kim-3", "kim-4", "lost"]) numbers.set(user, await service.issue(user));
        await tom.revokeBadge(number("lost"));
      }, LIMIT);

      it("a search also finds ended badges with their person, and a person without a badge", async () => {
        await view("badges", "Badges");
        await page.getByLabel("Badge number, or part of").fill("los");
        await page.getByRole("button", { name: "Search", exact: true }).click();
        await row("lost").getByText("Revoked").waitFor();
        await page.getByRole("link", { name: "the person with exactly the user ID “los”" }).waitFor();
        await page.locator(".found-people").getByRole("link", { name: "lost" }).click();
        await page.getByRole("heading", { name: "lost", level: 1 }).waitFor();
      });

      it("badges in all states are one list, with an exact total", async () => {
        await view("badges?state=all", "Badges");
        await page.getByText("5 badges", { exact: true }).waitFor();
        await row("lost").waitFor();
      });

      it("selected badges are suspended together, with an outcome for each; a badge that a colleague changed is skipped", async () => {
        await view("badges?q=kim", "Badges");
        await row("kim-4").waitFor();
        for (const user of ["kim-1", "kim-2", "kim-3"]) await page.getByLabel(`Select badge ${number(user)}`).check();
        await page.getByText("3 badges selected").waitFor();
        await tom.setBadgeEnd(number("kim-2"), new Date(Date.now() + 5 * DAY), { reason: "Contract" });
        await page.getByRole("button", { name: "Suspend…" }).click();
        await dialog().getByLabel("Reason").fill("Lost bag");
        await dialog().getByRole("button", { name: "Suspend 3 badges" }).click();
        await dialog().getByText("Done for 2 of 3 badges.").waitFor();
        await dialog()
          .getByText(/kim-2.*Left alone\. Tom changed this badge .*start or end changed\. It is active now\./)
          .waitFor();
        await dialog().getByRole("button", { name: "Close" }).click();
        await page.locator(".notice").getByText("2 of 3 badges are suspended.").waitFor();
        await row("kim-1").getByText("Suspended").waitFor();
        const states = await Promise.all(
          ["kim-1", "kim-2", "kim-3", "kim-4"].map((user) => tom.getBadge(number(user))),
        );
        expect(states.map(({ state }) => state)).toEqual(["suspended", "active", "suspended", "active"]);
      });

      it("a long list keeps its rows and their selection when it is reloaded twice, and after a failed reload", async () => {
        const badges = Array.from({ length: 120 }, (_, place) => ({
          ...{ id: String(place + 1), userId: `row-${place}`, state: "active" },
          ...{ issuedAt: "2027-01-01T00:00:00.000Z", changedAt: "2027-01-01T00:00:00.000Z" },
        }));
        let pages = 0;
        let isBroken = false;
        await page.route("**/v1/badges?**", (route) => {
          if (isBroken) return route.fulfill({ status: 400, json: { error: "INVALID_Q" } });
          pages++;
          const isSecond = route.request().url().includes("cursor=");
          const headers: Record<string, string> = isSecond ? {} : { "pagination-cursor": "more" };
          return route.fulfill({ json: { badges: isSecond ? badges.slice(100) : badges.slice(0, 100) }, headers });
        });
        const isKept = async (expected: number) => {
          await until(() => expect(pages).toBe(expected));
          await until(async () => expect(await rows("badges").count()).toBe(120));
          await page.getByText("1 badge selected").waitFor();
        };
        await view("badges?q=row-", "Badges");
        await page.getByRole("button", { name: "Show more badges" }).click();
        await page.getByLabel("Select badge 120, row-119").check();
        await isKept(2);
        const refresh = page.getByRole("button", { name: "Refresh" });
        await refresh.evaluate((button: HTMLButtonElement) => {
          button.click();
          button.click();
        });
        await isKept(5);
        isBroken = true;
        await refresh.click();
        await page.getByRole("alert").waitFor();
        isBroken = false;
        await page.getByRole("button", { name: "Try again" }).click();
        await isKept(7);
        await page.unroute("**/v1/badges?**");
      });

      it("selected badges get one end, which can be undone, or are revoked, after a dialog that names them", async () => {
        const { expiresAt: endOfKim2 } = await tom.getBadge(number("kim-2"));
        await view("badges?q=kim&state=active", "Badges");
        await shows("badges", ["kim-4", "kim-2"]);
        await page.getByLabel("Select all that are shown").check();
        await page.getByRole("button", { name: "Change end…" }).click();
        await dialog().getByLabel("Until").fill("2040-06-30T18:00");
        await dialog().getByRole("button", { name: "Change the end of 2 badges" }).click();
        await page.locator(".notice").getByText("2 badges have a new end.").waitFor();
        for (const user of ["kim-2", "kim-4"]) {
          expect((await tom.getBadge(number(user))).expiresAt).toBe("2040-06-30T16:00:00.000Z");
        }
        // It is undone where nobody has changed the badge since.
        await tom.setBadgeEnd(number("kim-4"), new Date("2041-01-01T00:00:00Z"));
        await page.locator(".notice").getByRole("button", { name: "Undo" }).click();
        await page.locator(".notice").getByText("Undone for 1 badge; 1 badge was left alone").waitFor();
        expect((await tom.getBadge(number("kim-2"))).expiresAt).toBe(endOfKim2);
        expect((await tom.getBadge(number("kim-4"))).expiresAt).toBe("2041-01-01T00:00:00.000Z");
        await view("badges?q=kim&state=suspended", "Badges");
        await shows("badges", ["kim-3", "kim-1"]);
        await page.getByLabel("Select all that are shown").check();
        await page.getByRole("button", { name: "Revoke…" }).click();
        await dialog().getByText("This cannot be undone.").waitFor();
        await dialog().getByRole("button", { name: "Revoke 2 badges" }).click();
        await until(async () => expect((await tom.getBadge(number("kim-1"))).state).toBe("revoked"));
      });

      it("the dialogs of a badge say what doors will do, by the present settings (sections 3 and 14)", async () => {
        const { homes, submit, applicationId } = service;
        /** The service and the page may have the settings of before for a while. */
        const says = async (text: string) => {
          const isSaid = async () => {
            await view("today", "Today");
            await view(`badge?id=${number("kim-4")}`, "Badge");
            await page.getByRole("button", { name: "Suspend…" }).click();
            const shown = dialog().getByText(text).waitFor({ timeout: 5000 });
            const isShown = await shown.then(
              () => true,
              () => false,
            );
            await dialog().getByRole("button", { name: "Cancel" }).click();
            return isShown;
          };
          while (!(await isSaid()));
        };
        await says("Doors do not learn of it: one that does not check the age opens");
        await updateApplication(homes, submit, applicationId, { signatureLifetimeSeconds: 900 });
        await says(
          "they open for a signature that the phone already has until it expires, 15 minutes after it was made",
        );
        await updateApplication(homes, submit, applicationId, { statusList: true });
        await says(
          "No door is connected: those that read the status list refuse it within two minutes. A door without a network",
        );
      });
    });

    it("the console filters the history by person and day, and saves it as CSV", async () => {
      await view("history", "History");
      const today = new Intl.DateTimeFormat("sv-SE", { timeZone: "Europe/Berlin" }).format();
      await page.getByLabel("From day").fill(today);
      await page.getByLabel("To day").fill(today);
      await page.getByLabel("Done by").fill("Ann");
      await page.getByRole("combobox", { name: "What" }).selectOption({ label: "Badge suspended" });
      await page.getByRole("button", { name: "Show", exact: true }).click();
      await until(async () => expect(await rows("entries").count()).toBe(2));
      await row("kim-1").getByText("Lost bag").waitFor();
      const lines = (await saveAsCsv()).trim().split("\r\n");
      expect(lines).toHaveLength(3);
      expect(lines[1]).toMatch(/,badge:suspended,Signed in here: Ann,/);
      const days = page.getByRole("navigation", { name: "Days" });
      await days.getByRole("link", { name: "Yesterday" }).click();
      await page.getByText("No entry matches.").waitFor();
      await days.getByRole("link", { name: "Today" }).click();
      await until(async () => expect(await rows("entries").count()).toBe(2));
      await page.getByLabel("From day").fill("0020-01-01");
      const isUnderflow = (input: HTMLInputElement) => input.validity.rangeUnderflow;
      expect(await page.getByLabel("From day").evaluate(isUnderflow)).toBe(true);
      await page.getByLabel("From day").fill("2020-01-01");
      await page.getByLabel("To day").fill("2020-01-02");
      await page.getByRole("button", { name: "Show", exact: true }).click();
      await page.getByText("No entry matches.").waitFor();
      await page.getByRole("link", { name: "Show all" }).click();
      await row("Contract").getByText("Tom").waitFor();
      // An address with a day that the service would refuse.
      for (const day of ["0020-01-01", "9999-12-31"]) {
        await view(`history?from=${day}`, "History");
        await page.getByRole("link", { name: "Show all" }).waitFor();
        await row("Contract").getByText("Tom").waitFor();
      }
    });

    it("the console lists who has access, with a link to what they did", async () => {
      await page.getByRole("navigation", { name: "Views" }).getByRole("link", { name: "Access" }).click();
      await shows("people", ["Ann", "Tom"]);
      await row("Tom").getByText("Operator").waitFor();
      await page.getByRole("link", { name: "What Tom did" }).click();
      await row("Badge revoked").getByText("Tom").waitFor();
    });

    it("the console sends all deliveries with problems again, after a confirmation", async () => {
      await until(async () => {
        const events = [];
        for await (const event of tom.listEvents({ state: "pending" }).events()) events.push(event);
        expect(events.filter(({ lastOutcome }) => lastOutcome === "answered").length).toBe(5);
      });
      await view("deliveries", "Deliveries");
      await page.getByRole("button", { name: "Send all again…" }).click();
      isBroken = false;
      await dialog().getByRole("button", { name: "Send 5 deliveries again" }).click();
      await page.locator(".notice").getByText("5 deliveries are being sent again.").waitFor();
      await until(async () => {
        const { value } = await tom.listEvents({ state: "pending" }).events().next();
        expect(value).toBeUndefined();
      });
    });

    it("the console shows the settings of the moment when a view is opened, not of the sign-in", async () => {
      await view("deliveries", "Deliveries");
      await page.getByText("The service reports what happens").waitFor();
      await updateApplication(service.homes, service.submit, service.applicationId, { webhookUrl: null });
      await view("today", "Today");
      await view("deliveries", "Deliveries");
      await page.getByText("This application has no webhook address").waitFor();
    });

    it("a change of many badges stops when its dialog is closed, and is undone again after a failure", async () => {
      const ids: string[] = [];
      for (let place = 0; place < 6; place++) ids.push(await service.issue(`lea-${place}`));
      const active = async () => {
        const badges = await Promise.all(ids.map((id) => tom.getBadge(id)));
        return badges.filter(({ state }) => state === "active").length;
      };
      await view("badges?q=lea-", "Badges");
      await until(async () => expect(await rows("badges").count()).toBe(6));
      await page.getByLabel("Select all that are shown").check();
      await page.getByRole("button", { name: "Suspend…" }).click();
      const waiting: (() => void)[] = [];
      await page.route("**/suspend", (route) => void waiting.push(() => void route.continue()));
      await dialog().getByRole("button", { name: "Suspend 6 badges" }).click();
      await until(() => expect(waiting).toHaveLength(4));
      await dialog().getByRole("button", { name: "Cancel" }).click();
      for (const goOn of waiting) goOn();
      const notice = page.locator(".notice");
      await notice.getByText("4 of 6 badges are suspended.").waitFor();
      expect(await active()).toBe(2);
      await page.route("**/resume", (route) => route.fulfill({ status: 500, body: "" }));
      await notice.getByRole("button", { name: "Undo" }).click();
      await notice.getByText("Undone for 0 badges; 4 badges could not be changed.").waitFor();
      await page.unroute("**/resume");
      await page.unroute("**/suspend");
      await notice.getByRole("button", { name: "Try again" }).click();
      await notice.getByText("Undone: 4 badges are as they were.").waitFor();
      expect(await active()).toBe(6);
    });

    it("a change of many badges reports all of them, although one that a colleague changed cannot be read again", async () => {
      const ids = [await service.issue("mia-1"), await service.issue("mia-2")];
      await view("badges?q=mia-", "Badges");
      await row("mia-1").waitFor();
      await page.getByLabel("Select all that are shown").check();
      await page.getByRole("button", { name: "Suspend…" }).click();
      const mia = `**/v1/badges/${ids[0]}`;
      await page.route(`${mia}/suspend`, async (route) => {
        await page.route(mia, (reading) => reading.abort());
        await route.fulfill({ status: 412, json: { error: "CHANGED_BADGE" } });
      });
      await dialog().getByRole("button", { name: "Suspend 2 badges" }).click();
      await dialog().getByText("Done for 1 of 2 badges.").waitFor();
      await dialog()
        .getByText(/mia-1.*A colleague has changed the badge meanwhile\./)
        .waitFor();
      await page.unroute(mia);
      await page.unroute(`${mia}/suspend`);
      await dialog().getByRole("button", { name: "Close" }).click();
      await page.locator(".notice").getByRole("button", { name: "Undo" }).click();
      await page.locator(".notice").getByText("Undone: 1 badge is as it was.").waitFor();
    });

    it("the console says that a change was refused after its dialog was closed, and leaves the focus in a field", async () => {
      await view("badges?q=lea-0", "Badges");
      let refuse = () => {};
      await page.route("**/suspend", (route) => {
        refuse = () => void route.fulfill({ status: 403, json: { error: "READ_ONLY" } });
      });
      await row("lea-0")
        .getByRole("button", { name: /^Actions/ })
        .click();
      await page.getByRole("menuitem", { name: "Suspend…" }).click();
      const request = page.waitForRequest("**/suspend");
      await dialog().getByRole("button", { name: "Suspend badge" }).click();
      await request;
      await page.keyboard.press("Escape");
      const search = page.getByLabel("Badge number, or part of");
      await search.focus();
      refuse();
      await page.locator(".notice").getByText("Your role does not allow this.").waitFor();
      expect(await search.evaluate((field) => field === document.activeElement)).toBe(true);
      await page.unroute("**/suspend");
    });

    it("the console says when a list has more rows than one CSV file", async () => {
      await service.issue("many");
      await view("badges?state=active", "Badges");
      await row("many").waitFor();
      const badges = Array.from({ length: 50_000 }, (_, place) => ({
        ...{ id: String(place + 1), userId: "many", state: "active" },
        ...{ issuedAt: "2027-01-01T00:00:00.000Z", changedAt: "2027-01-01T00:00:00.000Z" },
      }));
      for (const [pages, text] of [
        [2, "Saved 100,000 rows as CSV."],
        [3, "Saved the first 100,000 rows as CSV; one file has no more."],
      ] as const) {
        let sent = 0;
        await page.route("**/v1/badges?**per_page=1000**", (route) => {
          sent++;
          return route.fulfill({ json: { badges }, headers: sent < pages ? { "pagination-cursor": "more" } : {} });
        });
        const csv = await saveAsCsv();
        await page.locator(".notice").getByText(text, { exact: true }).waitFor();
        expect(csv.split("\r\n")).toHaveLength(100_002);
        await page.unroute("**/v1/badges?**per_page=1000**");
      }
    });

    it("these lists cause no message in the browser's console and no request to another host", () => {
      expect(conduct).toEqual({ foreignRequests: [], complaints: [] });
    });
  },
);
