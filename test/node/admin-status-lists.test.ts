import { describe, expect, it } from "vitest";
import * as z from "zod";
import { assertPublicUrl } from "../../src/admin/application/settings.ts";
import { commandsIn, stateFolder } from "./support/script.ts";

const { admin, json } = commandsIn(stateFolder());

const created = z.object({ applicationId: z.string() });

const create = async (...words: string[]) =>
  created.parse(await json("application", "create", "--name", "App", ...words)).applicationId;

describe("status lists in the administration script (contract section 14)", () => {
  it("are off by default, with a lifetime of a day, and shown by every command that shows applications", async () => {
    const plain = await create();
    const without = await create("--no-status-list", "--status-lifetime", "60");
    const withLists = await create("--status-list", "--status-lifetime", "3600");
    expect(await json("application", "show", plain)).toMatchObject({
      statusList: false,
      statusLifetimeSeconds: 86_400,
    });
    expect(await json("application", "list")).toMatchObject([
      { applicationId: plain, statusList: false, statusLifetimeSeconds: 86_400 },
      { applicationId: without, statusList: false, statusLifetimeSeconds: 60 },
      { applicationId: withLists, statusList: true, statusLifetimeSeconds: 3600 },
    ]);
    expect((await admin("application", "show", withLists)).stdout).toMatch(
      /^ {2}Status lists +yes, valid for 3600 s$/m,
    );
    expect((await admin("application", "show", plain)).stdout).toMatch(/^ {2}Status lists +no$/m);
  });

  it("can be turned on and off, and their lifetime changed, independently", async () => {
    const id = await create();
    const update = (...words: string[]) => json("application", "update", id, ...words);
    expect(await update("--status-list")).toMatchObject({ statusList: true, statusLifetimeSeconds: 86_400 });
    expect(await update("--status-lifetime", "900")).toMatchObject({ statusList: true, statusLifetimeSeconds: 900 });
    expect(await update("--name", "New")).toMatchObject({ statusList: true, statusLifetimeSeconds: 900 });
    expect(await update("--no-status-list")).toMatchObject({ statusList: false, statusLifetimeSeconds: 900 });
  });

  it.each(["59", "0", "-1", "1.5", "soon", "none", "1e9"])("refuse the lifetime %s", async (lifetime) => {
    const { code, stdout, stderr } = await admin(
      "application",
      "create",
      "--name",
      "App",
      "--status-lifetime",
      lifetime,
    );
    expect({ code, stdout }).toEqual({ code: 1, stdout: "" });
    expect(stderr).toMatch(/^.*--status-lifetime.*Give a whole number from 60 to \d+;.*\n$/);
  });

  it("need an https URL of the deployed service; locally http is enough", () => {
    expect(() => assertPublicUrl("https://badges.example.com", "production")).not.toThrow();
    expect(() => assertPublicUrl("http://localhost:8787", undefined)).not.toThrow();
    for (const text of ["http://badges.example.com", "badges.example.com", "https://badges.example.com/?a"]) {
      expect(() => assertPublicUrl(text, "production"), text).toThrow("is not an https URL");
    }
  });
});
