import { createServer } from "node:http";
import { afterAll, describe, expect, it } from "vitest";
import { listenSomewhere } from "../../src/dev/demo/listen.ts";
import { localHomes } from "./support/script.ts";
import { freePort } from "./support/service.ts";

const { database, admin, create, json, refusal } = await localHomes();

/** The discovery document of an OpenID provider on this computer. */
let discovery = () => Response.json({ issuer, jwks_uri: `${issuer}/keys` });
const server = createServer(async (_, response) => void response.end(await discovery().bytes()));
const issuer = await listenSomewhere(server);

afterAll(() => server.close().closeAllConnections());

describe("verified users in the administration script (contract section 22)", () => {
  it("a user issuer makes the secret required for invitations, and no command lifts that while there is an issuer", async () => {
    const options = ["--user-issuer", issuer, "--user-audience", "app"];
    const { applicationId: id } = await create(...options);
    expect(await json("application", "show", id)).toMatchObject({ requireSecret: true });
    const refused = "invitations always need the secret";
    expect(await refusal("application", "update", id, "--no-require-secret")).toContain(refused);
    expect(await refusal("application", "update", id, ...options, "--no-require-secret")).toContain(refused);
    expect(await refusal("application", "create", "--name", "A", ...options, "--no-require-secret")).toContain(refused);
    const without = { requireSecret: false, userIssuer: null };
    const both = await json("application", "update", id, "--no-user-issuer", "--no-require-secret");
    expect(both).toMatchObject(without);
    expect(await json("application", "update", id, ...options)).toMatchObject({ requireSecret: true });
    expect(await json("application", "update", id, "--no-user-issuer")).toMatchObject(without);
  });

  it("--user-issuer is refused unless the discovery document names exactly that issuer", async () => {
    const refused = (url: string) =>
      refusal("application", "create", "--name", "A", "--user-issuer", url, "--user-audience", "a");
    const evil = "https://evil.example.com";
    const refusals: [() => Response, string][] = [
      [() => Response.json({ issuer: evil, jwks_uri: `${issuer}/keys` }), evil],
      [() => Response.json({ issuer: `${issuer}/`, jwks_uri: `${issuer}/keys` }), "exactly the same"],
      [() => Response.json({ issuer, jwks_uri: "http://10.0.0.1/keys" }), "http://10.0.0.1/keys"],
      [() => new Response("x".repeat(10_000_000)), "responded with more"],
    ];
    const sound = discovery;
    for (const [unsound, reason] of refusals) {
      discovery = unsound;
      const line = await refused(issuer);
      expect(line).toContain(reason);
      expect(line).toContain("--unchecked");
    }
    await create("--user-issuer", issuer, "--user-audience", "app", "--unchecked");
    discovery = sound;
    expect(await refused(`http://127.0.0.1:${await freePort()}`)).toContain("cannot be reached");
  });

  it("stats counts the last day's logins by user token while they are observed", async () => {
    const { applicationId: id } = await create("--user-issuer", issuer, "--user-audience", "app", "--observe");
    expect((await admin("stats", id)).stdout).toMatch(/Logins of the last day, by user token\n {2}none/);
    const hour = Math.floor(Date.now() / 3_600_000);
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

  it("the options of verified users are replaced together", async () => {
    const { applicationId: id } = await create("--user-issuer", issuer, "--user-audience", "phone-app", "--observe");
    const options = ["--user-issuer", issuer, "--user-audience", "app"];
    const changed = { userIssuer: issuer, userAudience: "app", userObserve: false };
    const claimed = await json("application", "update", id, ...options, "--user-claim", "email");
    expect(claimed).toMatchObject({ ...changed, userClaim: "email" });
    expect(await json("application", "update", id, ...options)).toMatchObject({ ...changed, userClaim: "sub" });
  });
});
