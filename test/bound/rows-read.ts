import { expect } from "vitest";
import { billOf } from "../support/bill.ts";
import { callWith, UNLIMITED } from "../support/bindings.ts";
import { aroundD1 } from "../support/d1.ts";
import { bindDatabase, homeDatabase } from "../support/home.ts";
import { A_SIGNATURE, BADGE, type Phone, SIGN } from "./support.ts";

/** The rows that each kind of call of a phone reads. Every one is a single round trip to D1. */
export async function countRows(application: { id: string }, phone: Phone): Promise<Record<string, number>> {
  const other = await phone.withOtherKey();
  const calls: [kind: string, by: Phone | null, path: string, body: object, status: number][] = [
    ["login", phone, BADGE, { userId: "alice" }, 200],
    ["login with a wrong key", other, BADGE, { userId: "alice" }, 401],
    ["signature", phone, SIGN, A_SIGNATURE, 200],
    ["signature of the unbound badge", other, SIGN, A_SIGNATURE, 200],
    ["signature without a proof", null, SIGN, A_SIGNATURE, 401],
    ["signature of an unknown badge", phone, SIGN, { ...A_SIGNATURE, badgeId: "1" }, 404],
  ];
  const rows: Record<string, number> = {};
  for (const [kind, by, path, body, status] of calls) {
    let [trips, read] = [0, 0];
    const DB = aroundD1(homeDatabase(), async (statements, send) => {
      const result = await send();
      trips++;
      read += (await billOf(statements, result)).rowsRead;
      return result;
    });
    const text = JSON.stringify(body);
    const headers = {
      applicationid: application.id,
      udid: phone.udid,
      ...(by && { DPoP: await by.prove(path, text) }),
    };
    const request = new Request(`https://badges.example${path}`, { method: "POST", headers, body: text });
    const response = await callWith(
      { ...bindDatabase(DB), DEVICE_LIMIT: UNLIMITED, CLIENT_IP_LIMIT: UNLIMITED },
      request,
    );
    expect([kind, response.status, trips]).toEqual([kind, status, 1]);
    rows[kind] = read;
  }
  return rows;
}
