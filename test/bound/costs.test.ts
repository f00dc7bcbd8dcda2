import { expect, it } from "vitest";
import { createApplication } from "../support/application.ts";
import { useStandingClock } from "../support/clock.ts";
import { runSql } from "../support/home.ts";
import { A_SIGNATURE, BADGE, SIGN } from "../support/http.ts";
import { Meter } from "../support/meter.ts";
import { badgeRows } from "../support/rows.ts";
import { newPhone, type Phone } from "./support.ts";

useStandingClock();

const LOGIN = { userId: "alice" };

it("a device costs the same however many users and keys it has had: 2,000 bound badges or three (contract sections 7 and 15)", async () => {
  const application = await createApplication();
  const meter = new Meter(application);
  const measure = (phone: Phone, path: string, body: object, isProved: boolean, status: number) =>
    meter.measure(async () => {
      const proof = isProved ? await phone.prove(path, JSON.stringify(body)) : "";
      const headers = { applicationid: application.id, udid: phone.udid, DPoP: proof };
      expect((await meter.request("POST", path, { headers, body })).status).toBe(status);
    });
  const rowsRead = async (users: number, udid: string, from: number) => {
    const phone = await newPhone(application, udid);
    await phone.logInUnproved("dave");
    const number = Number((await phone.logIn("alice")).body.badgeId);
    const alice = (await badgeRows(application)).find((badge) => badge.number === number);
    // Of other keys and other users of the device, answered before the last login.
    await runSql(
      `WITH RECURSIVE place (n) AS (SELECT CAST(?3 AS INTEGER) UNION ALL SELECT n + 1 FROM place WHERE n + 1 < ?3 + ?4)
       INSERT INTO badge (number, application_id, device, user_id, signing_key_id, event_id, ordinal, login_sequence, key_thumbprint)
       SELECT 6000000000 + n, ?1, ?2, 'a user ' || n, (SELECT max(id) FROM signing_key WHERE application_id = ?1),
         'evt_' || n, n + 10, ?3 - n, 'key ' || (n % 7) FROM place`,
      application.id,
      String(alice?.device),
      from,
      users,
    );
    await phone.logIn("alice");
    const other = await phone.withOtherKey();
    const granted = [
      await measure(phone, BADGE, LOGIN, true, 200),
      await measure(phone, SIGN, A_SIGNATURE, true, 200),
      // By the unbound badge.
      await measure(other, SIGN, A_SIGNATURE, true, 200),
    ];
    for (const cost of granted) expect(cost).toMatchObject({ d1RoundTrips: 1, objectCalls: 0 });
    const refused = [
      await measure(other, BADGE, LOGIN, true, 401),
      await measure(phone, SIGN, A_SIGNATURE, false, 401),
      await measure(phone, SIGN, { ...A_SIGNATURE, badgeId: "1" }, true, 404),
    ];
    return [...granted, ...refused].map(({ d1RowsRead }) => d1RowsRead);
  };
  const few = await rowsRead(3, "tablet", 0);
  expect(await rowsRead(2000, "kiosk", 1000)).toEqual(few);
  expect(Math.max(...few)).toBeLessThan(40);
});
