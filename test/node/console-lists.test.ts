import { createServer } from "node:http";
import type { BrowserContext, Page } from "playwright-core";
import { afterAll, beforeAll, describe, expect, it } from "vitest";
import { createApplication } from "../../src/admin/application/create.ts";
import { updateApplication } from "../../src/admin/application/update.ts";
import { addConsoleSecret } from "../../src/admin/secret/secrets.ts";
import { ServerClient } from "../../src/client/index.ts";
import { listenSomewhere } from "../../src/dev/demo/listen.ts";
import { until } from "../support/until.ts";
import { browserOfFile, HAS_CHROMIUM, isFailedLoad, LIMIT, signIn } from "./support/browser.ts";
import { consoleSteps, openConsole } from "./support/console-page.ts";
import { type Harness, startHarness } from "./support/harness.ts";
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
  service = await startHarness({ webhookUrl: `${await listenSomewhere(receiver)}/hooks` });
  const { origin: baseUrl, applicationId, database } = service;
  const actor = { kind: "administrator", name: "Root" } as const;
  const add = async (name: string) =>
    (await addConsoleSecret(database, applicationId, { name, role: "operator" }, actor)).applicationSecret;
  annsSecret = await add("Ann");
  tom = new ServerClient({ baseUrl, applicationId, applicationSecret: await add("Tom") });
}, LIMIT);

afterAll(() => void receiver.close());

/** Badges of a list. */
const madeUp = (length: number) =>
  Array.from({ length }, (_, place) => ({
    ...{ id: String(place + 1), userId: `row-${place}`, state: "active" },
    ...{ issuedAt: "2027-01-01T00:00:00.000Z", changedAt: "2027-01-01T00:00:00.000Z" },
  }));

/** Reception of a building, at its desk in Berlin. */
describe.skipIf(!HAS_CHROMIUM)("a morning at /console (contract sections 19, 23 and 24)", { timeout: LIMIT }, () => {
  let context: BrowserContext;
  let page: Page;

  beforeAll(async () => {
    const viewport = { width: 1280, height: 900 };
    context = await openContext(service.origin, { timezoneId: "Europe/Berlin", viewport });
    page = await context.newPage();
    await openConsole(page, service, annsSecret);
  }, LIMIT);

  const { view, row, dialog, press, confirm, notice, undo, openMenu, saveAsCsv } = consoleSteps(() => page);
  const rows = (table: string) => page.getByRole("table", { name: table }).locator("tbody tr");
  const firstCells = (table: string) => rows(table).locator("th").allInnerTexts();
  const shows = async (table: string, names: readonly string[]) =>
    until(async () => expect((await firstCells(table)).map((text) => text.split("\n")[0])).toEqual(names));

  /** What appears under the pointer takes no click for 0.4 seconds. Here the test chooses the moment. */
  async function ignoresSecondClick(name: string, appear: () => Promise<void>): Promise<void> {
    const devtools = await context.newCDPSession(page);
    await devtools.send("Animation.enable");
    await devtools.send("Animation.setPlaybackRate", { playbackRate: 0 });
    await appear();
    const takesClick = await page.getByRole("button", { name, exact: true }).evaluate((button) => {
      for (const animation of document.getAnimations()) animation.currentTime = 390;
      const { x, y, width, height } = button.getBoundingClientRect();
      return document.elementFromPoint(x + width / 2, y + height / 2) === button;
    });
    await devtools.send("Animation.setPlaybackRate", { playbackRate: 1 });
    await devtools.detach();
    expect(takesClick).toBe(false);
  }

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
      await press("Search");
      await shows("invitations", ["Not Today"]);
      await page.getByLabel("Search by name or user ID").fill("today");
      await press("Search");
      await shows("invitations", ["Early Today", "Late Today", "Not Today"]);
      await page.getByRole("link", { name: "Clear the search" }).click();
      const day = new Intl.DateTimeFormat("sv-SE", { timeZone: "Europe/Berlin" }).format(Date.now() + 30 * HOUR);
      await page.getByLabel("A day").fill(day);
      await shows("invitations", ["Not Today"]);
      expect(page.url()).toContain(`day=${day}`);
      await page.getByRole("link", { name: "All", exact: true }).click();
      await shows("invitations", ["Not Today", "Early Today", "Late Today"]);
    });

    it("a pasted list of visitors is refused for an unknown column, previewed with its times before anything is sent, and invited in one call, which names who is refused", async () => {
      const posts: string[] = [];
      page.on("request", (request) => request.method() === "POST" && posts.push(request.url()));
      await view("visitors", "Visitors");
      await press("Invite up to 100 from a list");
      const list = page.getByLabel("Visitors, one on each line");
      await list.fill("Name\tFirma\nGreta\tACME");
      await press("Check the list");
      await page.getByRole("alert").getByText("The column “Firma” is not known.").waitFor();
      const guests = ["Greta Gast;3.3.2031 9:00;3.3.2031 17:00;Tom Berg;", "Hans Heute;;;;", "Dot;;;;.."];
      await list.fill(["Besucher;Von;Bis;Gastgeber;User ID", ...guests].join("\n"));
      await ignoresSecondClick("Invite 3 visitors", () => press("Check the list"));
      await shows("Visitors to invite", ["Greta Gast", "Hans Heute", "Dot"]);
      await row("Greta Gast").getByText("3 Mar 2031, 09:00").waitFor();
      await row("Greta Gast").getByText("3 Mar 2031, 17:00").waitFor();
      await row("Hans Heute").getByText("at once").waitFor();
      expect(posts).toEqual([]);
      await press("Back to the list");
      expect(await list.inputValue()).toContain("Hans Heute");
      await press("Check the list");
      await press("Invite 3 visitors");
      await page.getByText("2 passes").waitFor();
      await page.getByText("Dot: That cannot be a user ID.").waitFor();
      await page.getByRole("article", { name: "Pass of Greta Gast" }).waitFor();
      expect(posts).toEqual([`${service.origin}/v1/invitations`]);
      const { value } = await tom.listInvitations({ q: "greta" }).invitations().next();
      expect(value).toMatchObject({ name: "Greta Gast", badgeStartsAt: "2031-03-03T08:00:00.000Z" });
    });

    it("visitors' passes have codes that open the service's own page by default (section 27), and several fit on a printed page", async () => {
      const pass = page.getByRole("article", { name: "Pass of Hans Heute" });
      const link = await scan(pass.getByRole("img", { name: "QR code" }));
      expect(link).toMatch(new RegExp(`/pass#${service.applicationId}/inv_[\\w-]+$`));
      await page.emulateMedia({ media: "print" });
      const pdf = (await page.pdf({ format: "A4" })).toString("latin1");
      expect(pdf.match(/\/Type\s*\/Page\b/g)).toHaveLength(1);
      await page.emulateMedia({ media: "screen" });
      await press("Done");
    });

    it("a day is typed digit by digit", async () => {
      await view("visitors?day=all", "Visitors");
      await until(async () => expect(await page.getByLabel("A day").inputValue()).toBe(""));
      await page.getByLabel("A day").focus();
      // The browser's language decides whether the day or the month comes first.
      await page.keyboard.type("03032031");
      await shows("invitations", ["Greta Gast"]);
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
      const pass = desk.getByRole("article", { name: "Pass of สมศรี" });
      await desk.getByRole("button", { name: "Invite a visitor" }).click();
      await desk.getByLabel("Visitor's name").fill("สมศรี");
      await desk.getByRole("button", { name: "For a week" }).click();
      const isReloaded = desk.waitForResponse((response) => response.url().includes("/v1/invitations?"));
      await desk.getByRole("button", { name: "Invite", exact: true }).click();
      await pass.waitFor();
      // Without the marks that odd characters have.
      expect(await pass.getByRole("heading").innerText()).toBe("สมศรี");
      await isReloaded;
      await desk.waitForTimeout(300);
      expect(await pass.getByText("Revoked").count()).toBe(0);
      await server.revokeInvitation("19");
      await desk.getByRole("button", { name: "Refresh" }).click();
      await pass.getByText("Revoked").waitFor();
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
      await server.createInvitation({ ...earlier, name: "Last Lou" });
      await question.getByRole("button", { name: "Revoke invitation" }).click();
      await desk.getByText("The invitation has been revoked or has expired meanwhile.").waitFor();
      await desk.getByRole("row").filter({ hasText: "Last Lou" }).getByText("Waiting").waitFor();
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

    it("badges in all states are one list with an exact total, and a search finds ended ones, their person and one without a badge", async () => {
      await view("badges?state=all", "Badges");
      await page.getByText("5 badges", { exact: true }).waitFor();
      await row("kim-1").waitFor();
      await page.getByLabel("Badge number, or part of").fill("los");
      await press("Search");
      await row("lost").getByText("Revoked").waitFor();
      await page.getByRole("link", { name: "the person with exactly the user ID “los”" }).waitFor();
      await page.locator(".found-people").getByRole("link", { name: "lost" }).click();
      await page.getByRole("heading", { name: "lost", level: 1 }).waitFor();
    });

    it("selected badges are suspended together, with an outcome for each; a badge that a colleague changed is skipped", async () => {
      await view("badges?q=kim", "Badges");
      await row("kim-4").waitFor();
      for (const user of ["kim-1", "kim-2", "kim-3"]) await page.getByLabel(`Select badge ${number(user)}`).check();
      await page.getByText("3 badges selected").waitFor();
      await tom.setBadgeEnd(number("kim-2"), new Date(Date.now() + 5 * DAY), { reason: "Contract" });
      await press("Suspend…");
      await dialog().getByLabel("Reason").fill("Lost bag");
      await confirm("Suspend 3 badges");
      await dialog().getByText("Done for 2 of 3 badges.").waitFor();
      await dialog()
        .getByText(/kim-2.*Left alone\. Tom changed this badge .*start or end changed\. It is active now\./)
        .waitFor();
      await confirm("Close");
      await notice("2 of 3 badges are suspended.");
      await row("kim-1").getByText("Suspended").waitFor();
      const states = [];
      for (const user of numbers.keys()) states.push((await tom.getBadge(number(user))).state);
      expect(states).toEqual(["suspended", "active", "suspended", "active", "revoked"]);
    });

    it("a long list keeps its rows and their selection when it is reloaded twice, and after a failed reload", async () => {
      const badges = madeUp(120);
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
      await press("Show more badges");
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
      await press("Try again");
      await isKept(7);
      await page.unroute("**/v1/badges?**");
    });

    it("selected badges get one end, which can be undone, or are revoked, after a dialog that names them", async () => {
      const { expiresAt: endOfKim2 } = await tom.getBadge(number("kim-2"));
      await view("badges?q=kim&state=active", "Badges");
      await shows("badges", ["kim-4", "kim-2"]);
      await page.getByLabel("Select all that are shown").check();
      await press("Change end…");
      await dialog().getByLabel("Until").fill("2040-06-30T18:00");
      await confirm("Change the end of 2 badges");
      await notice("2 badges have a new end.");
      for (const user of ["kim-2", "kim-4"]) {
        expect((await tom.getBadge(number(user))).expiresAt).toBe("2040-06-30T16:00:00.000Z");
      }
      // It is undone where nobody has changed the badge since.
      await tom.setBadgeEnd(number("kim-4"), new Date("2041-01-01T00:00:00Z"));
      await undo();
      await notice("Undone for 1 badge; 1 badge was left alone");
      expect((await tom.getBadge(number("kim-2"))).expiresAt).toBe(endOfKim2);
      expect((await tom.getBadge(number("kim-4"))).expiresAt).toBe("2041-01-01T00:00:00.000Z");
      await view("badges?q=kim&state=suspended", "Badges");
      await shows("badges", ["kim-3", "kim-1"]);
      await page.getByLabel("Select all that are shown").check();
      await press("Revoke…");
      await dialog().getByText("This cannot be undone.").waitFor();
      await confirm("Revoke 2 badges");
      await until(async () => expect((await tom.getBadge(number("kim-1"))).state).toBe("revoked"));
    });

    it("the dialogs of a badge say what doors will do, by the present settings (sections 3 and 14)", async () => {
      const { homes, submit, applicationId } = service;
      const says = (text: string) =>
        until(async () => {
          await view("today", "Today");
          await view(`badge?id=${number("kim-4")}`, "Badge");
          await press("Suspend…");
          await dialog().getByRole("button", { name: "Suspend badge" }).waitFor();
          const said = await dialog().innerText();
          await confirm("Cancel");
          expect(said).toContain(text);
        });
      await says("Doors do not learn of it: one that does not check the age opens");
      await updateApplication(homes, submit, applicationId, { signatureLifetimeSeconds: 900 });
      await says("they open for a signature that the phone already has until it expires, 15 minutes after it was made");
    });
  });

  it("the console filters the history by person and day, and saves it as CSV", async () => {
    await view("history", "History");
    const today = new Intl.DateTimeFormat("sv-SE", { timeZone: "Europe/Berlin" }).format();
    await page.getByLabel("From day").fill(today);
    await page.getByLabel("To day").fill(today);
    await page.getByLabel("Done by").fill("Ann");
    await page.getByRole("combobox", { name: "What" }).selectOption({ label: "Badge suspended" });
    await press("Show");
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
    await page.getByLabel("From day").fill("2020-01-01");
    await page.getByLabel("To day").fill("2020-01-02");
    await press("Show");
    await page.getByText("No entry matches.").waitFor();
    await page.getByRole("link", { name: "Show all" }).click();
    await row("Contract").getByText("Tom").waitFor();
    // An address with a day that the service would refuse.
    for (const day of ["0020-01-01", "1970-01-01", "9999-12-31"]) {
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
      const outcomes = [];
      for await (const { lastOutcome } of tom.listEvents({ state: "pending" }).events()) outcomes.push(lastOutcome);
      expect(outcomes).toEqual(Array(5).fill("answered"));
    });
    await view("deliveries", "Deliveries");
    await ignoresSecondClick("Send 5 deliveries again", () => press("Send all again…"));
    isBroken = false;
    await confirm("Send 5 deliveries again");
    await notice("5 deliveries are being sent again.");
    await until(async () => {
      const { value } = await tom.listEvents({ state: "pending" }).events().next();
      expect(value).toBeUndefined();
    });
  });

  it("the console shows a delivery that was given up at once, although a great many are pending without a problem", async () => {
    const { value: made } = await tom.listEvents({ state: "delivered", perPage: 1 }).events().next();
    await view("today", "Today");
    await page.route("**/v1/events?**", (route) => {
      const isPending = route.request().url().includes("state=pending");
      const events = route.request().url().includes("state=exhausted") ? [{ ...made, state: "exhausted" }] : [];
      return route.fulfill({ json: { events }, headers: isPending ? { "pagination-cursor": "more" } : {} });
    });
    await view("deliveries", "Deliveries");
    await row("Given up").waitFor();
    await view("today", "Today");
    await page.unroute("**/v1/events?**");
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
    await press("Suspend…");
    const waiting: (() => void)[] = [];
    await page.route("**/suspend", (route) => void waiting.push(() => void route.continue()));
    await confirm("Suspend 6 badges");
    await until(() => expect(waiting).toHaveLength(4));
    await confirm("Cancel");
    for (const goOn of waiting) goOn();
    await notice("4 of 6 badges are suspended.");
    expect(await active()).toBe(2);
    await page.route("**/resume", (route) => route.fulfill({ status: 500, body: "" }));
    await undo();
    await notice("Undone for 0 badges; 4 badges could not be changed.");
    await page.unroute("**/resume");
    await page.unroute("**/suspend");
    await page.locator(".notice").getByRole("button", { name: "Try again" }).click();
    await notice("Undone: 4 badges are as they were.");
    expect(await active()).toBe(6);
  });

  it("a change of many badges reports all of them, although one that a colleague changed cannot be read again", async () => {
    const ids = [await service.issue("mia-1"), await service.issue("mia-2")];
    await view("badges?q=mia-", "Badges");
    await row("mia-1").waitFor();
    await page.getByLabel("Select all that are shown").check();
    await press("Suspend…");
    const mia = `**/v1/badges/${ids[0]}`;
    await page.route(`${mia}/suspend`, async (route) => {
      await page.route(mia, (reading) => reading.abort());
      await route.fulfill({ status: 412, json: { error: "CHANGED_BADGE" } });
    });
    await confirm("Suspend 2 badges");
    await dialog().getByText("Done for 1 of 2 badges.").waitFor();
    await dialog()
      .getByText(/mia-1.*A colleague has changed the badge meanwhile\./)
      .waitFor();
    await page.unroute(mia);
    await page.unroute(`${mia}/suspend`);
    await confirm("Close");
    await undo();
    await notice("Undone: 1 badge is as it was.");
  });

  it("the console says that a change was refused after its dialog was closed, and leaves the focus in a field", async () => {
    await view("badges?q=lea-0", "Badges");
    let refuse = () => {};
    await page.route("**/suspend", (route) => {
      refuse = () => void route.fulfill({ status: 403, json: { error: "READ_ONLY" } });
    });
    await openMenu("lea-0");
    await page.getByRole("menuitem", { name: "Suspend…" }).click();
    const request = page.waitForRequest("**/suspend");
    await confirm("Suspend badge");
    await request;
    await page.keyboard.press("Escape");
    const search = page.getByLabel("Badge number, or part of");
    await search.focus();
    refuse();
    await notice("Your role does not allow this.");
    expect(await search.evaluate((field) => field === document.activeElement)).toBe(true);
    await page.unroute("**/suspend");
  });

  it("the console says when a list has more rows than one CSV file", async () => {
    await service.issue("many");
    await view("badges?state=active", "Badges");
    await row("many").waitFor();
    const badges = madeUp(50_000);
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
      await notice(text);
      expect(csv.split("\r\n")).toHaveLength(100_002);
      await page.unroute("**/v1/badges?**per_page=1000**");
    }
  });

  it("these lists cause no message in the browser's console and no request to another host", () => {
    expect(conduct).toEqual({ foreignRequests: [], complaints: [] });
  });
});
