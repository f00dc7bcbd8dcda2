import { describe, expect, it } from "vitest";
import { z } from "zod";
import { issueTo } from "../badges/life-support.ts";
import { takeOver } from "../support/allocator.ts";
import { createApplication, type TestApplication } from "../support/application.ts";
import { byEffort } from "../support/effort.ts";
import { homeDatabase } from "../support/home.ts";
import { callServer, requestBadge } from "../support/http.ts";
import { fc } from "../support/random.ts";
import { countBadges } from "../support/rows.ts";
import { inParallel, outcome } from "./support/draft.ts";
import { invite } from "./support/invitations.ts";
import { listPage } from "./support/pages.ts";

const listed = z.array(z.strictObject({ id: z.string(), userId: z.string(), metadata: z.unknown().optional() }));

interface Page {
  badges: z.infer<typeof listed>;
  next: string | null;
}

/** @param query with its question mark */
async function page(application: TestApplication, query = "", path = "/v1/badges"): Promise<Page> {
  const { items, next } = await listPage(application, `${path}${query}`);
  return { badges: listed.parse(items), next };
}

const ofUser = (userId: string) => `/v1/users/${encodeURIComponent(userId)}/badges`;

/**
 * Badges as the service writes them, without the time that issuing takes: one for each of these users, in this order. They are
 * the first of the application; the next that it issues comes after them.
 */
async function insert(application: TestApplication, userIds: readonly string[]): Promise<void> {
  const d1 = homeDatabase();
  const { id, firstNumber } = application;
  const badges = d1.prepare(
    `INSERT INTO badge (number, application_id, device, user_id, ordinal, login_sequence, change)
     SELECT ?3 + key, ?2, 'device ' || key, value, key + 1, 1, key + 1 FROM json_each(?1)`,
  );
  const head = countBadges(application, userIds.length);
  await d1.batch([badges.bind(JSON.stringify(userIds), id, firstNumber), head]);
  await takeOver(application);
}

const users = (count: number) => Array.from({ length: count }, (_, place) => `user ${place}`);

const ids = ({ badges }: Page) => badges.map(({ id }) => id);

/** All pages one after the other. */
async function* pages(application: TestApplication, perPage: () => number, path = "/v1/badges"): AsyncGenerator<Page> {
  let found: Page | null = null;
  do {
    const cursor: string = found?.next ? `&cursor=${found.next}` : "";
    found = await page(application, `?per_page=${perPage()}${cursor}`, path);
    yield found;
  } while (found.next !== null);
}

describe("the size of a page (contract section 4)", () => {
  it("a page has 100 badges by default and at most 1,000; the header is present only if more follow", async () => {
    const application = await createApplication();
    await insert(application, users(1000 + 1));
    const sizes: [query: string, size: number][] = [
      ["", 100],
      ["?per_page=1", 1],
      ["?per_page=007", 7],
      ["?per_page=1000", 1000],
      ["?per_page=1001", 1000],
      [`?per_page=${"9".repeat(400)}`, 1000],
      ["?perPage=3&page=2&limit=5", 100],
    ];
    for (const [query, size] of sizes) {
      const found = await page(application, query);
      expect(`${query}: ${found.badges.length}`).toBe(`${query}: ${size}`);
      expect(found.next).toMatch(/^[\w-]+$/);
    }
    const shown: string[] = [];
    for await (const found of pages(application, () => 1000)) {
      shown.push(...ids(found));
      expect(found.next !== null).toBe(shown.length <= 1000);
    }
    const numbers = Array.from({ length: 1000 + 1 }, (_, place) => String(application.firstNumber + place));
    expect(shown).toEqual(numbers);
  });

  it("there is no next page when the last page is exactly full, or when there are no badges", async () => {
    const application = await createApplication();
    expect(await page(application)).toEqual({ badges: [], next: null });
    const issued = [await issueTo(application, "a", "user"), await issueTo(application, "b", "user")];
    for (const path of ["/v1/badges", ofUser("user")]) {
      const full = await page(application, "?per_page=2", path);
      expect(ids(full)).toEqual(issued);
      expect(full.next).toBeNull();
      expect((await page(application, "?per_page=1", path)).next).not.toBeNull();
    }
  });

  it("the size of a page is a positive integer", async () => {
    const application = await createApplication();
    const numbers = ["0", "00", "-1", "+1", "1.0", "1.5", "1e2", "0x10", "1_000", "1,000", "Infinity", "NaN", "\u0661"];
    const texts = ["", " ", " 5", "5 ", "ten", "5\n", "5\0", "true", "null", "5;6"];
    for (const value of [...numbers, ...texts]) {
      const query = new URLSearchParams({ per_page: value });
      const answer = await callServer(application, "GET", `/v1/badges?${query}`);
      expect(`${value}: ${outcome(answer)}`).toBe(`${value}: 422 INVALID_PER_PAGE`);
    }
    const twice = await callServer(application, "GET", "/v1/badges?per_page=1&per_page=2");
    expect(outcome(twice)).toBe("422 INVALID_PER_PAGE");
  });
});

describe("the cursor (contract section 4)", () => {
  it("a cursor that the service did not make is refused", async () => {
    const application = await createApplication();
    await issueTo(application, "a", "user");
    await issueTo(application, "b", "user");
    const next = (await page(application, "?per_page=1")).next ?? "";
    expect(next).not.toBe("");
    const base64Url = (text: string) => btoa(text).replaceAll("+", "-").replaceAll("/", "_").replaceAll("=", "");
    const longer = [`${next}A`, `A${next}`, `${next}=`, `${next} `, `${next}${next}`];
    const shorter = [next.slice(1), next.slice(0, -1), next.toLowerCase()];
    const noPositions = ["", " 1", "1 ", "01", "+1", "-1", "1.5", "1e3", "0x1", "1,2", "NaN", "1 OR 1=1"];
    const tooLarge = ["9007199254740993", "9999999999999999", "1".repeat(30)];
    const forged = [...noPositions, ...tooLarge].map((position) => base64Url(`after:${position}`));
    const otherForms = [base64Url('{"after":1}'), base64Url("before:1"), btoa("after:12345"), "A".repeat(5000)];
    const texts = ["", " ", "0", "1", "null", "!", "\0", "....", "\u00e9", "A", "AAAA", "{}", "__proto__"];
    for (const path of ["/v1/badges", ofUser("user")]) {
      for (const cursor of [...longer, ...shorter, ...forged, ...otherForms, ...texts]) {
        const query = new URLSearchParams({ cursor });
        const answer = await callServer(application, "GET", `${path}?${query}`);
        expect(`${JSON.stringify(cursor)}: ${outcome(answer)}`).toBe(`${JSON.stringify(cursor)}: 422 INVALID_CURSOR`);
      }
      const twice = await callServer(application, "GET", `${path}?cursor=${next}&cursor=${next}`);
      expect(outcome(twice)).toBe("422 INVALID_CURSOR");
    }
  });

  it("a cursor continues where the page ended, on every use and with another page size", async () => {
    const application = await createApplication();
    const issued: string[] = [];
    for (const udid of ["a", "b", "c", "d"]) issued.push(await issueTo(application, udid, "user"));
    const { next } = await page(application, "?per_page=1");
    for (const size of [1, 2, 3, 1]) {
      expect(ids(await page(application, `?per_page=${size}&cursor=${next}`))).toEqual(issued.slice(1, 1 + size));
    }
  });
});

interface Known {
  id: string;
  userId: string;
}

/** An application to which things happen, each on a device of its own, and all badges it should list, oldest first. */
async function growingApplication(): Promise<{
  application: TestApplication;
  known: Known[];
  happen: (event: string) => Promise<void>;
}> {
  const application = await createApplication();
  const known: Known[] = [];
  let devices = 0;
  const happen = async (event: string) => {
    const udid = `phone ${devices++}`;
    const userId = event === "issue to user" ? "user" : `user of ${udid}`;
    if (event.startsWith("issue")) known.push({ id: await issueTo(application, udid, userId), userId });
    else {
      const { id: invitationToken, badgeId } = await invite(application);
      if (event === "reserve") return;
      expect((await requestBadge(application, udid, { userId, invitationToken })).status).toBe(201);
      known.push({ id: badgeId, userId });
    }
  };
  return { application, known, happen };
}

const shownBy = (path: string, known: readonly Known[]) =>
  known.filter(({ userId }) => path === "/v1/badges" || userId === "user");

describe("paging while badges are issued (contract section 4)", () => {
  it("paging shows each badge that existed at the start once, oldest first, for any page sizes", async () => {
    const events = fc.array(fc.constantFrom("issue", "issue to user", "reserve", "claim"), { maxLength: 3 });
    const run = fc.asyncProperty(
      fc.integer({ min: 0, max: 8 }),
      fc.infiniteStream(fc.integer({ min: 1, max: 5 })),
      fc.infiniteStream(events),
      async (count, sizes, meanwhile) => {
        const { application, known, happen } = await growingApplication();
        for (let place = 0; place < count; place++) await happen(place % 2 === 0 ? "issue to user" : "issue");
        for (const path of ["/v1/badges", ofUser("user")]) {
          const atStart = shownBy(path, known).length;
          let shown = 0;
          for await (const { badges, next } of pages(application, () => sizes.next().value, path)) {
            const expected = shownBy(path, known);
            expect(badges).toEqual(expected.slice(shown, shown + badges.length));
            shown += badges.length;
            expect(next !== null).toBe(shown < expected.length);
            // What is issued for ever is paged for ever: it stops after a while.
            if (known.length < 20) for (const event of meanwhile.next().value) await happen(event);
          }
          expect(shown).toBeGreaterThanOrEqual(atStart);
        }
      },
    );
    await fc.assert(run, { numRuns: byEffort(4, 80) });
  });

  it("paging shows each badge once also while others are being issued", async () => {
    const application = await createApplication();
    await insert(application, users(40));
    const before = ids(await page(application));
    expect(before).toHaveLength(40);
    const later = Array.from({ length: 24 }, (_, place) => `later phone ${place}`);
    const issuing = inParallel(later, (udid) => issueTo(application, udid, "later user"), 4);
    const shown: string[] = [];
    for await (const found of pages(application, () => 3)) shown.push(...ids(found));
    const issued = await issuing;
    expect(new Set(shown).size).toBe(shown.length);
    expect(shown.slice(0, before.length)).toEqual(before);
    const after = ids(await page(application));
    expect(after.slice(0, before.length)).toEqual(before);
    expect(new Set(after.slice(before.length))).toEqual(new Set(issued));
  });
});

describe("what is listed (contract section 4)", () => {
  it("a page lists issued badges, without reservations and retired ones", async () => {
    const application = await createApplication();
    const replaced = await issueTo(application, "phone", "user");
    const kept = await issueTo(application, "tablet", "user");
    const { id: invitationToken, badgeId } = await invite(application);
    await invite(application);
    expect(ids(await page(application))).toEqual([replaced, kept]);
    const claim = await requestBadge(application, "phone", { userId: "user", invitationToken });
    expect(claim).toMatchObject({ status: 201, body: { badgeId } });
    // The claimed badge is the newest.
    for (const path of ["/v1/badges", ofUser("user")]) {
      expect(ids(await page(application, "", path))).toEqual([kept, badgeId]);
    }
  });

  it("the list of a user without badges is empty, with any user ID", async () => {
    const application = await createApplication();
    await issueTo(application, "phone", "user");
    const similar = ["USER", "use", "user ", " user", "us%", "_ser", "*", "user\0"];
    const others = ["nobody", "undefined", "null", "__proto__", "\0", "u".repeat(300)];
    for (const name of [...similar, ...others]) {
      expect(await page(application, "", ofUser(name))).toEqual({ badges: [], next: null });
    }
    // Not valid percent-encoding, or not UTF-8: taken literally, and nobody's name here.
    for (const raw of ["%", "%zz", "user%", "user%2", "%u0075ser", "%E4", "%ED%A0%80", "%C0%AF", "%F0%9F%98"]) {
      expect(await page(application, "", `/v1/users/${raw}/badges`)).toEqual({ badges: [], next: null });
    }
  });

  it("a user's list is found under the percent-encoded user ID, with any characters", async () => {
    const reserved = ["a/b", "/", "a?b=c", "#", "a b", "a+b", "a;b,c:d@e&f=g$", "[x]", "\\"];
    const percents = ["100%", "%", "%2F", "%252F", "a%00", "%zz"];
    const paths = ["..\\..", "../..", "...", "//", "./", "~"];
    const others = ["line\nbreak", "\ttab", "\u{1f600}", "\u00e9", "e\u0301", "\u202e", "\ufeffx", "__proto__"];
    await expectFound([...reserved, ...percents, ...paths, ...others]);
    const userIds = fc.uniqueArray(fc.string({ unit: "binary", minLength: 1, maxLength: 20 }).filter(isPossible), {
      minLength: 10,
      maxLength: 10,
    });
    await fc.assert(fc.asyncProperty(userIds, expectFound), { numRuns: byEffort(2, 30) });
  });
});

async function expectFound(userIds: readonly string[]): Promise<void> {
  const application = await createApplication();
  await insert(application, userIds);
  await inParallel([...userIds.entries()], async ([place, userId]) => {
    const everyByte = [...new TextEncoder().encode(userId)].map((byte) => `%${byte.toString(16).padStart(2, "0")}`);
    for (const path of [ofUser(userId), `/v1/users/${everyByte.join("")}/badges`]) {
      const { badges } = await page(application, "", path);
      expect(badges).toEqual([{ id: String(application.firstNumber + place), userId }]);
    }
  });
}

/** A user ID that can be asked for: URLs resolve "." and ".." as steps of the path (RFC 3986 section 5.2.4). */
function isPossible(userId: string): boolean {
  return userId.trim() !== "" && !userId.includes("\0") && ![".", ".."].includes(userId);
}
