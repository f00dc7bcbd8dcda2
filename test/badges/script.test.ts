import { describe, expect, it } from "vitest";
import * as z from "zod";
import { type AllocatorCommand, scriptResult } from "../../src/shared/script-commands.ts";
import { putCommand, reconcile, resultOf } from "../allocator/support.ts";
import { useQuietLog } from "../invitations/support/log.ts";
import { createApplication, type TestApplication } from "../support/application.ts";
import { callServer } from "../support/http.ts";
import { issueTo, runSweep } from "./life-support.ts";

useQuietLog();

async function carryOut(application: TestApplication, command: AllocatorCommand) {
  const commandId = await putCommand(application, command, "Tom");
  expect(await resultOf(commandId)).toBeNull();
  await runSweep();
  return scriptResult.parse(await resultOf(commandId));
}

const page = z.object({ history: z.array(z.object({ action: z.string(), actor: z.unknown() })) });

const historyOf = async (application: TestApplication) =>
  page.parse((await callServer(application, "GET", "/v1/history")).body).history;

const TOM = { kind: "administrator", name: "Tom" };

describe("a command of the administration script (contract section 21)", () => {
  it("a repeated script command does no harm, and a refused one has its route's code", async () => {
    const application = await createApplication();
    const number = Number(await issueTo(application, "phone", "alice"));
    const first = await carryOut(application, { kind: "revoke", number });
    expect(await carryOut(application, { kind: "revoke", number })).toEqual(first);
    expect(await carryOut(application, { kind: "resume", number })).toEqual({ kind: "refused", code: "ENDED_BADGE" });
    const free = application.lastNumber;
    const unknown = { kind: "refused", code: "UNKNOWN_BADGE" };
    expect(await carryOut(application, { kind: "suspend", number: free })).toEqual(unknown);
    // One row for the one change.
    expect(await historyOf(application)).toEqual([{ action: "badge:revoked", actor: TOM }]);
  });

  it("a command that has been carried out leaves another application's waiting", async () => {
    const [application, other] = [await createApplication(), await createApplication()];
    const waiting = await putCommand(other, { kind: "show-user", userId: "alice" });
    expect(await reconcile(application)).not.toBeNull();
    expect(await resultOf(waiting)).toBeNull();
  });

  it("script commands block, unblock and erase a user, and the history names the administrator (section 23)", async () => {
    const application = await createApplication();
    const numbers = [await issueTo(application, "phone", "alice"), await issueTo(application, "tablet", "alice")];
    expect(await carryOut(application, { kind: "block", userId: "alice" })).toEqual({
      ...{ kind: "user", userId: "alice" },
      numbers: numbers.map(Number),
    });
    const show = () => carryOut(application, { kind: "show-user", userId: "alice" });
    expect(await show()).toEqual({ kind: "user-shown", userId: "alice", blocked: true });
    expect(await carryOut(application, { kind: "unblock", userId: "alice" })).toMatchObject({ numbers: [] });
    expect(await show()).toMatchObject({ blocked: false });
    const history = await historyOf(application);
    const actions = ["badge:revoked", "badge:revoked", "user:blocked", "user:unblocked"];
    expect(history.map(({ action }) => action).toSorted()).toEqual(actions);
    for (const { actor } of history) expect(actor).toEqual(TOM);
    const erased = await carryOut(application, { kind: "erase", userId: "alice" });
    expect(erased).toEqual({ kind: "erased", userId: expect.stringMatching(/^erased:/), erased: 2 });
    expect(await carryOut(application, { kind: "erase", userId: "alice" })).toMatchObject({ erased: 0 });
  });
});
