import { decodeJwt } from "jose";
import type { BrowserContext, BrowserContextOptions, Page, Response, Route } from "playwright-core";
import { afterEach, beforeAll, describe, expect, it } from "vitest";
import type { NewInvitation, ServerClient } from "../../src/client/index.ts";
import { ageLimits, DoorControl } from "../../src/examples/door-control.ts";
import { until } from "../support/until.ts";
import { faultsOf } from "./support/axe.ts";
import { browserOfFile, HAS_CHROMIUM, isFailedLoad, LIMIT } from "./support/browser.ts";
import { type Harness, startHarness } from "./support/harness.ts";
import { scan } from "./support/scan.ts";

const HOUR = 3_600_000;

/** The smallest phone that the page promises to fit. */
const SMALL_PHONE = { viewport: { width: 320, height: 568 }, deviceScaleFactor: 2 };

const { openContext, conduct } = browserOfFile(isFailedLoad);
let service: Harness;
let server: ServerClient;
const contexts: BrowserContext[] = [];

beforeAll(async () => {
  service = await startHarness();
  ({ server } = service);
}, LIMIT);

afterEach(async () => {
  for (const context of contexts.splice(0)) await context.close();
}, LIMIT);

/** A phone of its own: another one has another context, with other storage. */
async function phone(options: BrowserContextOptions = {}): Promise<BrowserContext> {
  const context = await openContext(service.origin, { ...SMALL_PHONE, timezoneId: "Europe/Berlin", ...options });
  contexts.push(context);
  return context;
}

/** @returns the link of an invitation, and its number */
async function invite(wish: Partial<NewInvitation> = {}): Promise<{ link: string; token: string; badgeId: string }> {
  const expiresAt = new Date(Date.now() + HOUR);
  const { id, badgeId } = await server.createInvitation({ udid: "reception", expiresAt, ...wish });
  return { link: `${service.origin}/pass#${service.applicationId}/${id}`, token: id, badgeId };
}

const stateOf = async (token: string) => (await service.phone("desk").describeInvitation(token)).state;

const button = (page: Page) => page.getByRole("button", { name: "Show my pass" });
const code = (page: Page) => page.getByRole("img", { name: "The code of your pass" });
const says = (page: Page, text: string | RegExp) => page.getByRole("status").getByText(text).waitFor();
const OPEN = "Hold this code in front of the scanner at the door.";

async function open(context: BrowserContext, link: string): Promise<Page> {
  const page = await context.newPage();
  await page.goto(link);
  return page;
}

/** A page, not open yet, whose clock the test moves. */
async function newClockedPage(context?: BrowserContext): Promise<Page> {
  const page = await (context ?? (await phone())).newPage();
  await page.clock.install();
  return page;
}

/** Opens the link and taps the button. */
async function claim(context: BrowserContext, link: string): Promise<Page> {
  const page = await open(context, link);
  await button(page).click();
  await code(page).waitFor();
  return page;
}

/** The number on the code that a page shows. */
async function badgeOf(page: Page): Promise<unknown> {
  await code(page).waitFor();
  return decodeJwt(await scan(code(page))).sub;
}

describe.skipIf(!HAS_CHROMIUM)("/pass in a browser (contract section 27)", { timeout: LIMIT }, () => {
  it("the page says who is expected, where and when, and neither claims nor sends the token before the visitor taps", async () => {
    const badgeStartsAt = "2036-03-03T08:00:00Z";
    const { link, token } = await invite({ name: "Ann Lee", badgeStartsAt, badgeExpiresAt: "2036-03-03T18:00:00Z" });
    const context = await phone();
    const urls: string[] = [];
    context.on("request", (request) => urls.push(request.url()));
    const page = await open(context, link);
    await page.getByText("Ann Lee").waitFor();
    await page.getByText("Test", { exact: true }).waitFor();
    await page
      .getByText(/Monday,? 3 March 2036/)
      .first()
      .waitFor();
    await says(page, "Tap the button to get your pass");
    await page.reload();
    await button(page).waitFor();
    expect(await stateOf(token)).toBe("pending");
    expect(urls.filter((url) => url.includes(token) && !url.includes("#"))).toEqual([]);
  });

  it("a door opens for the page's code, but not for a photograph of it a minute later; the badge has a key that cannot leave the browser, and a user ID of its own", async () => {
    const { link, badgeId } = await invite();
    const page = await claim(await phone(), link);
    await says(page, OPEN);
    const jwt = await scan(code(page));
    let elapsed = 0;
    const door = await DoorControl.open({
      // Nothing can be written there.
      ...{ serviceUrl: service.origin, applicationId: service.applicationId, file: "/dev/null/door.json" },
      ...{ log: () => undefined, now: () => Date.now() + elapsed },
    });
    expect(await door.refresh()).toBe(true);
    // As the door example does with --max-age 60.
    expect(await door.check(jwt, ageLimits(60))).toMatchObject({ ok: true, badgeNumber: badgeId });
    elapsed = 61_000;
    expect(await door.check(jwt, ageLimits(60))).toMatchObject({ ok: false, reason: "too-old" });
    const badge = await server.getBadge(badgeId);
    expect(badge.userId).toMatch(/^visitor-[0-9a-f]{32}$/);
    expect(badge.keyThumbprint).toMatch(/^[\w-]{43}$/);
    const kept = await page.evaluate(async () => {
      const opening = indexedDB.open("visitor-pass");
      await new Promise((resolve) => opening.addEventListener("success", resolve));
      const all = opening.result.transaction("identities").objectStore("identities").getAll();
      await new Promise((resolve) => all.addEventListener("success", resolve));
      const [{ keys, ...others }] = all.result;
      const exported = await crypto.subtle.exportKey("pkcs8", keys.privateKey).then(
        () => "a key",
        (error: Error) => error.name,
      );
      return { exported, others: Object.keys(others) };
    });
    expect(kept).toEqual({ exported: "InvalidAccessError", others: ["udid", "userId"] });
  });

  it("the page shows the same pass after a reload, in a second tab, on Back and by a bookmark", async () => {
    const { link, badgeId } = await invite();
    const context = await phone();
    const page = await claim(context, link);
    await page.reload();
    expect(await badgeOf(page)).toBe(badgeId);
    const second = await open(context, link);
    expect(await badgeOf(second)).toBe(badgeId);
    await page.goto(`${service.origin}/console`);
    // Not `goBack`, which waits for a load: the browser may have kept the page with its memory.
    await page.evaluate(() => history.back());
    await page.waitForURL(link, { waitUntil: "commit" });
    expect(await badgeOf(page)).toBe(badgeId);
  });

  it("two tabs that are tapped at once get one pass, for the user whom the invitation names (section 24)", async () => {
    const { link, badgeId } = await invite({ userId: "carl" });
    const context = await phone();
    const tabs = [await open(context, link), await open(context, link)];
    for (const tab of tabs) await button(tab).waitFor();
    await Promise.all(tabs.map((tab) => tab.evaluate(() => document.querySelector("button")?.click())));
    for (const tab of tabs) {
      await tab.bringToFront();
      expect(await badgeOf(tab)).toBe(badgeId);
    }
    expect((await server.getBadge(badgeId)).userId).toBe("carl");
  });

  it("a second tab shows the same pass if the first one claims it while the second asks for the invitation", async () => {
    const { link, badgeId } = await invite();
    const context = await phone();
    const first = await open(context, link);
    await button(first).waitFor();
    const second = await context.newPage();
    const isAsking = second.waitForRequest("**/v1/invitation");
    const { promise: isClaimed, resolve: haveClaimed } = Promise.withResolvers<void>();
    await second.route("**/v1/invitation", (route) => isClaimed.then(() => route.continue()));
    await second.goto(link);
    await isAsking;
    await first.bringToFront();
    await button(first).click();
    await code(first).waitFor();
    haveClaimed();
    await second.bringToFront();
    expect(await badgeOf(second)).toBe(badgeId);
  });

  it("the page says that another phone has the pass", async () => {
    const { link } = await invite();
    const late = await open(await phone(), link);
    await button(late).waitFor();
    await claim(await phone(), link);
    await button(late).click();
    await says(late, "This pass is on another phone or in another browser");
    expect(await code(late).count()).toBe(0);
  });

  it("the code is renewed every 30 seconds in view, and 10 seconds before it expires, but not out of view", async () => {
    const { link } = await invite();
    const page = await newClockedPage();
    let signatures = 0;
    const isSignature = (response: Response) => response.url().endsWith("/v1/badge/sign") && response.ok();
    page.on("response", (response) => {
      if (isSignature(response)) signatures++;
    });
    await page.goto(link);
    await button(page).click();
    await code(page).waitFor();
    const after = async (seconds: number, expected: number) => {
      signatures = 0;
      const isRenewed = expected > 0 ? page.waitForResponse(isSignature) : null;
      await page.clock.runFor(seconds * 1000);
      await isRenewed;
      expect(signatures).toBe(expected);
      // What follows the response has been done.
      await page.evaluate(() => document.querySelector(".code")?.getAttribute("viewBox"));
    };
    const drawn = () => page.locator(".code path").getAttribute("d");
    const first = await drawn();
    await after(29, 0);
    await after(1, 1);
    await until(async () => expect(await drawn()).not.toBe(first));
    // As if the application had a signature lifetime. A door would refuse it; the page does not look at the signature.
    await page.route("**/v1/badge/sign", async (route) => {
      const response = await route.fetch();
      // Of its clock, which has gone ahead: the service asks for a nonce.
      if (!response.ok()) return route.fulfill({ response });
      const { signature } = await response.json();
      const [header, , proof] = String(signature).split(".");
      const claims = decodeJwt(String(signature));
      const shorter = { ...claims, exp: Number(claims.iat) + 25 };
      const payload = Buffer.from(JSON.stringify(shorter)).toString("base64url");
      await route.fulfill({ response, json: { signature: [header, payload, proof].join(".") } });
    });
    await after(30, 1);
    await after(14, 0);
    await after(1, 1);
    const become = (visibility: string) =>
      page.evaluate((value) => {
        Object.defineProperty(document, "visibilityState", { value, configurable: true });
        document.dispatchEvent(new Event("visibilitychange"));
      }, visibility);
    await become("hidden");
    await after(300, 0);
    const isRenewed = page.waitForResponse(isSignature);
    // On a slow network the old code does not look new meanwhile.
    const slow = Promise.withResolvers<void>();
    await page.route("**/v1/badge/sign", (route) => slow.promise.then(() => route.fallback()));
    await become("visible");
    await page.clock.runFor(1);
    await says(page, "There is no new code yet; this is your last one, 5 minutes old, and a door may refuse it.");
    slow.resolve();
    await isRenewed;
    await says(page, OPEN);
    // The phone is pocketed while a code is on its way: neither that code nor the last one looks new an hour later.
    const late = Promise.withResolvers<void>();
    const fetched = Promise.withResolvers<void>();
    const onItsWay = async (route: Route) => {
      const response = await route.fetch();
      fetched.resolve();
      await late.promise;
      await route.fulfill({ response });
    };
    await page.route("**/v1/badge/sign", onItsWay, { times: 1 });
    await page.clock.runFor(15_000);
    await fetched.promise;
    await become("hidden");
    await page.clock.setSystemTime((await page.evaluate(() => Date.now())) + HOUR);
    await become("visible");
    await says(page, /your last one, .* old, and a door may refuse it/);
    const isLate = page.waitForResponse(isSignature);
    late.resolve();
    await isLate;
    await says(page, /your last one, .* old, and a door may refuse it/);
    const isNew = page.waitForResponse(isSignature);
    await page.clock.runFor(1000);
    await isNew;
    await says(page, OPEN);
  });

  it("the page works on a slow network, and with a clock that is an hour off, by the service's nonce (section 15), and several taps count once", async () => {
    const { link, badgeId } = await invite();
    const context = await phone();
    await context.addInitScript((by) => {
      const { now } = Date;
      Date.now = () => now() + by;
    }, HOUR);
    const page = await context.newPage();
    const [described, claimed] = [Promise.withResolvers<void>(), Promise.withResolvers<void>()];
    let claims = 0;
    await page.route("**/v1/invitation", (route) => described.promise.then(() => route.continue()));
    await page.route("**/v1/badge", async (route) => {
      await claimed.promise;
      const response = await route.fetch();
      if (response.ok()) claims++;
      await route.fulfill({ response });
    });
    await page.goto(link);
    await says(page, "One moment, please.");
    described.resolve();
    await button(page).evaluate((tapped: HTMLElement) => {
      tapped.click();
      tapped.click();
    });
    await says(page, "One moment, please.");
    claimed.resolve();
    expect([await badgeOf(page), claims]).toEqual([badgeId, 1]);
  });

  it("without a network the page shows the last code with its age, and a new one when the network is back", async () => {
    const { link, badgeId } = await invite();
    const context = await phone();
    const page = await newClockedPage(context);
    await page.goto(link);
    await button(page).click();
    expect(await badgeOf(page)).toBe(badgeId);
    await context.setOffline(true);
    await page.clock.runFor(30_000);
    await until(async () => {
      await page.clock.runFor(1000);
      await says(page, /There is no network; this is your last code, \d+ seconds old, and a door may refuse it\./);
    });
    await page.clock.runFor(40_000);
    await says(page, /[7-9]\d seconds old/);
    expect(await badgeOf(page)).toBe(badgeId);
    await context.setOffline(false);
    await until(async () => {
      await page.clock.runFor(1000);
      expect(await page.getByRole("status").innerText()).toBe(OPEN);
    });
  });

  it("a page opened without a network retries by itself, and a claim whose response was lost gets the same pass", async () => {
    const { link, badgeId } = await invite();
    const page = await newClockedPage();
    await page.route("**/v1/invitation", (route) => route.abort());
    await page.goto(link);
    await says(page, "There is no network; this page tries again by itself.");
    await page.unroute("**/v1/invitation");
    await page.clock.runFor(5000);
    await button(page).waitFor();
    await page.route("**/v1/badge", async (route) => {
      await route.fetch();
      await route.abort();
    });
    await button(page).click();
    await says(page, "There is no network; this page tries again by itself.");
    await page.unroute("**/v1/badge");
    await page.clock.runFor(5000);
    expect(await badgeOf(page)).toBe(badgeId);
  });

  it("the page says, without a reload, when the pass begins and ends, also after reception moves that, and that it is on hold, withdrawn or over", async () => {
    const { link, badgeId } = await invite({ badgeStartsAt: "2040-01-31T09:00:00Z" });
    const page = await newClockedPage();
    await page.goto(link);
    await button(page).click();
    await says(page, /^Your pass begins on Tuesday,? 31 January 2040 at 10:00 CET\.$/);
    const shows = async (part: "status" | "main", text: RegExp) => {
      // To shortly before the next call.
      await page.clock.runFor(28_000);
      await until(async () => {
        // A second at a time: the page gives up on a call after 10 s of its clock, and the service needs real time to respond.
        await page.clock.runFor(1000);
        expect(await page.getByRole(part).innerText()).toMatch(text);
      });
    };
    const showsStatus = async (text: string) => {
      await shows("status", new RegExp(`^${text.replaceAll(".", "\\.")}$`));
      expect(await code(page).count()).toBe(text === OPEN ? 1 : 0);
    };
    await server.setBadgeTimes(badgeId, { startsAt: "2040-02-01T08:00:00Z", expiresAt: "2040-02-01T16:00:00Z" });
    await shows(
      "main",
      /Your pass begins on Wednesday,? 1 February 2040 at 0?9:00 CET\..*Wednesday,? 1 February 2040 at 17:00 CET/s,
    );
    await server.setBadgeTimes(badgeId, { startsAt: null });
    await showsStatus(OPEN);
    await server.setBadgeTimes(badgeId, { expiresAt: "2040-02-02T17:00:00Z" });
    // As when the visitor takes the phone out again.
    await page.evaluate(() => document.dispatchEvent(new Event("visibilitychange")));
    await shows("main", /Thursday,? 2 February 2040 at 18:00/);
    await server.suspendBadge(badgeId);
    await showsStatus("This pass is on hold; please ask at reception.");
    await server.resumeBadge(badgeId);
    await showsStatus(OPEN);
    await server.setBadgeEnd(badgeId, new Date(Date.now() - 1000));
    await showsStatus("Your visit has ended.");
    await server.revokeBadge(badgeId);
    await showsStatus("This pass has been withdrawn; please ask at reception.");
  });

  it("the page says that an invitation was revoked or has expired, that the visit is over, and that a wrong or cut-off link leads to no pass", async () => {
    const soon = () => new Date(Date.now() + 1500);
    const [expired, over] = [
      await invite({ expiresAt: soon(), badgeExpiresAt: new Date(Date.now() + HOUR) }),
      await invite({ expiresAt: soon(), badgeExpiresAt: soon() }),
    ];
    const { link, token } = await invite();
    await server.revokeInvitation(token);
    const context = await phone();
    await says(await open(context, link), "This pass has been withdrawn; please ask at reception.");
    for (const broken of [link.slice(0, -3), link.replace(/#.*/, ""), link.replace(/#app_/, "#app_0")]) {
      await says(await open(context, broken), "This link leads to no pass; please ask for a new one.");
    }
    await until(async () => expect(await stateOf(over.token)).toBe("expired"));
    await says(await open(context, expired.link), "This link has expired; please ask for a new one.");
    await says(await open(context, over.link), "Your visit has ended.");
  });

  it("the page asks again for a pass of an application that is unknown for a while", async () => {
    const { link } = await invite();
    const page = await newClockedPage();
    const refusal = { error: "INVALID_APPLICATIONID", message: "applicationid is not known" };
    await page.route("**/v1/invitation", (route) => route.fulfill({ status: 401, json: refusal }));
    await page.goto(link);
    await says(page, "This link leads to no pass; please ask for a new one.");
    await page.unroute("**/v1/invitation");
    await page.clock.runFor(30_000);
    await button(page).waitFor();
  });

  it("the page waits as long as a refused call's Retry-After says", async () => {
    const { link } = await invite();
    const page = await newClockedPage();
    let calls = 0;
    await page.route("**/v1/invitation", (route) => {
      calls++;
      return route.fulfill({ status: 429, json: { error: "RATE_LIMITED" }, headers: { "retry-after": "60" } });
    });
    await page.goto(link);
    await says(page, "The service does not respond as it should");
    await page.clock.runFor(59_000);
    expect(calls).toBe(1);
    await page.clock.runFor(1000);
    await until(() => expect(calls).toBe(2));
  });

  it("the page says that a browser that stores nothing is unsuitable, and claims nothing there", async () => {
    const { link, token } = await invite();
    const context = await phone();
    await context.addInitScript(() => Reflect.deleteProperty(IDBObjectStore.prototype, "add"));
    const page = await newClockedPage(context);
    await page.goto(link);
    await button(page).click();
    await says(page, "This browser cannot keep a pass");
    let requests = 0;
    page.on("request", () => requests++);
    await page.clock.runFor(60_000);
    await page.waitForTimeout(300);
    expect(requests).toBe(0);
    await says(page, "This browser cannot keep a pass");
    expect(await stateOf(token)).toBe("pending");
    const without = await phone();
    await without.addInitScript(() => Reflect.deleteProperty(globalThis, "indexedDB"));
    await without.addInitScript(() => Object.defineProperty(globalThis, "isSecureContext", { value: false }));
    await says(await open(without, link), "This browser cannot keep a pass");
  });

  it("the page is German in a German browser, also in its lang attribute", async () => {
    const { link } = await invite({ badgeStartsAt: "2040-01-31T09:00:00Z" });
    const page = await open(await phone({ locale: "de-DE" }), link);
    await page.getByRole("button", { name: "Meinen Ausweis zeigen" }).click();
    await says(page, /^Ihr Ausweis gilt ab Dienstag, 31\. Januar 2040 um 10:00 MEZ\.$/);
    const names = await page.evaluate(() => [document.documentElement.lang, document.title]);
    expect(names).toEqual(["de", "Besucherausweis"]);
    await says(await open(await phone({ locale: "fr-FR" }), link), "This pass is on another phone");
  });

  it("the page has no axe-core violation, fits 320 px, and shows a code of at least 240 px, dark on light in both themes", async () => {
    const { link, badgeId } = await invite({ name: "Ann Lee-Bartholomew of the very long name" });
    const fits = async (page: Page) => {
      await page.getByText("Ann Lee-Bartholomew").waitFor();
      expect(await faultsOf(page)).toEqual([]);
      expect(await page.evaluate(() => document.documentElement.scrollWidth)).toBeLessThanOrEqual(320);
    };
    const page = await open(await phone(), link);
    await button(page).waitFor();
    await fits(page);
    await button(page).click();
    expect(await badgeOf(page)).toBe(badgeId);
    for (const colorScheme of ["light", "dark"] as const) {
      await page.emulateMedia({ colorScheme });
      await fits(page);
      const box = await code(page).boundingBox();
      expect(Math.min(box?.width ?? 0, box?.height ?? 0)).toBeGreaterThanOrEqual(240);
      const parts = page.locator(".code > *");
      const fills = await parts.evaluateAll((all) => all.map((part) => getComputedStyle(part).fill));
      expect(fills).toEqual(["rgb(255, 255, 255)", "rgb(0, 0, 0)"]);
      expect(await page.evaluate(() => getComputedStyle(document.body).fontSize)).toBe("20px");
    }
    await fits(await open(await phone({ colorScheme: "dark" }), link));
  });

  it("the page causes no message in the browser's console and no request to another host", () => {
    expect(conduct).toEqual({ foreignRequests: [], complaints: [] });
  });
});
