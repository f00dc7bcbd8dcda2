import { describe, expect, it } from "vitest";
import { createApplication, type TestApplication } from "../support/application.ts";
import { homeDatabase } from "../support/home.ts";
import { Meter } from "../support/meter.ts";
import { BADGE, newPhone, type Phone, SIGN } from "./support.ts";

/** What a call of a phone costs, in an isolate that knows the application. */
function meter(application: TestApplication) {
  const of = new Meter(application);
  const measure = (phone: Phone, path: string, body: object, isProved: boolean) =>
    of.measure(async () => {
      const text = JSON.stringify(body);
      const headers = {
        applicationid: application.id,
        udid: phone.udid,
        ...(isProved && { DPoP: await phone.prove(path, text) }),
      };
      const request = new Request(`https://badges.example${path}`, { method: "POST", headers, body: text });
      expect((await of.request(request)).status).toBeLessThan(300);
    });
  return {
    logIn: (phone: Phone, isProved: boolean) => measure(phone, BADGE, { userId: "alice" }, isProved),
    sign: (phone: Phone, isProved: boolean) => measure(phone, SIGN, { base64: "AAAA" }, isProved),
  };
}

describe("what a proof costs (contract section 15)", () => {
  it("a proof costs no additional round trip, and for a new badge one row of the index of keys", async () => {
    const application = await createApplication();
    const { logIn, sign } = meter(application);
    await logIn(await newPhone(application, "known"), false);
    const [unbound, bound] = [await newPhone(application, "unbound"), await newPhone(application, "bound")];
    const [plain, proved] = [await logIn(unbound, false), await logIn(bound, true)];
    expect(proved).toMatchObject({ d1RoundTrips: plain.d1RoundTrips, objectCalls: plain.objectCalls });
    expect([plain.d1RowsWritten, proved.d1RowsWritten]).toEqual([6, 7]);
    for (const call of [logIn, sign]) {
      const [before, after] = [await call(unbound, false), await call(bound, true)];
      expect([before.d1RoundTrips, after.d1RoundTrips]).toEqual([1, 1]);
      expect([before.d1RowsWritten, after.d1RowsWritten]).toEqual([0, 0]);
      expect(after.objectCalls).toBe(0);
    }
  });

  it("binding an existing badge costs one call of the object, as newer metadata does", async () => {
    const application = await createApplication({ bindUntil: Date.now() + 3_600_000 });
    const { logIn } = meter(application);
    const phone = await newPhone(application);
    await logIn(phone, false);
    expect(await logIn(phone, true)).toMatchObject({ d1RoundTrips: 2, objectCalls: 1 });
    expect(await logIn(phone, true)).toMatchObject({ d1RoundTrips: 1, objectCalls: 0 });
    const stored = homeDatabase()
      .prepare("SELECT rebind_until FROM badge WHERE application_id = ?")
      .bind(application.id);
    expect(await stored.first("rebind_until")).toBeNull();
  });
});
