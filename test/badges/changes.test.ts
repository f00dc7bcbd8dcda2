import { describe, expect, it } from "vitest";
import { z } from "zod";
import { createApplication } from "../support/application.ts";
import { ahead, DAY, MINUTE, moveClock, useStandingClock } from "../support/clock.ts";
import { callServer, requestBadge } from "../support/http.ts";
import { claim, invite } from "../support/invitations.ts";
import { sweep } from "../support/sweep.ts";
import { block, issueTo, setEnd, takeStep, unblock } from "./life-support.ts";

const page = z.object({ changes: z.array(z.looseObject({ id: z.string() })) });

useStandingClock();

describe("GET /v1/changes (contract section 13)", () => {
  it("the feed lists every badge once, in its present state, by its last change, even after a clock went back", async () => {
    const application = await createApplication();
    const first = await issueTo(application, "phone-1", "alice");
    const second = await issueTo(application, "phone-2", "bob");
    moveClock(-DAY);
    await takeStep(application, first, "suspend");
    const issuedAt = ahead(DAY);
    expect((await callServer(application, "GET", "/v1/changes?per_page=2")).body).toEqual({
      changes: [
        { id: second, userId: "bob", state: "active", change: 2, issuedAt, changedAt: issuedAt },
        { id: first, userId: "alice", state: "suspended", change: 3, issuedAt, changedAt: ahead(0) },
      ],
      more: false,
    });
  });

  // Pages, and every change after any calls: test/client/calls.test.ts and the simulation.
  it("the feed shows each kind of change once, and nothing when nothing has changed", async () => {
    const application = await createApplication();
    let cursor = "";
    /** What has changed since the page before. Each has a cursor, an empty one too. */
    const seen = async () => {
      const { body, headers } = await callServer(application, "GET", `/v1/changes${cursor && `?cursor=${cursor}`}`);
      cursor = headers.get("pagination-cursor") ?? "";
      expect(cursor).toMatch(/^[\w-]+$/);
      return page.parse(body).changes;
    };
    expect(await seen()).toEqual([]);
    const id = await issueTo(application, "phone", "alice");
    expect(await seen()).toMatchObject([{ id, state: "active" }]);
    const login = (os: string) => requestBadge(application, "phone", { userId: "alice", metadata: { os } });
    await login("iOS");
    expect(await seen()).toMatchObject([{ id, state: "active", metadata: { os: "iOS" } }]);
    await login("iOS");
    expect(await seen()).toEqual([]);
    await takeStep(application, id, "suspend");
    expect(await seen()).toMatchObject([{ id, state: "suspended" }]);
    await takeStep(application, id, "resume");
    expect(await seen()).toMatchObject([{ id, state: "active" }]);
    const expiresAt = ahead(MINUTE);
    await setEnd(application, id, expiresAt);
    expect(await seen()).toMatchObject([{ id, state: "active", expiresAt }]);
    moveClock(MINUTE);
    await sweep();
    expect(await seen()).toMatchObject([{ id, state: "expired" }]);
    await setEnd(application, id, null);
    expect(await seen()).toMatchObject([{ id, state: "active" }]);
    const { token, number } = await invite(application);
    expect(await seen()).toEqual([]);
    await claim(application, "phone", "alice", token);
    const claimed = String(number);
    expect(await seen()).toMatchObject([
      { id, state: "replaced" },
      { id: claimed, state: "active" },
    ]);
    const other = await issueTo(application, "another", "alice");
    await block(application, "alice");
    await unblock(application, "alice");
    expect(await seen()).toMatchObject([claimed, other].map((each) => ({ id: each, state: "revoked" })));
  });
});
