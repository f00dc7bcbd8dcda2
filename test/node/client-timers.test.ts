import { setTimeout as sleep } from "node:timers/promises";
import { expect, it } from "vitest";
import { DeviceClient } from "../../src/client/index.ts";

/** Here and not with the client's other tests, because workerd's timers hold more than Node's and browsers'. */
it.each([Number.POSITIVE_INFINITY, 2 ** 31])(
  "a time limit of %d ms is not over at once",
  async (timeoutMilliseconds) => {
    const phone = new DeviceClient({
      baseUrl: "https://badges.example",
      applicationId: "app",
      udid: "phone",
      timeoutMilliseconds,
      maxTries: 1,
      fetch: async (_url, { signal }) => {
        await sleep(20);
        if (signal.aborted) throw signal.reason;
        return Response.json({ signature: "a.b.c" });
      },
    });
    expect(await phone.sign("aGVsbG8=")).toBe("a.b.c");
  },
);
