import { afterAll, beforeAll, describe, expect, it } from "vitest";
import * as z from "zod";
import { type ProviderServer, startProvider } from "./support/provider-server.ts";
import { commandsIn, openedHomes, stateFolder } from "./support/script.ts";
import { freePort } from "./support/service.ts";

const folder = stateFolder();

let server: ProviderServer;
let issuer: string;

beforeAll(async () => {
  server = await startProvider();
  issuer = server.provider.issuer;
});

afterAll(() => server.close());

const { admin, json } = commandsIn(folder);

const created = z.object({ applicationId: z.string() });
const create = async (...words: string[]) =>
  created.parse(await json("application", "create", "--name", "App", ...words)).applicationId;

const OF_NOBODY = { userIssuer: null, userAudience: null, userClaim: "sub", userObserve: false };

describe("verified users in the administration script (contract section 22)", () => {
  it("are off unless an issuer is named; application show says what that means", async () => {
    const id = await create();
    expect(await json("application", "show", id)).toMatchObject(OF_NOBODY);
    expect((await admin("application", "show", id)).stdout).toMatch(
      /^ {2}Users are verified by +nobody: a device can name any user$/m,
    );
  });

  it("are turned on when an application is created, changed, observed first, and turned off", async () => {
    const id = await create("--user-issuer", issuer, "--user-audience", "phone-app");
    expect(await json("application", "show", id)).toMatchObject({
      ...{ userIssuer: issuer, userAudience: "phone-app", userClaim: "sub", userObserve: false },
    });
    const update = (...words: string[]) => json("application", "update", id, ...words);
    const options = ["--user-issuer", issuer, "--user-audience", "other-app", "--user-claim", "email"];
    const changed = { userIssuer: issuer, userAudience: "other-app", userClaim: "email" };
    expect(await update(...options, "--observe")).toMatchObject({ ...changed, userObserve: true });
    expect((await admin("application", "show", id)).stdout).toMatch(
      /^ {2}Logins without a token +counted, not refused$/m,
    );
    expect(await update("--name", "Renamed")).toMatchObject({ ...changed, userObserve: true });
    expect(await update(...options)).toMatchObject({ ...changed, userObserve: false });
    // The options replace each other.
    expect(await update("--user-issuer", issuer, "--user-audience", "app")).toMatchObject({ userClaim: "sub" });
    expect(await update("--no-user-issuer")).toMatchObject(OF_NOBODY);
  });

  it.each([
    [["--user-issuer", "https://login.example.com"], "Give --user-audience too"],
    [["--user-issuer", "https://login.example.com", "--user-audience", " "], "Give --user-audience too"],
    [["--user-audience", "app"], "give --user-issuer too"],
    [["--user-claim", "email"], "give --user-issuer too"],
    [["--observe"], "give --user-issuer too"],
    [["--unchecked"], "give --user-issuer too"],
    [["--no-user-issuer", "--observe"], "give --user-issuer too"],
    [["--user-issuer", "http://login.example.com", "--user-audience", "app"], "does not start with https://"],
    [["--user-issuer", "https://10.0.0.1", "--user-audience", "app"], "is an IP address"],
    [["--user-issuer", "https://login.internal", "--user-audience", "app"], "is a name of a local network"],
    [["--user-issuer", "https://login.example.com?a=b", "--user-audience", "app"], "has no query"],
    [["--user-issuer", "https://login.example.com", "--user-audience", "a", "--user-claim", " "], "--user-claim"],
  ])("are refused with %j", async (words, reason) => {
    const { code, stdout, stderr } = await admin("application", "create", "--name", "App", ...words);
    expect({ code, stdout }).toEqual({ code: 1, stdout: "" });
    expect(stderr).toContain(reason);
    expect(stderr.trim().split("\n")).toHaveLength(1);
  });

  it("have an issuer that calls itself so, to the letter", async () => {
    const { provider } = server;
    const sound = provider.discovery;
    const refusals: [() => Response, string][] = [
      [
        () => Response.json({ issuer: "https://evil.example.com", jwks_uri: `${issuer}/keys` }),
        "https://evil.example.com",
      ],
      [() => Response.json({ issuer: `${issuer}/`, jwks_uri: `${issuer}/keys` }), "to the letter"],
      [() => new Response("<html>"), "is not a discovery document"],
      [() => new Response(null, { status: 302, headers: { location: "/elsewhere" } }), "responds with 302"],
      [() => Response.json({ issuer, jwks_uri: "http://10.0.0.1/keys" }), "http://10.0.0.1/keys"],
      [() => new Response("x".repeat(10_000_000)), "responds with more"],
    ];
    for (const [discovery, reason] of refusals) {
      provider.discovery = discovery;
      const refused = await admin(
        "application",
        "create",
        "--name",
        "A",
        "--user-issuer",
        issuer,
        "--user-audience",
        "a",
      );
      expect({ code: refused.code, stdout: refused.stdout }).toEqual({ code: 1, stdout: "" });
      expect(refused.stderr).toContain(reason);
      expect(refused.stderr).toContain("--unchecked");
    }
    await create("--user-issuer", issuer, "--user-audience", "app", "--unchecked");
    provider.discovery = sound;
    const nobody = `http://127.0.0.1:${await freePort()}`;
    const refused = await admin(
      "application",
      "create",
      "--name",
      "A",
      "--user-issuer",
      nobody,
      "--user-audience",
      "a",
    );
    expect(refused.stderr).toContain("cannot be reached");
  });

  it("are counted by stats while they are observed, for a day", async () => {
    const id = await create("--user-issuer", issuer, "--user-audience", "app", "--observe");
    expect((await admin("stats", id)).stdout).toMatch(/observed by their user tokens\n {2}none/);
    const hour = Math.floor(Date.now() / 3_600_000);
    const { database } = await openedHomes(folder);
    const insert = "INSERT INTO observed_logins VALUES (?, ?, ?, ?, ?)";
    await database.run((_, d1) =>
      d1.batch([
        d1.prepare(insert).bind(id, hour, 1, 20, 300),
        d1.prepare(insert).bind(id, hour - 23, 1, 1, 1),
        d1.prepare(insert).bind(id, hour - 25, 1000, 1000, 1000),
      ]),
    );
    expect(await json("stats", id)).toMatchObject({ logins: { withToken: 2, withoutToken: 21, withWrongToken: 301 } });
    expect((await admin("stats", id)).stdout).toMatch(/without a token +21\b/);
  });
});
