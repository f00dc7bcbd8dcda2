import { expect } from "vitest";
import { aroundObjectD1 } from "../support/allocator.ts";
import { billOf } from "../support/bill.ts";
import { callWith, UNLIMITED } from "../support/bindings.ts";
import { type AroundTrip, aroundD1 } from "../support/d1.ts";
import { bindDatabase, homeDatabase } from "../support/home.ts";
import { A_SIGNATURE, BADGE, type Phone, SIGN } from "./support.ts";

/**
 * The rows that the first round trip of each kind of call of a phone reads, whether the Worker makes it or the object. Most
 * calls make one.
 */
export async function countRows(application: { id: string }, phone: Phone): Promise<Record<string, number>> {
  const other = await phone.withOtherKey();
  const calls: [kind: string, by: Phone | null, path: string, body: object, status: number, trips: number | null][] = [
    ["login", phone, BADGE, { userId: "alice" }, 200, 1],
    // What settings may refuse is decided twice if they are more than a second old.
    ["login with a wrong key", other, BADGE, { userId: "alice" }, 401, null],
    ["signature", phone, SIGN, A_SIGNATURE, 200, 1],
    ["signature of the unbound badge", other, SIGN, A_SIGNATURE, 200, 1],
    ["signature without a proof", null, SIGN, A_SIGNATURE, 401, null],
    ["signature of an unknown badge", phone, SIGN, { ...A_SIGNATURE, badgeId: "1" }, 404, 1],
  ];
  const rows: Record<string, number> = {};
  for (const [kind, by, path, body, status, expectedTrips] of calls) {
    let [trips, read] = [0, 0];
    const around: AroundTrip = async (statements, send) => {
      const result = await send();
      if (trips++ === 0) read = (await billOf(statements, result)).rowsRead;
      return result;
    };
    await aroundObjectD1(application, () => around);
    const text = JSON.stringify(body);
    const headers = {
      applicationid: application.id,
      udid: phone.udid,
      ...(by && { DPoP: await by.prove(path, text) }),
    };
    const request = new Request(`https://badges.example${path}`, { method: "POST", headers, body: text });
    const response = await callWith(
      { ...bindDatabase(aroundD1(homeDatabase(), around)), DEVICE_LIMIT: UNLIMITED, CLIENT_IP_LIMIT: UNLIMITED },
      request,
    );
    expect([kind, response.status, trips]).toEqual([kind, status, expectedTrips ?? expect.any(Number)]);
    rows[kind] = read;
  }
  return rows;
}
