import { afterEach, beforeEach, describe, expect, it, type Mock, vi } from "vitest";
import { createApplication, type TestApplication } from "../support/application.ts";
import { callWith, UNLIMITED } from "../support/bindings.ts";
import { aroundD1 } from "../support/d1.ts";
import { bindDatabase, homeDatabase } from "../support/home.ts";
import { call, serverHeaders } from "../support/http.ts";
import { linesOf } from "../support/log-lines.ts";
import { NOTHING, ROUTES, requestOf } from "./support/routes.ts";

let written: Mock;
let application: TestApplication;

beforeEach(async () => {
  application = await createApplication();
  written = vi.spyOn(console, "log").mockImplementation(() => {});
});

afterEach(() => {
  vi.restoreAllMocks();
});

const withSample = (sample: unknown): object => ({
  DEVICE_LIMIT: UNLIMITED,
  CLIENT_IP_LIMIT: UNLIMITED,
  LOG_SAMPLE: sample,
});

/** A login of a phone, under a request ID of its own. @returns its status */
async function logIn(bindings: object, applicationid: string = application.id): Promise<number> {
  const headers = { applicationid, udid: "phone", "x-request-id": crypto.randomUUID() };
  const body = JSON.stringify({ userId: "alice" });
  const request = new Request("https://badges.example/v1/badge", { method: "POST", headers, body });
  requestIds.add(headers["x-request-id"]);
  return (await callWith(bindings, request)).status;
}

const requestIds = new Set<unknown>();

/** The lines of this file's requests since the last look. */
function lines(): Record<string, unknown>[] {
  const own = linesOf(written).filter(({ event, requestId }) => event === "request" && requestIds.has(requestId));
  written.mockClear();
  return own;
}

/** Logins, for which the dice show these. @returns what their lines say that they stand for */
async function samplesOf(sample: unknown, dice: readonly number[]): Promise<unknown[]> {
  await logIn(withSample("1"));
  lines();
  const roll = vi.spyOn(Math, "random");
  const samples: unknown[] = [];
  for (const shown of dice) {
    roll.mockReturnValue(shown);
    expect(await logIn(withSample(sample))).toBe(200);
    samples.push(lines().map((line) => line.sample));
  }
  return samples;
}

describe("LOG_SAMPLE in wrangler.toml (docs/operations.md, Watch)", () => {
  it.each([50, 10])(
    "%d writes one in so many lines of successful calls, each with how many it stands for",
    async (sample) => {
      const dice = [0, 1 / sample - 0.001, 1 / sample, 0.5, 0.999];
      expect(await samplesOf(String(sample), dice)).toEqual([[sample], [sample], [], [], []]);
    },
  );

  it.each(["1", undefined, "", "0", "-5", "0.5", "2 %", "Infinity", "often"])(
    "%j writes every line",
    async (sample) => {
      expect(await samplesOf(sample, [0, 0.999])).toEqual([[1], [1]]);
    },
  );

  it("LOG_SAMPLE loses no refusal, warning or error, and each stands for itself", async () => {
    await logIn(withSample("1"));
    lines();
    vi.spyOn(Math, "random").mockReturnValue(0.99);
    const [warned, failed] = [vi.spyOn(console, "warn"), vi.spyOn(console, "error")];
    for (const spy of [warned, failed]) spy.mockImplementation(() => {});
    const away = aroundD1(homeDatabase(), () => Promise.reject(new Error("D1 is away")));
    expect(await logIn(withSample("50"), "unknown")).toBe(401);
    expect(await logIn({ ...withSample("50"), ...bindDatabase(away) })).toBe(503);
    expect(lines()).toMatchObject([
      { status: 401, code: "INVALID_APPLICATIONID", sample: 1 },
      { status: 503, code: "UNAVAILABLE", sample: 1 },
    ]);
    expect(linesOf(warned)).toContainEqual(expect.objectContaining({ level: "warn", event: "replica-read-failed" }));
    const [error] = linesOf(failed).filter(({ requestId }) => requestIds.has(requestId));
    expect(error).toMatchObject({ level: "error", event: "request-failed" });
  });
});

describe("a status list that is not needed yet (contract section 14)", () => {
  it("a status list that is not needed yet is 404 to each door twice a minute, does not count as refused, and is sampled in the log", async () => {
    vi.spyOn(Math, "random").mockReturnValueOnce(0.01).mockReturnValue(0.99);
    const id = crypto.randomUUID();
    requestIds.add(id);
    for (let count = 0; count < 2; count++) {
      const url = `https://badges.example/v1/applications/${application.id}/status/77`;
      const request = new Request(url, { headers: { "x-request-id": id } });
      expect((await callWith(withSample("50"), request)).status).toBe(404);
    }
    expect(lines()).toMatchObject([{ status: 404, code: "UNKNOWN_STATUSLIST", sample: 50 }]);
  });
});

describe("the line of a call (docs/operations.md, Watch)", () => {
  it.each(ROUTES.filter(({ by }) => by !== null))("the line of $name names the application", async (route) => {
    const id = crypto.randomUUID();
    requestIds.add(id);
    const { path, body } = requestOf(route, { ...NOTHING, application: application.id });
    const names = { invitationtoken: "inv_unknown", udid: "phone", "x-request-id": id };
    const headers = {
      ...(route.by === "device" ? { applicationid: application.id } : serverHeaders(application)),
      ...names,
    };
    await call(route.method, path, { headers, ...(body && { body }) });
    expect(lines()).toMatchObject([{ application: application.id }]);
  });
});

describe("the line of a login (docs/scale.md, A million)", () => {
  it("the log line of a login says who, what, how long and how far in some 200 bytes", async () => {
    await logIn(withSample("1"));
    const [text] = written.mock.calls.flat().filter((line) => String(line).includes(application.id));
    expect(JSON.parse(text)).toEqual({
      event: "request",
      requestId: expect.any(String),
      method: "POST",
      route: "/v1/badge",
      status: 201,
      application: application.id,
      milliseconds: expect.any(Number),
      roundTrips: expect.any(Number),
      sample: 1,
    });
    expect(text.length).toBeLessThan(210);
  });
});
