import { cpSync, rmSync } from "node:fs";
import { join } from "node:path";
import { afterAll, beforeAll, describe, expect, it } from "vitest";
import { z } from "zod";
import { byEffort } from "../support/effort.ts";
import { type RunningService, startService } from "./support/service.ts";

/** Starts, stops and sweeps of the local service. */
const LIMIT = 240_000;
const [FIRST, LAST] = [700_000_001, 700_000_024];
const SIZE = LAST - FIRST + 1;

const created = z.object({ applicationId: z.string(), applicationSecret: z.string() });
const reconciled = z.tuple([z.object({ applicationId: z.string(), checked: z.number(), changed: z.number() })]);
const answered = z.object({ badgeId: z.string().optional(), id: z.string().optional(), error: z.string().optional() });

let service: RunningService;
let application: z.infer<typeof created>;

beforeAll(async () => {
  if (byEffort(true, false)) return;
  service = await startService();
  const words = ["--name", "Restored", "--first", String(FIRST), "--last", String(LAST), "--json"];
  application = created.parse(JSON.parse((await service.admin("application", "create", ...words)).stdout));
}, LIMIT);

afterAll(async () => {
  await service?.stop();
  service?.remove();
});

async function call(method: string, path: string, headers: Record<string, string>, body?: unknown) {
  const init = { method, headers: { applicationid: application.applicationId, ...headers } };
  const response = await fetch(
    new URL(path, service.origin),
    body === undefined ? init : { ...init, body: JSON.stringify(body) },
  );
  return { status: response.status, ...answered.parse(await response.json()) };
}

const ask = (udid: string, invitationToken?: string) =>
  call("POST", "/v1/badge", { udid }, { userId: "user", ...(invitationToken && { invitationToken }) });

async function invite(): Promise<{ token: string; number: string }> {
  const expiresAt = new Date(Date.now() + 3_600_000).toISOString();
  const { id, badgeId } = await call("POST", "/v1/invitation", { udid: "server" }, { expiresAt });
  return { token: z.string().parse(id), number: z.string().parse(badgeId) };
}

const revoke = (token: string) =>
  call("PATCH", `/v1/invitation/${token}/revoke`, { applicationsecret: application.applicationSecret });

const revokeBadge = (number: string) =>
  call("PATCH", `/v1/badges/${number}/revoke`, { applicationsecret: application.applicationSecret });

/** Follows the feed by one page. */
async function changesAfter(cursor: string | null): Promise<{ status: number; cursor: string | null }> {
  const { applicationId: applicationid, applicationSecret: applicationsecret } = application;
  const path = cursor === null ? "/v1/changes" : `/v1/changes?cursor=${cursor}`;
  const response = await fetch(new URL(path, service.origin), { headers: { applicationid, applicationsecret } });
  await response.arrayBuffer();
  return { status: response.status, cursor: response.headers.get("pagination-cursor") };
}

const numberOf = async (udid: string, token?: string): Promise<string> =>
  z.string().parse((await ask(udid, token)).badgeId);

/** Copies of what the stopped service has on disk: `d1`, or the objects in `do`. */
const copyOf = (part: "d1" | "do", name: string): [string, string] => [
  join(service.folder, "state", "v3", part),
  join(service.folder, `${part} ${name}`),
];

async function keep(name: string): Promise<void> {
  await service.stop();
  for (const part of ["d1", "do"] as const) {
    const [live, copy] = copyOf(part, name);
    cpSync(live, copy, { recursive: true });
  }
}

/** The stopped service starts again with D1 of one moment and the objects of another. */
async function restart(moments: { d1: string; do: string }): Promise<void> {
  await service.stop();
  for (const part of ["d1", "do"] as const) {
    const [live, copy] = copyOf(part, moments[part]);
    rmSync(live, { recursive: true });
    cpSync(copy, live, { recursive: true });
  }
  service = await service.restart();
}

async function reconcile(restored: "d1" | "object") {
  const words = ["reconcile", application.applicationId, "--restored", restored, "--json"];
  const { code, stdout, stderr } = await service.admin(...words);
  expect([code, stderr.split("\n").at(-1)]).toEqual([0, ""]);
  return reconciled.parse(JSON.parse(stdout))[0];
}

/** Gives out whatever is left of the range. */
async function useUp(prefix: string): Promise<string[]> {
  const numbers: string[] = [];
  for (let device = 0; ; device++) {
    const { status, badgeId, error } = await ask(`${prefix}-${device}`);
    if (badgeId === undefined) {
      expect([status, error]).toEqual([503, "NUMBERS_EXHAUSTED"]);
      return numbers;
    }
    numbers.push(badgeId);
  }
}

// In the default suite, test/invitations/restored.test.ts says the same of rows that are put back.
describe.skipIf(byEffort(true, false))("D1 and the objects of different moments (contract sections 1, 12, 13)", () => {
  it("no number is reissued either way, and reconcile restores what one of them lost", {
    timeout: LIMIT,
  }, async () => {
    const phones = new Map<string, string>();
    const get = async (udid: string) => phones.set(udid, await numberOf(udid));
    for (const udid of ["a", "b", "c"]) await get(udid);
    const lost = await numberOf("lost");
    const [claimed, revoked, pending] = [await invite(), await invite(), await invite()];
    await keep("old");

    service = await service.restart();
    for (const udid of ["d", "e"]) await get(udid);
    expect(await numberOf("guest", claimed.token)).toBe(claimed.number);
    await revoke(revoked.token);
    await get("after the revoked");
    const late = await invite();
    expect(await revokeBadge(lost)).toMatchObject({ status: 200 });
    const { cursor } = await changesAfter(null);
    expect(await changesAfter(cursor)).toMatchObject({ status: 200 });
    await keep("new");

    // D1 is older: what was issued, claimed and revoked since is known to the object only.
    await restart({ d1: "old", do: "new" });
    expect(await ask("thief", claimed.token)).toMatchObject({ status: 409, error: "CLAIMED_INVITATION" });
    expect(await ask("thief", revoked.token)).toMatchObject({ status: 410, error: "REVOKED_INVITATION" });
    expect(await reconcile("d1")).toMatchObject({ changed: 2 });
    expect(await ask("lost")).toMatchObject({ status: 403, error: "REVOKED_BADGE" });
    expect(await changesAfter(cursor)).toMatchObject({ status: 410 });
    for (const [udid, number] of phones) expect(await numberOf(udid), udid).toBe(number);
    expect(await numberOf("guest", claimed.token)).toBe(claimed.number);
    expect(await numberOf("visitor", pending.token)).toBe(pending.number);
    const known = new Set([...phones.values(), lost, claimed.number, pending.number, late.number]);
    const rest = await useUp("d1");
    expect(rest).toHaveLength(SIZE - known.size);
    expect(new Set([...known, ...rest]).size).toBe(SIZE);

    // The objects are older: D1 knows numbers that they do not.
    await restart({ d1: "new", do: "old" });
    expect(await reconcile("object")).toMatchObject({ changed: expect.any(Number) });
    for (const [udid, number] of phones) expect(await numberOf(udid), udid).toBe(number);
    expect(await ask("thief", claimed.token)).toMatchObject({ status: 409 });
    expect(await ask("thief", revoked.token)).toMatchObject({ status: 410 });
    expect(await ask("lost")).toMatchObject({ status: 403, error: "REVOKED_BADGE" });
    expect(await numberOf("visitor", pending.token)).toBe(pending.number);
    expect(await numberOf("late", late.token)).toBe(late.number);
    const others = await useUp("object");
    expect(others).toHaveLength(SIZE - known.size);
    expect(new Set([...known, ...others]).size).toBe(SIZE);
  });
});
