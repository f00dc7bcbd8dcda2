import { beforeEach, describe, expect, it, vi } from "vitest";
import { createApplication, type TestApplication } from "../support/application.ts";
import { callWith, UNLIMITED } from "../support/bindings.ts";
import { aroundD1 } from "../support/d1.ts";
import { bindDatabase, homeDatabase } from "../support/home.ts";
import { call, serverHeaders } from "../support/http.ts";
import { forgetLines, log } from "../support/log.ts";
import { NOTHING, ROUTES, requestOf } from "./support/routes.ts";

let application: TestApplication;

beforeEach(async () => {
  application = await createApplication({ statusList: true });
});

const REQUEST_ID = { "x-request-id": "of-log-sample" };

const withSample = (LOG_SAMPLE: unknown): object => ({
  DEVICE_LIMIT: UNLIMITED,
  CLIENT_IP_LIMIT: UNLIMITED,
  LOG_SAMPLE,
});

async function logIn(bindings: object, applicationid: string = application.id): Promise<number> {
  const headers = { applicationid, udid: "phone", ...REQUEST_ID };
  return (await callWith(bindings, "POST", "/v1/badge", { headers, body: { userId: "alice" } })).status;
}

/** The lines of this file's requests since the last look. */
function lines(): Record<string, unknown>[] {
  const isOwn = ({ event, requestId }: Record<string, unknown>) =>
    event === "request" && requestId === REQUEST_ID["x-request-id"];
  const own = log.lines().filter(isOwn);
  forgetLines();
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
    "LOG_SAMPLE %d writes one in so many lines of successful calls, each with how many it stands for",
    async (sample) => {
      const dice = [0, 1 / sample - 0.001, 1 / sample, 0.5, 0.999];
      expect(await samplesOf(String(sample), dice)).toEqual([[sample], [sample], [], [], []]);
    },
  );

  it("LOG_SAMPLE of 1, none, or no such number writes every line", async () => {
    for (const sample of ["1", undefined, "", "0", "-5", "0.5", "2 %", "Infinity"]) {
      expect([sample, await samplesOf(sample, [0.999])]).toEqual([sample, [[1]]]);
    }
  });

  it("LOG_SAMPLE loses no refusal and no fault, and each stands for itself", async () => {
    vi.spyOn(Math, "random").mockReturnValue(0.99);
    const away = aroundD1(homeDatabase(), () => Promise.reject(new Error("D1 is away")));
    expect(await logIn(withSample("50"), "unknown")).toBe(401);
    expect(await logIn({ ...withSample("50"), ...bindDatabase(away) })).toBe(503);
    expect(lines()).toMatchObject([
      { status: 401, code: "INVALID_APPLICATIONID", sample: 1 },
      { status: 503, code: "UNAVAILABLE", sample: 1 },
    ]);
  });

  it("LOG_SAMPLE counts a door's call for a list that does not exist yet as a successful one", async () => {
    const path = `/v1/applications/${application.id}/status/1`;
    for (const shown of [0.99, 0]) {
      vi.spyOn(Math, "random").mockReturnValue(shown);
      expect((await callWith(withSample("50"), "GET", path, { headers: REQUEST_ID })).status).toBe(404);
      expect(lines()).toMatchObject(shown === 0 ? [{ code: "UNKNOWN_STATUSLIST", sample: 50 }] : []);
    }
  });
});

describe("the line of a call (docs/operations.md, Watch)", () => {
  it("the line of a call names the application, on every route of one, and has no level", async () => {
    for (const route of ROUTES.filter(({ by }) => by !== null)) {
      const { path, body } = requestOf(route, { ...NOTHING, application: application.id });
      const names = { invitationtoken: "inv_unknown", udid: "phone", ...REQUEST_ID };
      await call(route.method, path, { headers: { ...serverHeaders(application), ...names }, ...(body && { body }) });
      const logged = lines();
      expect([route.name, logged]).toMatchObject([route.name, [{ application: application.id }]]);
      expect(logged[0]).not.toHaveProperty("level");
    }
  });

  it("the line of a call counts its round trips: a list takes one, and one more where the isolate does not know the application; a new badge takes one to D1 and one to the allocator", async () => {
    const roundTrips: unknown[] = [];
    for (let calls = 0; calls < 2; calls++) {
      await call("GET", "/v1/badges", { headers: { ...serverHeaders(application), ...REQUEST_ID } });
      roundTrips.push(...lines().map((line) => line.roundTrips));
    }
    expect(roundTrips).toEqual([2, 1]);
    await logIn({});
    expect(lines()).toMatchObject([{ status: 201, roundTrips: 2 }]);
  });
});
