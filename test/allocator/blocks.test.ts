import { describe, expect, it } from "vitest";
import { USER_CHUNK_BADGES } from "../../src/shared/limits.ts";
import { block, getBadge, issueTo } from "../badges/life-support.ts";
import { requestQuietly } from "../badges/support.ts";
import { outcome } from "../invitations/support/calls.ts";
import { useQuietLog } from "../invitations/support/log.ts";
import { aroundAllocators, aroundObjectD1 } from "../support/allocator.ts";
import { createApplication, type TestApplication } from "../support/application.ts";
import { callWith } from "../support/bindings.ts";
import { failing, failingTrips, isAbout, LOST } from "../support/faults.ts";
import { serverHeaders } from "../support/http.ts";
import { badgeRows } from "../support/rows.ts";
import { crowded, ENTRY, putIntoInbox, resultOf, wake } from "./support.ts";

useQuietLog();

describe("blocking a user with many badges of maximal metadata (contract section 12)", () => {
  const BADGES = 6 * USER_CHUNK_BADGES;

  it("revokes all of them, while others get badges", async () => {
    const application = await crowded(BADGES);
    let isBlocked = false;
    const blocked = block(application, "mallory").finally(() => {
      isBlocked = true;
    });
    let others = 0;
    while (!isBlocked) {
      await issueTo(application, `other-${others}`, "bob");
      others++;
    }
    const { status, body } = await blocked;
    expect(status).toBe(200);
    expect(body.revoked).toHaveLength(BADGES);
    // At least one after each chunk.
    expect(others).toBeGreaterThanOrEqual(BADGES / USER_CHUNK_BADGES);
    const rows = await badgeRows(application);
    expect(rows.filter(({ userId, state }) => userId === "mallory" && state !== "revoked")).toEqual([]);
    expect(rows.filter(({ userId, state }) => userId === "bob" && state !== "active")).toEqual([]);
  });

  it("is finished by the clock when the caller is gone after the first chunk", async () => {
    const application = await crowded(BADGES);
    let entries = 0;
    await aroundObjectD1(application, (state) => async (statements, send) => {
      if (isAbout(statements, ENTRY) && ++entries === 2) {
        state.abort("the object dies");
        return new Promise(() => {});
      }
      return send();
    });
    expect((await block(application, "mallory")).status).toBe(503);
    expect(outcome(await requestQuietly(application, "new", { userId: "mallory" }))).toBe("403 BLOCKED_USER");
    await wake(application);
    await wake(application);
    const live = (await badgeRows(application)).filter(({ state }) => state !== "revoked");
    expect(live).toEqual([]);
    const { body } = await block(application, "mallory");
    expect(body.revoked).toHaveLength(BADGES);
  });
});

describe("a block whose response is lost (contract section 12)", () => {
  const ONCE = { name: "once", times: 1, error: LOST, isOvercome: true };
  const send = (application: TestApplication, bindings: Partial<Env>) => {
    const init = { method: "PATCH", headers: serverHeaders(application) };
    return callWith(bindings, new Request("https://badges.example/v1/users/alice/block", init));
  };

  it.each(["the object", "D1"])("on the way from %s returns the numbers that it revoked", async (from) => {
    const application = await createApplication();
    const number = await issueTo(application, "phone", "alice");
    const lose = failing(ONCE, "after");
    if (from === "D1") await aroundObjectD1(application, () => failingTrips(ENTRY, ONCE, "after"));
    const ALLOCATOR = aroundAllocators((_, call) => (from === "D1" ? call() : lose(call)));
    expect(await send(application, { ALLOCATOR })).toMatchObject({ status: 200, body: { revoked: [number] } });
  });
});

describe("commands of the administration script (contract section 21)", () => {
  it("are carried out in the order in which they came, each once", async () => {
    const application = await createApplication();
    const number = await issueTo(application, "phone", "alice");
    const suspended = await putIntoInbox(application, { kind: "suspend", number: Number(number) });
    await Promise.all([wake(application), wake(application)]);
    expect(await resultOf(suspended)).toMatchObject({ kind: "badge" });
    expect((await getBadge(application, number)).body.state).toBe("suspended");
    const changes = (await badgeRows(application)).map(({ change }) => change);
    await Promise.all([wake(application), wake(application)]);
    expect((await badgeRows(application)).map(({ change }) => change)).toEqual(changes);
  });
});
