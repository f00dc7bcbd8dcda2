import { describe, expect, it, vi } from "vitest";
import { DeviceClient, isRefusedBadge } from "../../src/client/index.ts";
import { createApplication } from "../support/application.ts";
import { testHome } from "../support/home.ts";
import { device, failureOf, fakeService, NO_NETWORK, refusal, type Step, UNAVAILABLE, worker } from "./support.ts";

const bookmarkOf = (n: number) => `1.0000000${n}-00000000-00000000-${"0".repeat(32)}`;

/** A granted login. */
const granted = (n: number | null): Response =>
  Response.json({ badgeId: "7" }, { headers: n === null ? {} : { bookmark: bookmarkOf(n) } });

const LOGIN = { userId: "alice" };

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
  it("and sends it with the next call, whichever of the two that is", async () => {
    const signed = Response.json({ signature: "a.b.c" }, { headers: { bookmark: bookmarkOf(2) } });
    const { phone, sent } = phoneOf(granted(1), signed, granted(3));
    await phone.requestBadge(LOGIN);
    await phone.sign("aGVsbG8=");
    await phone.requestBadge(LOGIN);
    expect(sent()).toEqual([undefined, bookmarkOf(1), bookmarkOf(2)]);
    expect(phone.bookmark).toBe(bookmarkOf(3));
  });

  it("sends none after a response that has none: a service of an earlier release", async () => {
    const { phone, sent } = phoneOf(granted(1), granted(null), granted(2));
    for (let calls = 0; calls < 3; calls++) await phone.requestBadge(LOGIN);
    expect(sent()).toEqual([undefined, bookmarkOf(1), undefined]);
  });

  it.each([
    ["no response", NO_NETWORK],
    ["503 from the service", UNAVAILABLE],
    ["502 from a proxy", new Response("bad gateway", { status: 502 })],
  ])("sends none after %s, since it may have missed one: neither with the retry nor later", async (_, failure) => {
    const { phone, sent } = phoneOf(granted(1), failure, granted(2), granted(3));
    for (let calls = 0; calls < 3; calls++) await phone.requestBadge(LOGIN);
    expect(sent()).toEqual([undefined, bookmarkOf(1), undefined, bookmarkOf(2)]);
  });

  it("sends none after a call that was given up", async () => {
    const { phone, sent } = phoneOf(granted(1), NO_NETWORK, NO_NETWORK, NO_NETWORK, NO_NETWORK, granted(2));
    await phone.requestBadge(LOGIN);
    await failureOf(phone.requestBadge(LOGIN));
    expect(phone.bookmark).toBeUndefined();
    await phone.requestBadge(LOGIN);
    expect(sent().slice(-4)).toEqual([undefined, undefined, undefined, undefined]);
  });

  it("sends none after a 200 that is not the service's: the login page of a hotel network may have come after the call", async () => {
    const { phone, sent } = phoneOf(granted(1), new Response("<html>"), granted(2));
    await phone.requestBadge(LOGIN);
    await failureOf(phone.requestBadge(LOGIN));
    expect(phone.bookmark).toBeUndefined();
    await phone.requestBadge(LOGIN);
    expect(sent()).toEqual([undefined, bookmarkOf(1), undefined]);
  });

  it("keeps it when a call is refused: that wrote nothing", async () => {
    const { phone, sent } = phoneOf(granted(1), refusal(403, "SUSPENDED_BADGE"), granted(2));
    await phone.requestBadge(LOGIN);
    expect(isRefusedBadge(await failureOf(phone.requestBadge(LOGIN)))).toBe(true);
    await phone.requestBadge(LOGIN);
    expect(sent()).toEqual([undefined, bookmarkOf(1), bookmarkOf(1)]);
  });

  it("keeps the newest of concurrent calls, in whatever order they are answered", async () => {
    const late = Promise.withResolvers<Response>();
    const { phone } = phoneOf(granted(1), () => late.promise, granted(3));
    await phone.requestBadge(LOGIN);
    const slow = phone.requestBadge(LOGIN);
    await phone.requestBadge(LOGIN);
    late.resolve(granted(2));
    await slow;
    expect(phone.bookmark).toBe(bookmarkOf(3));
  });

  it("takes none of a call that was sent before another one missed its response: that one may have written something newer", async () => {
    const late = Promise.withResolvers<Response>();
    const { phone } = phoneOf(() => late.promise, NO_NETWORK, NO_NETWORK, NO_NETWORK, NO_NETWORK);
    const slow = phone.requestBadge(LOGIN);
    await failureOf(phone.requestBadge(LOGIN));
    late.resolve(granted(2));
    await slow;
    expect(phone.bookmark).toBeUndefined();
  });

  it("takes an older one than it sent: the database was restored", async () => {
    const { phone } = phoneOf(granted(5), granted(2));
    await phone.requestBadge(LOGIN);
    await phone.requestBadge(LOGIN);
    expect(phone.bookmark).toBe(bookmarkOf(2));
  });

  it("begins with the one that the app has stored", async () => {
    const { options, requests } = fakeService(granted(2));
    const address = { baseUrl: "https://badges.example", applicationId: "app", udid: "phone" };
    const phone = new DeviceClient({ ...address, ...options, bookmark: bookmarkOf(1) });
    expect(phone.bookmark).toBe(bookmarkOf(1));
    await phone.requestBadge(LOGIN);
    expect(requests[0]?.init.headers.bookmark).toBe(bookmarkOf(1));
  });

  it("gets and sends it with the real service", async () => {
    vi.spyOn(console, "log").mockImplementation(() => {});
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
