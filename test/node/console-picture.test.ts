import { expect, it } from "vitest";
import { updateApplication } from "../../src/admin/application/update.ts";
import { browserOfFile, HAS_CHROMIUM, LIMIT } from "./support/browser.ts";
import { openConsole } from "./support/console-page.ts";
import { startHarness } from "./support/harness.ts";

/**
 * Takes the README's picture of the console, so that it can be taken again whenever the console changes:
 *
 *   CONSOLE_PICTURE=docs/console.png npx vitest run test/node/console-picture.test.ts
 *
 * Without that variable nothing is done.
 */

const HOUR = 3_600_000;

const SIZE = { width: 1280, height: 960 };

/** Name, begin and end in hours of the day, and whether the pass is on the visitor's phone. */
const VISITS = [
  ["Ann Lee", 8.5, 12, true],
  ["Jonas Weber", 9, 12.5, true],
  ["Mia Rossi", 9.25, 17, true],
  ["Omar Haddad", 9.5, 11.5, false],
  ["Priya Nair", 11, 12.5, false],
  ["Kofi Mensah", 13, 17, false],
  ["Elin Berg", 14, 15, false],
] as const;

/** It is this hour at reception whenever the picture is taken, so no visit has ended. */
const LOCAL_HOUR = 10;

const path = process.env.CONSOLE_PICTURE ?? "";
const { openContext } = browserOfFile();

/** Hours by which reception's clock is ahead of UTC, from -12 to 11. */
const offset = ((LOCAL_HOUR - new Date().getUTCHours() + 36) % 24) - 12;
/** The signs of these zones are the other way round (POSIX). */
const timezoneId = `Etc/GMT${offset > 0 ? "-" : "+"}${Math.abs(offset)}`;

function timeToday(hour: number): Date {
  const local = new Date(Date.now() + offset * HOUR);
  const midnight = Date.UTC(local.getUTCFullYear(), local.getUTCMonth(), local.getUTCDate()) - offset * HOUR;
  return new Date(midnight + hour * HOUR);
}

it.runIf(HAS_CHROMIUM && path !== "")(
  "the README's picture shows today's visitors, without scrolling",
  { timeout: LIMIT },
  async () => {
    const service = await startHarness();
    const { server, applicationId, homes, submit } = service;
    await updateApplication(homes, submit, applicationId, { name: "Harbour Tower" });
    for (const [name, from, until, isOnPhone] of VISITS) {
      const { id } = await server.createInvitation({
        ...{ udid: "reception", name, expiresAt: timeToday(23) },
        ...{ badgeStartsAt: timeToday(from), badgeExpiresAt: timeToday(until) },
      });
      if (isOnPhone) await service.phone(name).requestBadge({ userId: `visitor-${from}`, invitationToken: id });
    }
    const page = await (await openContext(service.origin, { timezoneId, viewport: SIZE })).newPage();
    await openConsole(page, service, service.applicationSecret);
    await page.getByRole("navigation", { name: "Views" }).getByRole("link", { name: "Visitors" }).click();
    await page.getByText(`${VISITS.length} visitors expected`).waitFor();
    await page.evaluate(() => document.querySelector<HTMLElement>("h1")?.blur());
    await page.screenshot({ path });
    const last = await page.getByRole("table", { name: "invitations" }).locator("tbody tr").last().boundingBox();
    expect((last?.y ?? Number.POSITIVE_INFINITY) + (last?.height ?? 0)).toBeLessThanOrEqual(SIZE.height);
  },
);
