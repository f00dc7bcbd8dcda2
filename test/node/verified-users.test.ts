import { afterAll, beforeAll, describe, expect, it } from "vitest";
import { DeviceClient, isRefusedUserToken } from "../../src/client/index.ts";
import { newProviderKey } from "../users/provider.ts";
import { type Harness, startHarness } from "./support/harness.ts";
import { type ProviderServer, startProvider } from "./support/provider-server.ts";

/** The Worker against a provider behind a real HTTP server: what a stubbed `fetch` (test/users) cannot show. */
describe("verified users over a real network (contract section 22)", () => {
  let service: Harness;
  let server: ProviderServer;
  let phones = 0;

  beforeAll(async () => {
    server = await startProvider();
    service = await startHarness();
    await service.database.run((_, d1) =>
      d1
        .prepare("UPDATE application SET user_issuer = ?, user_audience = 'phone-app' WHERE id = ?")
        .bind(server.provider.issuer, service.applicationId)
        .run(),
    );
  }, 120_000);

  afterAll(() => server?.close());

  /** A new phone asks for alice's badge. @returns whether it is new, or the client's error */
  async function logIn(userToken: string): Promise<unknown> {
    const { origin: baseUrl, applicationId } = service;
    const phone = new DeviceClient({ baseUrl, applicationId, udid: `phone-${++phones}`, maxTries: 1 });
    return phone.requestBadge({ userId: "alice", userToken }).then(
      ({ created }) => created,
      (error: unknown) => error,
    );
  }

  it("a login is checked with the provider's keys, also after a rotation, and not with another key of the same ID", async () => {
    const { provider } = server;
    expect(await logIn(await provider.token("alice"))).toBe(true);
    const other = { ...(await newProviderKey("ES256")), jwk: provider.key.jwk };
    const forged = await provider.token("alice", {}, { key: other });
    expect(await logIn(forged)).toSatisfy(isRefusedUserToken);
    const rotated = await newProviderKey("RS256");
    provider.published = [rotated];
    expect(await logIn(await provider.token("alice", {}, { key: rotated }))).toBe(true);
    expect(await logIn(await provider.token("alice"))).toSatisfy(isRefusedUserToken);
  });

  it("the service uses the keys that it knows while the provider is unreachable", async () => {
    const [key = server.provider.key] = server.provider.published;
    const token = await server.provider.token("alice", {}, { key });
    await server.close();
    expect(await logIn(token)).toBe(true);
  });
});
