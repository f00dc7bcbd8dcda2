import { describe, expect, it } from "vitest";
import { DeviceClient } from "../../src/client/index.ts";
import { createApplication } from "../support/application.ts";
import { testHome } from "../support/home.ts";
import { device, failureOf, fakeService, NO_NETWORK, refusal, type Step, worker } from "./support.ts";

const bookmarkOf = (n: number) => `1.0000000${n}-00000000-00000000-${"0".repeat(32)}`;

const granted = (n: number | null): Response =>
  Response.json({ badgeId: "7" }, { headers: n === null ? {} : { bookmark: bookmarkOf(n) } });

const LOGIN = { userId: "alice" };
const BAD_GATEWAY = new Response("bad gateway", { status: 502 });
const LOGIN_PAGE = new Response("<html>");
/** To every try of a call. */
const NO_RESPONSE: [Step, ...Step[]] = [NO_NETWORK, NO_NETWORK, NO_NETWORK, NO_NETWORK];

/** A phone of a fake service. `sent`: which bookmark each request had. */
function phoneOf(...steps: [Step, ...Step[]]) {
  const { options, requests } = fakeService(...steps);
  const phone = new DeviceClient({
    baseUrl: "https://badges.example",
    applicationId: "app",
    udid: "phone",
    ...options,
  });
  return { phone, options, sent: () => requests.map(({ init }) => init.headers.bookmark) };
}

describe("the typed client keeps the bookmark of the last response (contract section 16)", () => {
  it("the typed client sends the last response's bookmark with the next call, whichever of the two that is", async () => {
    const signed = Response.json({ signature: "a.b.c" }, { headers: { bookmark: bookmarkOf(2) } });
    const { phone, sent } = phoneOf(granted(1), signed, granted(3));
    await phone.requestBadge(LOGIN);
    await phone.sign("aGVsbG8=");
    await phone.requestBadge(LOGIN);
    expect(sent()).toEqual([undefined, bookmarkOf(1), bookmarkOf(2)]);
    expect(phone.bookmark).toBe(bookmarkOf(3));
  });

  it("the typed client drops its bookmark when the user suspends a badge, which may be this device's", async () => {
    const suspended = { id: "7", userId: "alice", state: "suspended", issuedAt: "2030", changedAt: "2030" };
    const { phone } = phoneOf(granted(1), Response.json(suspended));
    await phone.requestBadge(LOGIN);
    await phone.suspendOwn("7", { userToken: "t" });
    expect(phone.bookmark).toBeUndefined();
  });

  it.each<[string, [Step, ...Step[]], sent: (number | "none")[], failed: number]>([
    ["none after a response of an earlier release, which has none", [granted(null), granted(2)], [1, "none"], 0],
    ["none after no response, since it may have missed one", [NO_NETWORK, granted(2), granted(3)], [1, "none", 2], 0],
    ["none after 502 from a proxy", [BAD_GATEWAY, granted(2), granted(3)], [1, "none", 2], 0],
    ["none after a call that was given up", [...NO_RESPONSE, granted(2)], [1, "none", "none", "none", "none"], 1],
    ["none after a hotel network's 200: the call may have come through", [LOGIN_PAGE, granted(2)], [1, "none"], 1],
    ["the same after a refusal, which wrote nothing", [refusal(403, "SUSPENDED_BADGE"), granted(2)], [1, 1], 1],
  ])("of bookmarks the typed client sends %s", async (_, steps, later, failed) => {
    const { phone, sent } = phoneOf(granted(1), ...steps);
    const logins = [];
    for (let calls = 0; calls < 3; calls++) logins.push(...(await Promise.allSettled([phone.requestBadge(LOGIN)])));
    expect(logins.filter(({ status }) => status === "rejected")).toHaveLength(failed);
    expect(sent()).toEqual([undefined, ...later.map((n) => (n === "none" ? undefined : bookmarkOf(n)))]);
  });

  it.each([
    [2, 3],
    [4, 4],
  ])("the typed client keeps the newest bookmark of concurrent calls: %i comes after 3", async (last, newest) => {
    const late = Promise.withResolvers<Response>();
    const { phone } = phoneOf(granted(1), () => late.promise, granted(3));
    await phone.requestBadge(LOGIN);
    const slow = phone.requestBadge(LOGIN);
    await phone.requestBadge(LOGIN);
    late.resolve(granted(last));
    await slow;
    expect(phone.bookmark).toBe(bookmarkOf(newest));
  });

  it("the typed client takes no bookmark of a call sent before another one missed its response: that one may have written something newer", async () => {
    const late = Promise.withResolvers<Response>();
    const { phone } = phoneOf(() => late.promise, ...NO_RESPONSE);
    const slow = phone.requestBadge(LOGIN);
    await failureOf(phone.requestBadge(LOGIN));
    late.resolve(granted(2));
    await slow;
    expect(phone.bookmark).toBeUndefined();
  });

  it("the typed client takes an older bookmark than it sent: the database was restored", async () => {
    const { phone } = phoneOf(granted(5), granted(2));
    await phone.requestBadge(LOGIN);
    await phone.requestBadge(LOGIN);
    expect(phone.bookmark).toBe(bookmarkOf(2));
  });

  it("the typed client gets and sends the bookmark with the real service", async () => {
    const application = await createApplication();
    const sent: (string | undefined)[] = [];
    const phone = device(application, "phone", {
      fetch: (url, init) => {
        sent.push(init.headers.bookmark);
        return worker(url, init);
      },
    });
    await phone.requestBadge(LOGIN);
    const first = phone.bookmark;
    const [home, bookmark] = first?.split(".") ?? [];
    expect(home).toBe(String(testHome()));
    expect(bookmark).toMatch(/^[0-9a-f]{8}-[0-9a-f]{8}-[0-9a-f]{8}-[0-9a-f]{32}$/);
    await phone.sign("aGVsbG8=");
    expect(sent).toEqual([undefined, first]);
  });
});
