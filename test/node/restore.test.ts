import { cpSync, readdirSync, rmSync } from "node:fs";
import { join } from "node:path";
import { DatabaseSync } from "node:sqlite";
import { afterEach, beforeEach, describe, expect, it } from "vitest";
import { z } from "zod";
import { byEffort } from "../support/effort.ts";
import { type RunningService, startService } from "./support/service.ts";

/** Starts, stops and sweeps of the local service. */
const LIMIT = 240_000;
const FIRST = 700_000_001;
/** Numbers of an application. */
const SIZE = 24;

const created = z.object({ applicationId: z.string(), applicationSecret: z.string() });
const reconciled = z.tuple([z.object({ applicationId: z.string(), checked: z.number(), changed: z.number() })]);
const answered = z.object({ badgeId: z.string().optional(), id: z.string().optional(), error: z.string().optional() });

let service: RunningService;

beforeEach(async () => {
  service = await startService();
}, LIMIT);

afterEach(async () => {
  await service?.stop();
  service?.remove();
});

const create = (home: number, first: number, last: number) => {
  const range = ["--first", String(first), "--last", String(last)];
  return service.admin("application", "create", "--name", "Restored", "--home", String(home), ...range, "--json");
};

/** An application with what its devices and its server call. */
class Application {
  readonly id: string;
  readonly #server: Record<string, string>;

  private constructor({ applicationId, applicationSecret }: z.infer<typeof created>) {
    this.id = applicationId;
    this.#server = { applicationid: applicationId, applicationsecret: applicationSecret };
  }

  static async create(home: number, first: number): Promise<Application> {
    return new Application(created.parse(JSON.parse((await create(home, first, first + SIZE - 1)).stdout)));
  }

  async #call(method: string, path: string, headers: Record<string, string>, body?: unknown) {
    const response = await fetch(new URL(path, service.origin), {
      method,
      headers: { applicationid: this.id, ...headers },
      ...(body !== undefined && { body: JSON.stringify(body) }),
    });
    return { status: response.status, ...answered.parse(await response.json()) };
  }

  ask = (udid: string, invitationToken?: string) =>
    this.#call("POST", "/v1/badge", { udid }, { userId: "user", ...(invitationToken && { invitationToken }) });

  numberOf = async (udid: string, token?: string): Promise<string> =>
    z.string().parse((await this.ask(udid, token)).badgeId);

  async invite(): Promise<{ token: string; number: string }> {
    const expiresAt = new Date(Date.now() + 3_600_000).toISOString();
    const { id, badgeId } = await this.#call("POST", "/v1/invitation", { udid: "server" }, { expiresAt });
    return { token: z.string().parse(id), number: z.string().parse(badgeId) };
  }

  revoke = (token: string) => this.#call("PATCH", `/v1/invitation/${token}/revoke`, this.#server);
  revokeBadge = (number: string) => this.#call("PATCH", `/v1/badges/${number}/revoke`, this.#server);

  /** Follows the feed by one page. */
  async changesAfter(cursor: string | null) {
    const path = cursor === null ? "/v1/changes" : `/v1/changes?cursor=${cursor}`;
    const response = await fetch(new URL(path, service.origin), { headers: this.#server });
    return { status: response.status, body: await response.json(), cursor: response.headers.get("pagination-cursor") };
  }

  /** Gives out whatever is left of the range. */
  async useUp(prefix: string): Promise<string[]> {
    const numbers: string[] = [];
    for (let device = 0; ; device++) {
      const { status, badgeId, error } = await this.ask(`${prefix}-${device}`);
      if (badgeId === undefined) {
        expect([status, error]).toEqual([503, "NUMBERS_EXHAUSTED"]);
        return numbers;
      }
      numbers.push(badgeId);
    }
  }
}

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

/** Names of the files in which the D1 of one home is: the file that has its application, and what SQLite keeps beside it. */
function filesOf(application: Application): (name: string) => boolean {
  const [live] = copyOf("d1", "");
  const file = readdirSync(live, { recursive: true, encoding: "utf8" }).find((name) => {
    if (!name.endsWith(".sqlite") || name.endsWith("metadata.sqlite")) return false;
    const database = new DatabaseSync(join(live, name), { readOnly: true });
    const row = database.prepare("SELECT id FROM application WHERE id = ?").get(application.id);
    database.close();
    return row !== undefined;
  });
  if (file === undefined) throw new Error(`no D1 has ${application.id}`);
  return (name) => name.startsWith(file);
}

/** The stopped service starts again with one application's D1 of one moment and the objects of another. */
async function restart(application: Application, moments: { d1: string; do: string }): Promise<void> {
  await service.stop();
  const isOfHome = filesOf(application);
  for (const part of ["d1", "do"] as const) {
    const [live, copy] = copyOf(part, moments[part]);
    const chosen = (folder: string) =>
      part === "do" ? [""] : readdirSync(folder, { recursive: true, encoding: "utf8" }).filter(isOfHome);
    for (const name of chosen(live)) rmSync(join(live, name), { recursive: true });
    for (const name of chosen(copy)) cpSync(join(copy, name), join(live, name), { recursive: true });
  }
  service = await service.restart();
}

async function reconcile(application: Application, restored: "d1" | "object") {
  const words = ["reconcile", application.id, "--restored", restored, "--json"];
  const { code, stdout, stderr } = await service.admin(...words);
  expect([code, stderr.split("\n").at(-1)]).toEqual([0, ""]);
  return reconciled.parse(JSON.parse(stdout))[0];
}

// In the default suite, test/invitations/restored.test.ts says the same of rows that are put back.
describe.skipIf(byEffort(true, false))("one home restored alone (contract sections 1, 12, 13 and 17)", () => {
  it.each([1, 2])(
    "home %i, by its D1 or its objects: no number is reissued, reconcile restores what was lost, and the other home notices nothing",
    {
      timeout: LIMIT,
    },
    async (home) => {
      const app = await Application.create(home, FIRST);
      const other = await Application.create(3 - home, FIRST + SIZE);
      const others = new Map<string, string>();
      const phones = new Map<string, string>();
      const get = async (udid: string) => {
        phones.set(udid, await app.numberOf(udid));
        others.set(udid, await other.numberOf(udid));
      };
      for (const udid of ["a", "b", "c"]) await get(udid);
      const lost = await app.numberOf("lost");
      const othersLost = await other.numberOf("lost");
      const [claimed, revoked, pending] = [await app.invite(), await app.invite(), await app.invite()];
      await keep("old");

      service = await service.restart();
      for (const udid of ["d", "e"]) await get(udid);
      expect(await app.numberOf("guest", claimed.token)).toBe(claimed.number);
      await app.revoke(revoked.token);
      await get("after the revoked");
      const late = await app.invite();
      expect(await app.revokeBadge(lost)).toMatchObject({ status: 200 });
      expect(await other.revokeBadge(othersLost)).toMatchObject({ status: 200 });
      const { cursor } = await app.changesAfter(null);
      expect(await app.changesAfter(cursor)).toMatchObject({ status: 200 });
      const { cursor: othersCursor } = await other.changesAfter(null);
      // Home 1 forgets its registration or home 2 the application: the numbers are taken all the same.
      const newer = await Application.create(2, FIRST + 2 * SIZE);
      await keep("new");

      // D1 is older: what was issued, claimed and revoked since is known to the object only.
      await restart(app, { d1: "old", do: "new" });
      expect(await app.ask("thief", claimed.token)).toMatchObject({ status: 409, error: "CLAIMED_INVITATION" });
      expect(await app.ask("thief", revoked.token)).toMatchObject({ status: 410, error: "REVOKED_INVITATION" });
      // The sweep notices it, without reconcile.
      await expect.poll(() => app.changesAfter(cursor), { timeout: 120_000 }).toMatchObject({ status: 410 });
      expect(await other.changesAfter(othersCursor)).toMatchObject({ status: 200, body: { changes: [] } });
      expect(await reconcile(app, "d1")).toMatchObject({ changed: 2 });
      expect(await app.ask("lost")).toMatchObject({ status: 403, error: "REVOKED_BADGE" });
      expect(await app.changesAfter(cursor)).toMatchObject({ status: 410 });
      expect(await other.changesAfter(othersCursor)).toMatchObject({ status: 200, body: { changes: [] } });
      for (const [udid, number] of others)
        expect(await other.ask(udid), udid).toMatchObject({ status: 200, badgeId: number });
      expect(await other.ask("lost")).toMatchObject({ status: 403, error: "REVOKED_BADGE" });
      expect(await other.changesAfter(othersCursor)).toMatchObject({ status: 200, body: { changes: [] } });
      const overlapping = await create(home, FIRST + 2 * SIZE, FIRST + 3 * SIZE);
      expect([overlapping.code, overlapping.stderr]).toEqual([1, expect.stringContaining(newer.id)]);
      for (const [udid, number] of phones) expect(await app.numberOf(udid), udid).toBe(number);
      expect(await app.numberOf("guest", claimed.token)).toBe(claimed.number);
      expect(await app.numberOf("visitor", pending.token)).toBe(pending.number);
      const known = new Set([...phones.values(), lost, claimed.number, pending.number, late.number]);
      const rest = await app.useUp("d1");
      expect(rest).toHaveLength(SIZE - known.size);
      expect(new Set([...known, ...rest]).size).toBe(SIZE);
      const othersRest = await other.useUp("d1");
      const ofOthers = [...others.values(), othersLost, ...othersRest];
      expect(new Set([...known, ...rest, ...ofOthers]).size).toBe(2 * SIZE);

      // The objects are older: D1 knows numbers that they do not.
      await restart(app, { d1: "new", do: "old" });
      expect(await reconcile(app, "object")).toMatchObject({ changed: expect.any(Number) });
      for (const [udid, number] of phones) expect(await app.numberOf(udid), udid).toBe(number);
      expect(await app.ask("thief", claimed.token)).toMatchObject({ status: 409 });
      expect(await app.ask("thief", revoked.token)).toMatchObject({ status: 410 });
      expect(await app.ask("lost")).toMatchObject({ status: 403, error: "REVOKED_BADGE" });
      expect(await app.numberOf("visitor", pending.token)).toBe(pending.number);
      expect(await app.numberOf("late", late.token)).toBe(late.number);
      const again = await app.useUp("object");
      expect(again).toHaveLength(SIZE - known.size);
      expect(new Set([...known, ...again]).size).toBe(SIZE);
    },
  );
});
