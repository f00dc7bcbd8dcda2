import { mkdtempSync, readFileSync, rmSync, writeFileSync } from "node:fs";
import { tmpdir } from "node:os";
import { join } from "node:path";
import { afterAll, beforeAll, describe, expect, it } from "vitest";
import * as z from "zod";
import type { ServerClient } from "../../src/client/index.ts";
import { type Harness, startHarness } from "./support/harness.ts";
import { startProgram } from "./support/program.ts";
import { freePort } from "./support/service.ts";

const CLIENT = new URL("../../src/client/", import.meta.url);

const copySchema = z.object({
  cursor: z.string(),
  badges: z.record(z.string(), z.looseObject({ id: z.string(), state: z.string() })),
});

/** The program of the client's README, with an address and credentials. */
function programOfReadme({ applicationId, applicationSecret }: Harness, origin: string): string {
  const readme = readFileSync(new URL("README.md", CLIENT), "utf8");
  const [, program = ""] = /```ts\n(import \{ existsSync.*?)^```/ms.exec(readme) ?? [];
  return `const applicationId = "${applicationId}", applicationSecret = "${applicationSecret}";\n${program}`
    .replace("@badge-distribution/client", new URL("index.ts", CLIENT).href)
    .replace("https://badges.example.com", origin);
}

describe("the program of the client's README that keeps a copy of the badges (contract section 13)", () => {
  const folder = mkdtempSync(join(tmpdir(), "badge-copy-"));
  let service: Harness;
  let server: ServerClient;

  const writeProgram = (origin: string) => writeFileSync(join(folder, "copy.mts"), programOfReadme(service, origin));

  const issue = async (udid: string, userId: string): Promise<string> =>
    (await service.phone(udid).requestBadge({ userId })).badgeId;

  /** Runs the program once, as cron would. @returns exit code and what it complained about */
  async function run(): Promise<{ code: number | null; stderr: string }> {
    const program = startProgram([process.execPath, "--disable-warning=ExperimentalWarning", "copy.mts"], {
      cwd: folder,
    });
    return { code: await program.ended, stderr: program.said.err };
  }

  const readCopy = () => copySchema.parse(JSON.parse(readFileSync(join(folder, "badges.json"), "utf8")));

  /** The live badges of the copy are what the list says, field by field. */
  async function expectCopyEqualsList(): Promise<void> {
    expect(await run()).toEqual({ code: 0, stderr: "" });
    const live = Object.values(readCopy().badges)
      .filter(({ state }) => state === "active" || state === "suspended")
      .map(({ change: _, changedAt: __, issuedAt: ___, state, ...badge }) =>
        state === "active" ? badge : { ...badge, state },
      );
    const listed = [];
    for await (const badge of server.listBadges({ perPage: 2 }).badges()) listed.push(badge);
    const byId = (one: { id: string }, other: { id: string }) => (one.id < other.id ? -1 : 1);
    expect(live.toSorted(byId)).toEqual(listed.toSorted(byId));
  }

  beforeAll(async () => {
    service = await startHarness();
    ({ server } = service);
    writeProgram(service.origin);
  });

  afterAll(() => rmSync(folder, { recursive: true }));

  it("the copy equals GET /v1/badges after every change of a badge, and after the service could not be reached", async () => {
    const [alice, bob, carol] = [
      await issue("phone-a", "alice"),
      await issue("phone-b", "bob"),
      await issue("c", "carol"),
    ];
    await server.suspendBadge(alice);
    await server.revokeBadge(bob);
    await expectCopyEqualsList();
    expect(readCopy().badges[alice]?.state).toBe("suspended");
    await server.resumeBadge(alice);
    await server.blockUser("carol");
    writeProgram(`http://localhost:${await freePort()}`);
    const before = readCopy();
    expect(await run()).toEqual({ code: 1, stderr: expect.stringContaining("NoResponseError") });
    expect(readCopy()).toEqual(before);
    writeProgram(service.origin);

    const expiresAt = new Date(Date.now() + 3_600_000);
    const { id: invitationToken, badgeId } = await server.createInvitation({ expiresAt, udid: "desk" });
    await service.phone("phone-a").requestBadge({ userId: "alice", invitationToken });
    await expectCopyEqualsList();
    const states = Object.fromEntries(Object.values(readCopy().badges).map(({ id, state }) => [id, state]));
    expect(states).toMatchObject({ [alice]: "replaced", [bob]: "revoked", [carol]: "revoked", [badgeId]: "active" });
    await server.setBadgeEnd(badgeId, new Date(0));
    await expectCopyEqualsList();
    expect(readCopy().badges[badgeId]?.state).toBe("expired");
  }, 120_000);

  it("the program starts again with an empty copy when its cursor has expired", async () => {
    const { badges } = readCopy();
    // A cursor as the service gives them, of another epoch: an administrator has accepted a loss since.
    const cursor = Buffer.from(JSON.stringify(["changes", { epoch: "0".repeat(32), change: 1 }])).toString("base64url");
    const neverHappened = { id: "7", userId: "mallory", state: "active", change: 1, changedAt: "2027-01-01" };
    writeFileSync(join(folder, "badges.json"), JSON.stringify({ cursor, badges: { ...badges, 7: neverHappened } }));
    await expectCopyEqualsList();
    expect(readCopy().badges).toEqual(badges);
  });
});
