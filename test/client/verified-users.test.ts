import { beforeEach, describe, expect, it } from "vitest";
import { BadgeServiceError, isRefusedUserToken, webCryptoProofKey } from "../../src/client/index.ts";
import { Phone } from "../bound/support.ts";
import { newKey } from "../dpop/support.ts";
import { createApplication, type TestApplication } from "../support/application.ts";
import { type Provider, useProviders } from "../users/provider.ts";
import { device, failureOf, fakeService, refusal } from "./support.ts";

const newProvider = useProviders();

let provider: Provider;
let application: TestApplication;

beforeEach(async () => {
  provider = await newProvider();
  application = await createApplication(provider.columns);
});

describe("the client of an application that has its users verified (contract section 22)", () => {
  it("the client logs in with a user token, lists the user's badges, and suspends that of a lost phone", async () => {
    const userToken = await provider.token("alice");
    const [lost, found] = [device(application, "lost"), device(application, "found")];
    const { badgeId } = await lost.requestBadge({ userId: "alice", userToken });
    const other = await found.requestBadge({ userId: "alice", userToken });
    expect(await found.ownBadges({ userToken })).toMatchObject([
      { id: other.badgeId, userId: "alice", state: "active" },
      { id: badgeId, userId: "alice", state: "active" },
    ]);
    expect(await found.suspendOwn(badgeId, { userToken })).toMatchObject({
      id: badgeId,
      userId: "alice",
      state: "suspended",
    });
    expect(await failureOf(lost.sign("AAAA"))).toMatchObject({ code: "SUSPENDED_BADGE" });
    expect(await found.sign("AAAA")).toContain(".");
  });

  it("the client says that it needs another token, and does not retry with the same", async () => {
    const expired = await provider.token("alice", { exp: 1 });
    const phone = device(application, "phone");
    for (const call of [
      () => phone.requestBadge({ userId: "alice" }),
      () => phone.requestBadge({ userId: "alice", userToken: expired }),
      () => phone.ownBadges({ userToken: expired }),
      () => phone.suspendOwn("7", { userToken: expired }),
    ]) {
      expect(isRefusedUserToken(await failureOf(call()))).toBe(true);
    }
    const { requests, options } = fakeService(refusal(401, "INVALID_USERTOKEN"));
    await failureOf(device(application, "phone", options).requestBadge({ userId: "alice", userToken: expired }));
    expect(requests).toHaveLength(1);
    expect(
      isRefusedUserToken(
        new BadgeServiceError({ status: 401, error: "INVALID_PROOF", requestId: null, retryAfterSeconds: null }),
      ),
    ).toBe(false);
  });

  it("the client proves its key for a token that is bound to it", async () => {
    const proofKey = await webCryptoProofKey((await newKey()).pair);
    const phone = device(application, "phone", { proofKey });
    const { badgeId } = await phone.requestBadge({ userId: "alice", userToken: await provider.token("alice") });
    const jkt = await new Phone(application, "phone", proofKey).thumbprint();
    const userToken = await provider.token("alice", { cnf: { jkt } });
    expect(await phone.requestBadge({ userId: "alice", userToken })).toMatchObject({ created: false, badgeId });
    expect(await phone.ownBadges({ userToken })).toMatchObject([{ id: badgeId }]);
    expect(await phone.suspendOwn(badgeId, { userToken })).toMatchObject({ state: "suspended" });
    const stranger = device(application, "phone", { proofKey: await webCryptoProofKey((await newKey()).pair) });
    expect(isRefusedUserToken(await failureOf(stranger.ownBadges({ userToken })))).toBe(true);
  });

  it("the client does not let a badge ID lead to another path", async () => {
    const { requests, options } = fakeService(refusal(404, "UNKNOWN_BADGE"));
    const phone = device(application, "phone", options);
    for (const badgeId of ["", "..", "a/../b"]) {
      await failureOf(Promise.resolve().then(() => phone.suspendOwn(badgeId, { userToken: "token" })));
    }
    expect(requests.map(({ url }) => url)).toEqual([expect.stringMatching(/\/a%2F..%2Fb\/suspend$/)]);
  });
});
