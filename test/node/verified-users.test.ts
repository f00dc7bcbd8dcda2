import { afterAll, beforeAll, describe, expect, it } from "vitest";
import { DeviceClient, isRefusedUserToken } from "../../src/client/index.ts";
import { ALGORITHMS, newProviderKey, type ProviderKey } from "../users/provider.ts";
import { type Harness, startHarness } from "./support/harness.ts";
import { type ProviderServer, startProvider } from "./support/provider-server.ts";

/** The deployed Worker against a provider behind a real HTTP server: what a stubbed `fetch` cannot show. */
describe("verified users over a real network (contract section 22)", () => {
  let service: Harness;
  let server: ProviderServer;
  let phones = 0;
  const keys = new Map<string, ProviderKey>();

  beforeAll(async () => {
    server = await startProvider();
    for (const algorithm of ALGORITHMS) keys.set(algorithm, await newProviderKey(algorithm));
    server.provider.published.push(...keys.values());
    service = await startHarness();
    await service.database.run((_, d1) =>
      d1
        .prepare("UPDATE application SET user_issuer = ?, user_audience = 'phone-app' WHERE id = ?")
        .bind(server.provider.issuer, service.applicationId)
        .run(),
    );
  }, 120_000);

  afterAll(async () => {
    await server?.close();
  });

  function phone(): DeviceClient {
    const { origin: baseUrl, applicationId } = service;
    return new DeviceClient({ baseUrl, applicationId, udid: `phone-${++phones}`, maxTries: 1 });
  }

  const logIn = async (userToken: string, by = phone()) => by.requestBadge({ userId: "alice", userToken });

  it("a login, a signature, a lost phone, and its suspension from another device", async () => {
    const userToken = await server.provider.token("alice");
    const lost = phone();
    const { badgeId } = await logIn(userToken, lost);
    expect(await lost.sign("AAAA")).toContain(".");
    const other = phone();
    expect((await other.ownBadges({ userToken })).map(({ id }) => id)).toContain(badgeId);
    await other.suspendOwn(badgeId, { userToken });
    await expect(lost.sign("AAAA")).rejects.toMatchObject({ code: "SUSPENDED_BADGE" });
    await expect(logIn(userToken, lost)).rejects.toMatchObject({ code: "SUSPENDED_BADGE" });
  });

  it.each(ALGORITHMS)("takes tokens by %s", async (algorithm) => {
    const key = keys.get(algorithm);
    if (key === undefined) throw new Error("no such key");
    expect((await logIn(await server.provider.token("alice", {}, { key }))).created).toBe(true);
    const forged = await server.provider.token(
      "alice",
      {},
      { key: { ...(await newProviderKey(algorithm)), jwk: key.jwk } },
    );
    expect(isRefusedUserToken(await logIn(forged).catch((error: unknown) => error))).toBe(true);
  });

  it("follows a rotation with the first token by the new key", async () => {
    const { provider } = server;
    const key = await newProviderKey("RS256");
    provider.published = [key];
    expect((await logIn(await provider.token("alice", {}, { key }))).created).toBe(true);
    const withdrawn = await logIn(await provider.token("alice")).catch((error: unknown) => error);
    expect(isRefusedUserToken(withdrawn)).toBe(true);
    provider.published = [key, provider.key];
  });

  it("works on with the keys that it knows while the provider is away", async () => {
    const [key = server.provider.key] = server.provider.published;
    const token = await server.provider.token("alice", {}, { key });
    await server.close();
    expect((await logIn(token)).created).toBe(true);
    await server.open();
  });
});
