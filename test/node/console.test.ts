import { once } from "node:events";
import { createServer } from "node:http";
import { text } from "node:stream/consumers";
import { gzipSync } from "node:zlib";
import { type Browser, chromium, type Page } from "playwright-core";
import decodeQr from "qr/decode.js";
import { afterAll, beforeAll, describe, expect, it, onTestFinished, vi } from "vitest";
import { addConsoleSecret } from "../../src/admin/secret/console.ts";
import { DeviceClient, ServerClient, webCryptoProofKey } from "../../src/client/index.ts";
import { byEffort } from "../support/effort.ts";
import { until } from "../support/until.ts";
import { faultsOf } from "./support/axe.ts";
import { CHROMIUM_FLAGS, findChromium } from "./support/chromium.ts";
import { type Harness, startHarness } from "./support/harness.ts";

/** Milliseconds: a browser's work on a busy machine. */
const LIMIT = 240_000;

const DESKTOP = { width: 1280, height: 860 };
const PHONE = { width: 360, height: 740 };

const executablePath = findChromium();
if (executablePath === null) {
  console.warn("SKIPPED: there is no Chromium on this machine, so /console is not tried (CHROMIUM_PATH names one)");
}

/** The application's own receiver: it fails for one user until it is repaired. */
const receiver = createServer(async (request, response) => {
  // Null: the service was stopped while it sent.
  const body = await text(request).catch(() => null);
  if (body === null) return void response.destroy();
  const fails = isBroken && body.includes('"userId":"grace"');
  if (fails) await heldBack;
  if (!fails) received.push(body);
  response.writeHead(fails ? 500 : 204).end(fails ? "disk full" : undefined);
});
let isBroken = true;
/** What it waits for before it fails. */
let heldBack: Promise<void> | null = null;
const received: string[] = [];

let service: Harness;
let server: ServerClient;
/** Of the person who uses the console. */
let secret: string;

beforeAll(async () => {
  vi.stubEnv("WRANGLER_LOG", "error");
  receiver.listen(0, "127.0.0.1");
  await once(receiver, "listening");
  const address = receiver.address();
  if (address === null || typeof address === "string") throw new Error("no port");
  service = await startHarness({ webhookUrl: `http://127.0.0.1:${address.port}/hooks` });
  const { origin: baseUrl, applicationId, applicationSecret } = service;
  server = new ServerClient({ baseUrl, applicationId, applicationSecret });
  secret = (await addConsoleSecret(service.database, applicationId, { name: "Ann", role: "operator" })).applicationSecret;
}, LIMIT);

afterAll(async () => {
  await service?.close();
  receiver.close();
});

/** The call of a phone. */
async function device(
  udid: string,
  path: string,
  body: object,
): Promise<{ status: number; body: Record<string, string> }> {
  const response = await fetch(`${service.origin}${path}`, {
    method: "POST",
    headers: { applicationid: service.applicationId, udid },
    body: JSON.stringify(body),
  });
  return { status: response.status, body: await response.json() };
}

/** Issues a badge to a phone whose udid is the user's ID. @returns its number */
async function issue(userId: string, metadata: object = { os: "iOS", osVersion: "18.6", deviceModel: "iPhone16,2" }) {
  const { status, body } = await device(userId, "/v1/badge", { userId, metadata });
  expect(status).toBe(201);
  return body.badgeId ?? "";
}

/** The states of the deliveries that were tried. */
async function attempted(): Promise<string[]> {
  const states: string[] = [];
  for await (const { state, attempts } of server.listEvents().events()) if (attempts > 0) states.push(state);
  return states.toSorted();
}

/** What the phone of a user gets when it asks for a signature. */
async function signed(userId: string): Promise<string> {
  const { status, body } = await device(userId, "/v1/badge/sign", { base64: "AAAA" });
  return `${status} ${body.error ?? ""}`.trim();
}

describe("/console over HTTP (contract section 19)", () => {
  const get = (path: string, init: RequestInit = {}) => fetch(`${service.origin}${path}`, init);

  it("has a policy without inline code, without eval and without another host, and may not be framed", async () => {
    for (const method of ["GET", "HEAD"]) {
      const { status, headers } = await get("/console", { method });
      expect(status).toBe(200);
      expect(headers.get("content-type")).toMatch(/^text\/html/);
      expect(headers.get("cache-control")).toBe("no-cache");
      expect(headers.get("referrer-policy")).toBe("no-referrer");
      const policy = headers.get("content-security-policy")?.split("; ") ?? [];
      expect(policy).toEqual(
        expect.arrayContaining([
          "default-src 'none'",
          "script-src 'self'",
          "style-src 'self'",
          "connect-src 'self'",
          "form-action 'none'",
          "frame-ancestors 'none'",
          "base-uri 'none'",
        ]),
      );
      expect(policy.join("; ")).not.toMatch(/unsafe|https?:|\*|data:|blob:/);
    }
  });

  it("is under 150 KiB gzipped with all its files, of which none is another host's and none is inline", async () => {
    const html = await (await get("/console")).text();
    expect(html).not.toMatch(/<style|style=|<script>|<script type="module">|\son\w+=/);
    const files = [...html.matchAll(/(?:src|href)="([^"]*)"/g)].map(([, path]) => path ?? "");
    const assets = [...new Set(files)].filter((path) => /\.\w+$/.test(path));
    expect(assets).toEqual(
      expect.arrayContaining(["/console/console.js", "/console/console.css", "/docs/product.css"]),
    );
    let bytes = gzipSync(html).length;
    for (const path of assets) {
      expect(path).toMatch(/^\/[^/]/);
      const response = await get(path);
      expect(response.status, path).toBe(200);
      bytes += gzipSync(Buffer.from(await response.arrayBuffer())).length;
    }
    expect(bytes).toBeGreaterThan(10_000);
    expect(bytes).toBeLessThan(150 * 1024);
  });

  it("answers what is not there, and other methods, like every path (contract section 6)", async () => {
    expect((await get("/console/", { redirect: "manual" })).headers.get("location")).toBe("/console");
    for (const path of ["/console/nothing", "/console.html", "/console/console.html"]) {
      const response = await get(path, { redirect: "manual" });
      expect([response.status, await response.json()], path).toEqual([404, { error: "NOT_FOUND" }]);
    }
    const posted = await get("/console", { method: "POST" });
    expect([posted.status, posted.headers.get("allow")]).toEqual([405, "GET, HEAD"]);
  });
});

describe.skipIf(executablePath === null)("/console in a browser (contract section 19)", { timeout: LIMIT }, () => {
  let browser: Browser;
  let page: Page;
  const foreignRequests: string[] = [];
  const complaints: string[] = [];
  /** Badge numbers by user. */
  const numbers = new Map<string, string>();
  const number = (user: string) => numbers.get(user) ?? "";

  beforeAll(async () => {
    for (const user of ["alice", "bob", "carol", "dave", "erin", "frank", "grace"]) {
      numbers.set(user, await issue(user));
    }
    numbers.set("heidi", await issue("heidi", { os: "Android", osVersion: "15", deviceModel: "Pixel 9" }));
    await vi.waitFor(async () => expect(await attempted()).toEqual([...Array(7).fill("delivered"), "pending"]), {
      timeout: 20_000,
      interval: 200,
    });
    browser = await chromium.launch({
      executablePath: executablePath ?? "",
      args: CHROMIUM_FLAGS,
      // Playwright switches the cache off that keeps a page and its memory for Back.
      ignoreDefaultArgs: ["--disable-back-forward-cache"],
    });
    page = await newPage();
    await open(page);
  }, LIMIT);

  afterAll(async () => {
    await browser?.close();
  }, LIMIT);

  async function newPage(): Promise<Page> {
    const context = await browser.newContext({ viewport: DESKTOP, timezoneId: "Asia/Tokyo", locale: "en-GB" });
    context.setDefaultTimeout(20_000);
    context.on("request", (request) => {
      if (!request.url().startsWith(`${service.origin}/`)) foreignRequests.push(request.url());
    });
    context.on("console", (message) => {
      const isRefusal = message.text().startsWith("Failed to load resource");
      if (["error", "warning"].includes(message.type()) && !isRefusal) complaints.push(message.text());
    });
    context.on("weberror", (error) => complaints.push(String(error.error())));
    return context.newPage();
  }

  /** Anew: the page remembers nothing. A page, or a context, for each test would take a second of Chromium's time. */
  async function open(on: Page): Promise<void> {
    await on.goto(`${service.origin}/console`);
    await on.getByRole("button", { name: "Sign in" }).waitFor();
  }

  async function signIn(on: Page, applicationSecret = secret): Promise<void> {
    await on.getByLabel("Application ID").fill(service.applicationId);
    await on.getByLabel("Secret", { exact: true }).fill(applicationSecret);
    await on.getByRole("button", { name: "Sign in" }).click();
  }

  /** `performance.now` of the page stands still until the running test has ended, but for `moveClock`. */
  async function stopClock(on: Page): Promise<void> {
    onTestFinished(() => on.evaluate(() => void Reflect.deleteProperty(performance, "now")));
    await moveClock(on, 0);
  }

  const moveClock = (on: Page, milliseconds: number): Promise<void> =>
    on.evaluate((passed) => {
      const now = performance.now() + passed;
      performance.now = () => now;
    }, milliseconds);

  async function openView(on: Page, name: string): Promise<void> {
    await on.getByRole("navigation", { name: "Views" }).getByRole("link", { name }).click();
    await on.getByRole("heading", { name, level: 1 }).waitFor();
  }

  async function find(on: Page, query: string): Promise<void> {
    await openView(on, "Badges");
    await on.getByLabel("Badge number or user ID").fill(query);
    await on.getByRole("button", { name: "Find" }).click();
    await on.getByRole("button", { name: "Show all" }).waitFor();
  }

  const badge = (on: Page, user: string) => on.getByRole("article", { name: `Badge ${number(user)}` });
  const confirm = (on: Page, action: string) => on.getByRole("dialog").getByRole("button", { name: action }).click();
  const message = (on: Page) => on.locator(".notice");
  const inWords = (id: string) => id.replaceAll(/\B(?=(\d{3})+$)/g, "\u202f");

  it("says what to do about a wrong secret, and lets nobody in", async () => {
    await signIn(page, "bdss_wrong");
    await page.getByRole("alert").getByText("ask your administrator for a new secret").waitFor();
    await signIn(page, "gehört mir");
    await page.getByRole("alert").getByText("made of letters, digits, - and _").waitFor();
    expect(await page.getByText("Numbers left").count()).toBe(0);
  });

  it("has the secret neither in the URL, in storage nor in the DOM after sign-in", async () => {
    await signIn(page);
    await page.getByText("Numbers left").waitFor();
    const found = await page.evaluate(async () => ({
      dom: document.documentElement.outerHTML,
      values: [...document.querySelectorAll("input")].map(({ value }) => value),
      url: location.href,
      history: JSON.stringify(history.state),
      stored: JSON.stringify([{ ...localStorage }, { ...sessionStorage }, document.cookie, name]),
      databases: (await indexedDB.databases()).length,
      caches: (await caches.keys()).length,
    }));
    expect(JSON.stringify(found)).not.toContain(secret);
    expect(JSON.stringify(found)).not.toContain("bdss_");
    expect(found).toMatchObject({ stored: '[{},{},"",""]', databases: 0, caches: 0, history: "null", values: [] });
    expect(found.url).toBe(`${service.origin}/console`);
  });

  it("shows in the overview what the statistics say, as tables that the bars are drawn in", async () => {
    const row = (chart: string, value: string) =>
      page
        .getByRole("table", { name: chart })
        .getByRole("row")
        .filter({ has: page.getByRole("rowheader", { name: value, exact: true }) });
    for (const [chart, value, count] of [
      ["Badges by state", "Active", "8"],
      ["Operating systems", "iOS", "7"],
      ["System versions", "15", "1"],
      ["Device models", "Pixel 9", "1"],
      ["SDK versions", "Not told", "8"],
      ["Deliveries by outcome", "Delivered", "7"],
      ["Deliveries by outcome", "Retrying: the receiver reported an error", "1"],
    ] as const) {
      expect(await row(chart, value).getByRole("cell").innerText(), `${chart}: ${value}`).toBe(count);
    }
    expect(await page.getByRole("table", { name: "New badges per day" }).getByRole("rowheader").count()).toBe(90);
    await page.getByText("9,999,992").waitFor();
  });

  it("suspends a badge found by its number, which the phone notices at once, and resumes it (section 12)", async () => {
    await find(page, inWords(number("alice")));
    await badge(page, "alice").getByRole("button", { name: "Suspend" }).click();
    await page.getByRole("dialog").getByText("You can undo this").waitFor();
    expect(await signed("alice")).toBe("200");
    await confirm(page, "Suspend badge");
    await badge(page, "alice").getByText("Suspended").waitFor();
    expect(await signed("alice")).toBe("403 SUSPENDED_BADGE");
    await badge(page, "alice").getByRole("button", { name: "Resume" }).click();
    await badge(page, "alice").getByText("Active").waitFor();
    expect(await signed("alice")).toBe("200");
  });

  it("undoes a suspension and an end from the message that tells of it", async () => {
    await find(page, number("bob"));
    await badge(page, "bob").getByRole("button", { name: "Suspend" }).click();
    await confirm(page, "Suspend badge");
    await page.getByRole("button", { name: "Undo" }).click();
    await message(page)
      .getByText(`Badge ${inWords(number("bob"))} is active again.`)
      .waitFor();
    expect(await signed("bob")).toBe("200");
    await badge(page, "bob").getByRole("button", { name: "Set end" }).click();
    await page.getByRole("dialog").getByLabel("Date and time").fill("2020-01-01T12:00");
    await page.getByRole("dialog").getByText("refused at once").waitFor();
    await confirm(page, "End badge now");
    await badge(page, "bob").getByText("Expired").waitFor();
    await message(page)
      .getByText(`Badge ${inWords(number("bob"))} has ended.`)
      .waitFor();
    expect(await signed("bob")).toBe("403 EXPIRED_BADGE");
    await page.getByRole("button", { name: "Undo" }).click();
    await badge(page, "bob").getByText("Active").waitFor();
    expect(await server.getBadge(number("bob"))).not.toHaveProperty("expiresAt");
  });

  it("sets an end in the reader's time zone, and shows it there", async () => {
    await find(page, number("carol"));
    await badge(page, "carol").getByRole("button", { name: "Set end" }).click();
    await page.getByRole("dialog").getByLabel("Date and time").fill("2040-01-31T18:00");
    await confirm(page, "Set end");
    await badge(page, "carol").getByText("31 Jan 2040, 18:00").waitFor();
    expect(await server.getBadge(number("carol"))).toMatchObject({ expiresAt: "2040-01-31T09:00:00.000Z" });
    await badge(page, "carol").locator("time").focus();
    await badge(page, "carol")
      .getByText(/^Tuesday,? 31 January 2040 at 18:00:00 (GMT\+9|JST)$/)
      .waitFor();
  });

  it("says before revoking that it cannot be undone, and offers nothing afterwards", async () => {
    await find(page, "dave");
    await badge(page, "dave").getByRole("button", { name: "Revoke" }).click();
    await page.getByRole("dialog").getByText("This cannot be undone.").waitFor();
    await page.getByRole("dialog").getByRole("button", { name: "Cancel" }).click();
    expect(await signed("dave")).toBe("200");
    await badge(page, "dave").getByRole("button", { name: "Revoke" }).click();
    await confirm(page, "Revoke badge");
    await badge(page, "dave").getByText("This badge has ended for good.").waitFor();
    expect(await signed("dave")).toBe("403 REVOKED_BADGE");
    expect(await page.getByRole("button", { name: "Undo" }).count()).toBe(0);
  });

  it("blocks a user with all badges, and lets the user get new ones again", async () => {
    await find(page, "erin");
    await page.getByRole("button", { name: "Block user" }).click();
    await page.getByRole("dialog").getByText("Revoked badges cannot be restored.").waitFor();
    await confirm(page, "Block user");
    await page.getByText("erin is blocked; 1 badge revoked.").waitFor();
    expect((await device("another phone", "/v1/badge", { userId: "erin" })).body).toEqual({ error: "BLOCKED_USER" });
    await page.getByRole("button", { name: "Unblock user" }).click();
    await page.getByRole("dialog").getByText("Revoked badges stay revoked.").waitFor();
    await confirm(page, "Unblock user");
    await page.getByText("Not blocked").waitFor();
    expect((await device("another phone", "/v1/badge", { userId: "erin" })).status).toBe(201);
  });

  it("says that a blocked user's badges have ended, and shows those that it has seen", async () => {
    await find(page, "erin");
    const list = page.getByRole("list", { name: "badges", exact: true });
    const name = (await list.getByRole("article").getAttribute("aria-label")) ?? "";
    await page.getByRole("button", { name: "Block user" }).click();
    await confirm(page, "Block user");
    await message(page).getByText("erin is blocked; 1 badge revoked.").waitFor();
    await list.getByText("Revoked", { exact: true }).waitFor();
    await find(page, "erin");
    await page.getByText("erin has no active or suspended badge.").waitFor();
    const ended = page.getByRole("list", { name: "ended badges" });
    await ended.getByRole("article", { name }).getByText("Revoked", { exact: true }).waitFor();
    expect(await page.getByText("Check every character").count()).toBe(0);
    await page.getByRole("button", { name: "Unblock user" }).click();
    await confirm(page, "Unblock user");
    await page.getByText("Not blocked").waitFor();
  });

  it("does not take an unknown text for a user: blocking it is another step, and finding no badge a warning", async () => {
    await find(page, "Alice");
    await page.getByText("No badge has this number, and no user with this ID has a badge").waitFor();
    expect(await page.getByRole("button", { name: "Block" }).isVisible()).toBe(false);
    await page.getByText("Refuse this user ID badges").click();
    await page.getByRole("button", { name: "Block this user ID" }).click();
    await page.getByRole("dialog").getByText("this may not be the user you mean").waitFor();
    await confirm(page, "Block user ID");
    await message(page).getByText("No badge was found: check the user ID.").waitFor();
    expect(await server.getUser("Alice")).toMatchObject({ blocked: true });
    await message(page).getByRole("button", { name: "Undo" }).click();
    await message(page).getByText("Alice can get new badges again.").waitFor();
    expect(await server.getUser("Alice")).toMatchObject({ blocked: false });
    await page.getByText("No badge has this number").waitFor();
  });

  it("leads from a badge found by its number, also one with hyphens, to its user", async () => {
    await find(page, number("carol").replace(/(\d{3})$/, "-$1"));
    await badge(page, "carol").getByRole("button", { name: "carol" }).click();
    await page.getByRole("region", { name: "User carol" }).getByRole("button", { name: "Block user" }).waitFor();
    expect(await page.locator(":focus").innerText()).toBe("Badges");
  });

  it("does not move a row under the pointer, and ignores a second click that hits another row", async () => {
    for (const user of ["alice", "bob"]) await server.suspendBadge(number(user));
    await openView(page, "Badges");
    await page.getByRole("button", { name: "Show all" }).click();
    const resume = (user: string) => badge(page, user).getByRole("button", { name: "Resume" });
    const above = await resume("alice").boundingBox();
    await stopClock(page);
    await resume("bob").click();
    const told = message(page).getByText(`Badge ${inWords(number("bob"))} is active again.`);
    await told.waitFor();
    expect(await resume("alice").boundingBox()).toEqual(above);
    await resume("alice").click();
    await badge(page, "bob").getByText("Active", { exact: true }).waitFor();
    await moveClock(page, 999);
    await resume("alice").click();
    expect(await told.count(), "a click that is obeyed removes the message at once").toBe(1);
    expect(await server.getBadge(number("alice"))).toMatchObject({ state: "suspended" });
    await moveClock(page, 1);
    await resume("alice").click();
    await badge(page, "alice").getByText("Active", { exact: true }).waitFor();
    expect(await signed("alice")).toBe("200");
  });

  it("shows what an undo has changed wherever the badge is shown meanwhile, and the message goes with its subject", async () => {
    await find(page, "alice");
    await badge(page, "alice").getByRole("button", { name: "Suspend" }).click();
    await confirm(page, "Suspend badge");
    await message(page).getByText("is suspended").waitFor();
    await find(page, number("alice"));
    await badge(page, "alice").getByText("Suspended", { exact: true }).waitFor();
    await page.getByRole("button", { name: "Undo" }).click();
    await message(page)
      .getByText(`Badge ${inWords(number("alice"))} is active again.`)
      .waitFor();
    await badge(page, "alice").getByText("Active", { exact: true }).waitFor();
    await find(page, "bob");
    await badge(page, "bob").waitFor();
    expect(await message(page).count()).toBe(0);
  });

  it("rebinds a badge whose app has lost its key: the next key takes it over (section 15)", async () => {
    const phone = async () => {
      const pair = await crypto.subtle.generateKey({ name: "ECDSA", namedCurve: "P-256" }, true, ["sign", "verify"]);
      const { origin: baseUrl, applicationId } = service;
      return new DeviceClient({ baseUrl, applicationId, udid: "judy", proofKey: await webCryptoProofKey(pair) });
    };
    const { badgeId } = await (await phone()).requestBadge({ userId: "judy" });
    numbers.set("judy", badgeId);
    const reinstalled = await phone();
    await expect(reinstalled.requestBadge({ userId: "judy" })).rejects.toMatchObject({ code: "INVALID_PROOF" });
    await find(page, "alice");
    await badge(page, "alice").waitFor();
    expect(await page.getByRole("button", { name: "Rebind" }).count()).toBe(0);
    await find(page, badgeId);
    await badge(page, "judy").getByRole("button", { name: "Rebind" }).click();
    await page.getByRole("dialog").getByText("Not for a phone that was lost").waitFor();
    await confirm(page, "Rebind badge");
    await message(page).getByText("moves to the next key").waitFor();
    expect(await reinstalled.requestBadge({ userId: "judy" })).toMatchObject({ created: false, badgeId });
  });

  it("invites by a QR code whose content is the token alone: a phone that scans it gets the badge", async () => {
    await openView(page, "Invitations");
    await page.getByText("Nobody has been invited yet.").waitFor();
    await page.getByLabel("No end").check();
    await page.getByRole("button", { name: "Create invitation" }).click();
    await page.getByText("This badge has no end.").waitFor();
    const code = page.getByRole("img", { name: "QR code of the invitation" });
    await code.waitFor();
    const token = await scan(code);
    expect(token).toMatch(/^inv_[\w-]{32}$/);
    expect(await page.locator(".token").innerText()).toBe(token);
    const claimed = await device("visitor", "/v1/badge", { userId: "visitor", invitationToken: token });
    expect(claimed.status).toBe(201);
    const card = page.getByRole("article", { name: `Invitation to number ${claimed.body.badgeId}` });
    await card.getByText("Waiting").waitFor();
    await page.getByRole("button", { name: "Done" }).click();
    expect(await page.locator(":focus").innerText()).toBe("Invite a visitor");
    expect(await page.content()).not.toContain(token);
    await page.getByLabel("Show").selectOption({ label: "Claimed" });
    await card.getByText("visitor").waitFor();
  });

  it("revokes an invitation that nobody has claimed", async () => {
    await page.getByLabel("No end").check();
    await page.getByRole("button", { name: "Create invitation" }).click();
    const token = await page.locator(".token").innerText();
    await page.getByRole("button", { name: "Done" }).click();
    await page.getByLabel("Show").selectOption({ label: "Waiting" });
    await page.getByRole("button", { name: "Revoke" }).click();
    await page.getByRole("dialog").getByText("This cannot be undone.").waitFor();
    await confirm(page, "Revoke invitation");
    await page.getByText("No invitation is in this state.").waitFor();
    const late = await device("late", "/v1/badge", { userId: "late", invitationToken: token });
    expect(late.body).toEqual({ error: "REVOKED_INVITATION" });
  });

  it("asks how long the visitor may enter, and names the field whose time is wrong (sections 5 and 12)", async () => {
    await openView(page, "Badges");
    await openView(page, "Invitations");
    const create = page.getByRole("button", { name: "Create invitation" });
    const newest = async () => (await server.listInvitations({ perPage: 1 }).invitations().next()).value;
    const before = await newest();
    await create.click();
    const isMissing = (label: string) =>
      page.getByLabel(label).evaluate((input: HTMLInputElement) => input.validity.valueMissing);
    expect(await isMissing("No end")).toBe(true);
    await page.getByLabel("Visitor may enter until: date and time").fill("2020-01-31T18:00");
    await create.click();
    await page.getByRole("alert").getByText("“Visitor may enter until”: choose a time in the future").waitFor();
    await page.getByLabel("Visitor may enter until: date and time").fill("2030-01-31T18:00");
    await page.getByLabel("The code must be scanned by").fill("2030-01-31T18:01");
    await create.click();
    await page.getByRole("alert").getByText("“The code must be scanned by”: choose a time").waitFor();
    const [soon, later] = [3_600_000, 7_200_000].map((ahead) => new Date(Date.now() + ahead + 9 * 3_600_000));
    await page.getByLabel("Visitor may enter until: date and time").fill(soon?.toISOString().slice(0, 16) ?? "");
    await page.getByLabel("The code must be scanned by").fill(later?.toISOString().slice(0, 16) ?? "");
    await create.click();
    await page.getByRole("alert").getByText("the badge would have ended before").waitFor();
    expect(await page.locator(":focus").getAttribute("aria-invalid")).toBe("true");
    expect(await newest()).toEqual(before);
    await openView(page, "Badges");
    await openView(page, "Invitations");
    await page.getByLabel("Visitor may enter until: date and time").fill(soon?.toISOString().slice(0, 16) ?? "");
    await create.click();
    await page.getByText("The visitor may enter until").waitFor();
    const created = await newest();
    const inUtc = new Date((soon?.getTime() ?? 0) - 9 * 3_600_000).toISOString();
    expect(created?.badgeExpiresAt?.slice(0, 16)).toBe(inUtc.slice(0, 16));
    expect(created?.expiresAt).toBe(created?.badgeExpiresAt);
  });

  it("asks before a code that was not copied is left", async () => {
    const token = await page.locator(".token").innerText();
    const stay = () => page.getByRole("dialog").getByRole("button", { name: "Cancel" }).click();
    await page.getByRole("link", { name: "Badges" }).click();
    await page.getByRole("dialog").getByText("The code was not copied").waitFor();
    await stay();
    await until(() => expect(page.url()).toMatch(/#invitations$/));
    await page.getByRole("button", { name: "Sign out" }).click();
    await page.getByRole("dialog").getByText("The code was not copied").waitFor();
    await stay();
    expect(await page.locator(".token").innerText()).toBe(token);
    await page.getByRole("link", { name: "Badges" }).click();
    await confirm(page, "Leave without it");
    await page.getByRole("heading", { name: "Badges", level: 1 }).waitFor();
    await openView(page, "Invitations");
    expect(await page.locator(".token").count()).toBe(0);
    await page.getByLabel("No end").check();
    await page.getByRole("button", { name: "Create invitation" }).click();
    await page.context().grantPermissions(["clipboard-read", "clipboard-write"]);
    await page.getByRole("button", { name: "Copy text" }).click();
    await page.getByText("Copied.").waitFor();
    await openView(page, "Badges");
  });

  it("shows deliveries with problems first, why one failed, and sends it again: once, and says how that went", async () => {
    const replays: string[] = [];
    page.on("request", (request) => request.url().endsWith("/replay") && replays.push(request.url()));
    await openView(page, "Overview");
    await page.getByRole("link", { name: "1 delivery with problems" }).click();
    const delivery = page.getByRole("article");
    await delivery.getByText("The receiver responded with HTTP status 500").waitFor();
    expect(await page.getByLabel("Show").locator("option").first().innerText()).toBe("Problems");
    await delivery.getByText("Payload and response").click();
    await delivery.getByText('"userId": "grace"').waitFor();
    await delivery.getByText("disk full").waitFor();
    const { promise, resolve: respond } = Promise.withResolvers<void>();
    heldBack = promise;
    await delivery.getByRole("button", { name: "Send again" }).dblclick();
    await message(page).getByText("“Badge issued” is being sent again.").waitFor();
    await delivery.locator(".actions button").dispatchEvent("click");
    respond();
    await message(page).getByText("“Badge issued” was sent again and failed").waitFor();
    await delivery.getByText("The receiver responded with HTTP status 500").waitFor();
    expect(replays).toHaveLength(1);
    isBroken = false;
    await delivery.getByRole("button", { name: "Send again" }).click();
    await message(page).getByText("“Badge issued” was sent again: the receiver has confirmed it.").waitFor();
    expect(received.some((body) => body.includes('"userId":"grace"'))).toBe(true);
    await delivery.getByText("The receiver has confirmed it.").waitFor();
    await page.getByRole("button", { name: "Load again" }).click();
    await page.getByText("No problems").waitFor();
  });

  it("keeps two tabs apart: the second is not signed in, and a step that comes too late shows how the badge is", async () => {
    const other = await page.context().newPage();
    await open(other);
    await signIn(other);
    await page.bringToFront();
    await find(page, number("frank"));
    await badge(page, "frank").getByRole("button", { name: "Suspend" }).waitFor();
    await other.bringToFront();
    await find(other, number("frank"));
    await badge(other, "frank").getByRole("button", { name: "Revoke" }).click();
    await confirm(other, "Revoke badge");
    await badge(other, "frank").getByText("Revoked", { exact: true }).waitFor();
    // Chromium draws a tab in the background late.
    await page.bringToFront();
    await badge(page, "frank").getByRole("button", { name: "Suspend" }).click();
    await confirm(page, "Suspend badge");
    await page.getByRole("alert").getByText("The badge has ended meanwhile").waitFor();
    await page.getByRole("dialog").getByRole("button", { name: "Cancel" }).click();
    await badge(page, "frank").getByText("Revoked", { exact: true }).waitFor();
    await other.close();
  });

  it("tells when the service does not respond, and goes on where it was", async () => {
    await page.route("**/v1/badges?**", (route) => route.abort());
    await openView(page, "Badges");
    await page.getByRole("button", { name: "Show all" }).click();
    await page.getByRole("alert").getByText("Check your connection, then try again.").waitFor();
    await page.unroute("**/v1/badges?**");
    await page.getByRole("button", { name: "Try again" }).click();
    await badge(page, "alice").waitFor();
    expect(await page.getByRole("alert").count()).toBe(0);
  });

  it("works by keyboard alone, and the focus is never lost: sign in, find, suspend, undo, sign out", async () => {
    await open(page);
    const { keyboard: keys } = page;
    /** Goes on to the element of this name. */
    const tabTo = async (name: string | RegExp) => {
      for (let steps = 0; steps < 60; steps++) {
        await keys.press("Tab");
        const focused = await page
          .locator(":focus")
          .evaluateAll(([element]) =>
            element instanceof HTMLInputElement ? (element.labels?.[0]?.innerText ?? "") : (element?.textContent ?? ""),
          );
        if (focused.trim().match(name)) return;
      }
      throw new Error(`Tab does not come to ${name}`);
    };
    await tabTo(/^Application ID/);
    await keys.type(service.applicationId);
    await tabTo(/^Secret/);
    await keys.type(secret);
    await keys.press("Enter");
    await page.getByText("Numbers left").waitFor();
    expect(await page.locator(":focus").innerText()).toBe("Overview");
    await tabTo("Badges");
    await keys.press("Enter");
    await tabTo("Badge number");
    await keys.type("heidi");
    await keys.press("Enter");
    await badge(page, "heidi").waitFor();
    await tabTo("Suspend");
    await keys.press("Enter");
    await page.getByRole("dialog").waitFor();
    await keys.press("Escape");
    await page.locator("dialog").waitFor({ state: "detached" });
    expect(await page.locator(":focus").innerText()).toBe("Suspend…");
    await keys.press("Enter");
    await tabTo("Suspend badge");
    await keys.press("Enter");
    await badge(page, "heidi").getByText("Suspended", { exact: true }).waitFor();
    expect(await signed("heidi")).toBe("403 SUSPENDED_BADGE");
    const focused = page.locator(":focus");
    expect(await focused.innerText()).toMatch(/is suspended\.$/);
    await keys.press("Tab");
    expect(await focused.innerText()).toBe("Undo");
    await keys.press("Enter");
    await badge(page, "heidi").getByText("Active", { exact: true }).waitFor();
    expect(await focused.innerText()).toMatch(/is active again\.$/);
    await tabTo("✕");
    await keys.press("Enter");
    expect(await focused.innerText()).toBe("Suspend…");
    await page.evaluate(() => document.activeElement instanceof HTMLElement && document.activeElement.blur());
    await tabTo("Sign out");
    await keys.press("Enter");
    await page.getByText("You are signed out.").waitFor();
    expect(await focused.innerText()).toMatch(/^You are signed out\./);
  });

  it("has no fault that axe-core finds in any view, light on a desktop and dark on a phone of 360 px, and fits both", async () => {
    const looks = [
      // By default what depends on the colours: the other rules see the elements of the desktop again.
      ["dark", PHONE, byEffort(["color-contrast"], undefined)],
      ["light", DESKTOP, undefined],
    ] as const;
    const faults: string[] = [];
    /** @param prepare what the size of the page undoes */
    const look = async (view: string, prepare?: () => Promise<void>) => {
      for (const [theme, viewport, rules] of looks) {
        await page.setViewportSize(viewport);
        await page.emulateMedia({ colorScheme: theme });
        await prepare?.();
        for (const fault of await faultsOf(page, "html", rules)) faults.push(`${view}, ${theme}: ${fault}`);
        const width = await page.evaluate(() => document.documentElement.scrollWidth);
        if (width !== viewport.width) faults.push(`${view}: ${width} px wide instead of ${viewport.width}`);
      }
    };
    await open(page);
    await look("sign-in");
    await signIn(page);
    await page.getByText("Numbers left").waitFor();
    await look("overview");
    await find(page, "alice");
    await badge(page, "alice").waitFor();
    await look("user");
    await badge(page, "alice").getByRole("button", { name: "Set end" }).click();
    await page.getByRole("dialog").waitFor();
    await look("dialog");
    await page.getByRole("dialog").getByRole("button", { name: "Cancel" }).click();
    await page.getByRole("button", { name: "Show all" }).click();
    await look("badges", () => badge(page, "carol").locator("time").hover());
    await openView(page, "Invitations");
    await page.getByRole("article").first().waitFor();
    await look("invitation form");
    await page.getByLabel("No end").check();
    await page.getByRole("button", { name: "Create invitation" }).click();
    await page.getByRole("img", { name: "QR code" }).waitFor();
    await page.getByText("Loading").waitFor({ state: "detached" });
    await look("invitations");
    await page.getByRole("button", { name: "Done" }).click();
    await find(page, "nobody");
    await page.getByText("Refuse this user ID").click();
    await look("unknown user");
    await find(page, number("alice"));
    await badge(page, "alice").getByRole("button", { name: "Suspend" }).click();
    await confirm(page, "Suspend badge");
    await message(page).getByRole("button", { name: "Undo" }).waitFor();
    await look("message");
    await page.getByRole("button", { name: "Undo" }).click();
    await message(page).getByText("is active again").waitFor();
    await openView(page, "Deliveries");
    await page.getByLabel("Show").selectOption({ label: "All" });
    await page.getByText("Payload and response").first().click();
    await look("deliveries");
    expect(faults).toEqual([]);
  });

  it("ends the session when the service no longer accepts the secret", async () => {
    await open(page);
    await signIn(page);
    await page.getByText("Numbers left").waitFor();
    // As after `secret retire`, once the isolate has forgotten the application (test/http/authorization/credentials.ts).
    await page.route("**/v1/badges?**", (route) =>
      route.fulfill({ status: 401, json: { error: "INVALID_CREDENTIALS" } }),
    );
    await page.getByRole("link", { name: "Badges" }).click();
    await page.getByText("The service no longer accepts your secret.").waitFor();
    await page.unroute("**/v1/badges?**");
  });

  it("forgets the secret when another page is opened: Back shows the sign-in", async () => {
    const left = await browser.newPage();
    await open(left);
    await left.evaluate(() =>
      addEventListener("pageshow", ({ persisted }) => document.body.setAttribute("data-persisted", `${persisted}`)),
    );
    await signIn(left);
    await left.getByText("Numbers left").waitFor();
    await left.getByRole("link", { name: "API reference" }).click();
    await left.waitForURL("**/docs", { waitUntil: "commit" });
    await left.evaluate(() => history.back());
    await left.locator("body[data-persisted=true]").waitFor();
    await left.getByText("You left this page, so this tab has forgotten the secret.").waitFor();
    expect(await left.getByText("Numbers left").count()).toBe(0);
    await left.close();
  });

  it("forgets the secret after an idle hour, and not before", async () => {
    // Of every page that is opened from here on.
    await page.clock.install();
    await open(page);
    await signIn(page);
    await page.getByText("Numbers left").waitFor();
    await page.clock.runFor(59 * 60_000);
    await page.mouse.move(10, 10);
    await page.clock.runFor(59 * 60_000);
    expect(await page.getByText("Numbers left").count()).toBe(1);
    await page.clock.runFor(2 * 60_000);
    await page.getByText("You were signed out after an hour without activity.").waitFor();
    expect(await page.getByText("Numbers left").count()).toBe(0);
  });

  it("does all that without a complaint in the console and without asking another host", () => {
    expect(complaints).toEqual([]);
    expect(foreignRequests).toEqual([]);
  });
});

/** Reads a QR code off the screen, as a phone's camera does. */
async function scan(code: ReturnType<Page["getByRole"]>): Promise<string> {
  const png = (await code.screenshot({ scale: "css" })).toString("base64");
  const { width, height, data } = await code.page().evaluate(async (base64) => {
    const bytes = Uint8Array.from(atob(base64), (character) => character.charCodeAt(0));
    const bitmap = await createImageBitmap(new Blob([bytes], { type: "image/png" }));
    const { width, height } = bitmap;
    const drawing = new OffscreenCanvas(width, height).getContext("2d");
    drawing?.drawImage(bitmap, 0, 0);
    const pixels = drawing?.getImageData(0, 0, width, height).data ?? new Uint8ClampedArray();
    // As an array of numbers they would take a second to be sent.
    return { width, height, data: Array.from(pixels, (byte) => String.fromCharCode(byte)).join("") };
  }, png);
  return decodeQr({ width, height, data: Uint8ClampedArray.from(Buffer.from(data, "latin1")) });
}
