import { describe, expect, it } from "vitest";
import { type AllocatorCommand, scriptResult } from "../../src/shared/script-commands.ts";
import { putCommand, resultOf } from "../allocator/support.ts";
import { createApplication, type TestApplication } from "../support/application.ts";
import { callServer } from "../support/http.ts";
import { sweep } from "../support/sweep.ts";
import { issueTo } from "./life-support.ts";

async function carryOut(application: TestApplication, command: AllocatorCommand) {
  const commandId = await putCommand(application, command, "Tom");
  expect(await resultOf(commandId)).toBeNull();
  await sweep();
  return scriptResult.parse(await resultOf(commandId));
}

describe("a command of the administration script (contract section 21)", () => {
  // What administrators see of them: test/node/admin-badge-lifecycle.test.ts.
  it("a repeated script command does no harm, a refused one has its route's code, and the history names the administrator (section 23)", async () => {
    const application = await createApplication();
    const number = Number(await issueTo(application, "phone", "alice"));
    const first = await carryOut(application, { kind: "revoke", number });
    expect(await carryOut(application, { kind: "revoke", number })).toEqual(first);
    expect(await carryOut(application, { kind: "resume", number })).toEqual({ kind: "refused", code: "ENDED_BADGE" });
    const free = application.lastNumber;
    const unknown = { kind: "refused", code: "UNKNOWN_BADGE" };
    expect(await carryOut(application, { kind: "suspend", number: free })).toEqual(unknown);
    const user = (kind: "block" | "unblock" | "show-user") => carryOut(application, { kind, userId: "alice" });
    for (const [kind, blocked] of [
      ["block", true],
      ["unblock", false],
    ] as const) {
      expect(await user(kind)).toEqual({ kind: "user", userId: "alice", numbers: [] });
      expect(await user("show-user")).toEqual({ kind: "user-shown", userId: "alice", blocked });
    }
    // One row for each change.
    const actions = ["user:unblocked", "user:blocked", "badge:revoked"];
    expect((await callServer(application, "GET", "/v1/history")).body).toMatchObject({
      history: actions.map((action) => ({ action, actor: { kind: "administrator", name: "Tom" } })),
    });
  });
});
