import { describe, expect, it } from "vitest";
import { issueTo } from "../badges/life-support.ts";
import { takeOver } from "../support/allocator.ts";
import { createApplication, type TestApplication } from "../support/application.ts";
import { homeDatabase } from "../support/home.ts";
import { claim, invite } from "../support/invitations.ts";
import { countBadges } from "../support/rows.ts";
import { inParallel, times } from "./support/draft.ts";
import { follow, listPage } from "./support/pages.ts";

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

const idsOf = (items: readonly Record<string, unknown>[]) => items.map(({ id }) => String(id));

it("a page has 100 badges by default and at most 1,000, and a cursor only if more follow (contract section 4)", async () => {
  const application = await createApplication();
  expect(await listPage(application, "/v1/badges")).toEqual({ items: [], next: null });
  const userIds = times(1001).map((place) => `user ${place}`);
  await insert(application, userIds);
  for (const [query, size] of [
    ...["1000", "1001", "9".repeat(400)].map((text) => [`per_page=${text}`, 1000] as const),
    ...[["", 100] as const, ["perPage=3&page=2&limit=5", 100] as const, ["per_page=007", 7] as const],
  ]) {
    const { items, next } = await listPage(application, `/v1/badges?${query}`);
    expect(`${query}: ${items.length}`).toBe(`${query}: ${size}`);
    expect(next).toMatch(/^[\w-]+$/);
  }
  const pages = await follow(application, "/v1/badges", 1000);
  expect(pages.map((items) => items.length)).toEqual([1000, 1]);
  const all = userIds.map((userId, place) => ({ id: String(application.firstNumber + place), userId }));
  expect(pages.flat()).toEqual(all);
  expect((await follow(application, "/v1/badges", 143)).map((items) => items.length)).toEqual(Array(7).fill(143));
});

it.each(["/v1/badges", ofUser("user")])(
  "%s shows each badge once, oldest first, also while others are issued and claimed (contract section 4)",
  async (path) => {
    const application = await createApplication();
    await insert(application, Array(40).fill("user"));
    // A reserved number is in no list.
    await invite(application);
    const before = idsOf((await listPage(application, path)).items);
    expect(before).toHaveLength(40);
    const issue = async (place: number) => {
      if (place % 2 === 0) return issueTo(application, `later phone ${place}`, "user");
      const { token, number } = await invite(application);
      expect((await claim(application, `later phone ${place}`, "user", token)).status).toBe(201);
      return String(number);
    };
    const issuing = inParallel(times(24), issue, 4);
    const shown = idsOf((await follow(application, path, 3)).flat());
    const issued = await issuing;
    expect(new Set(shown).size).toBe(shown.length);
    expect(shown.slice(0, before.length)).toEqual(before);
    const after = idsOf((await listPage(application, path)).items);
    expect(after.slice(0, shown.length)).toEqual(shown);
    expect(new Set(after.slice(before.length))).toEqual(new Set(issued));
  },
);

describe("the list of a user (contract section 4)", () => {
  it("the list of a user without badges is empty, with any user ID", async () => {
    const application = await createApplication();
    await issueTo(application, "phone", "user");
    const similar = ["USER", "use", "user ", " user", "us%", "_ser", "*", "user\0", "__proto__", "u".repeat(300)];
    // Not valid percent-encoding, or not UTF-8: taken literally, and nobody's name here.
    const raw = ["%", "%zz", "user%", "user%2", "%u0075ser", "%E4", "%ED%A0%80", "%C0%AF", "%F0%9F%98"];
    for (const path of [...similar.map(ofUser), ...raw.map((one) => `/v1/users/${one}/badges`)]) {
      expect(await listPage(application, path), path).toEqual({ items: [], next: null });
    }
  });

  it("a user's list is found under the percent-encoded user ID, with any characters", async () => {
    const reserved = ["a/b", "/", "a?b=c", "#", "a b", "a+b", "a;b,c:d@e&f=g$", "[x]", "\\"];
    const percents = ["100%", "%", "%2F", "%252F", "a%00", "%zz"];
    const paths = ["..\\..", "../..", "...", "//", "./", "~"];
    const others = ["line\nbreak", "\ttab", "\u{1f600}", "\u00e9", "e\u0301", "\u202e", "\ufeffx", "__proto__"];
    const userIds = [...reserved, ...percents, ...paths, ...others];
    const application = await createApplication();
    await insert(application, userIds);
    await inParallel([...userIds.entries()], async ([place, userId]) => {
      const everyByte = [...new TextEncoder().encode(userId)].map((byte) => `%${byte.toString(16).padStart(2, "0")}`);
      for (const path of [ofUser(userId), `/v1/users/${everyByte.join("")}/badges`]) {
        expect((await listPage(application, path)).items).toEqual([
          { id: String(application.firstNumber + place), userId },
        ]);
      }
    });
  });
});
