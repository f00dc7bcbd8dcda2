import { describe, expect, it } from "vitest";
import { deviceId } from "../../src/shared/identifiers.ts";
import type { InvitationState } from "../../src/shared/schema.ts";
import { decideClaim, decideRevoke, type Invitation } from "../../src/worker/invitations/lifecycle.ts";

const EXPIRES_AT = 1_000_000;
const BEFORE = EXPIRES_AT - 1;
const AFTER = EXPIRES_AT + 1;
const ALWAYS = [BEFORE, EXPIRES_AT, AFTER];

const CREATOR = { device: deviceId.parse("creator") };
const ANOTHER = deviceId.parse("another");
const NO_BADGE = { isBlocked: false, badgeState: null, hasKey: true };
const CLAIMER = { device: deviceId.parse("claimer"), userId: "alice", ...NO_BADGE };
const OTHERS = [
  { device: ANOTHER, userId: "alice" },
  { device: CLAIMER.device, userId: "bob" },
  { device: ANOTHER, userId: "bob" },
  { device: CREATOR.device, userId: "alice" },
].map((userDevice) => ({ ...userDevice, ...NO_BADGE }));

function invitation(state: InvitationState): Invitation {
  const isClaimed = state === "claimed";
  return {
    state,
    expiresAtTime: EXPIRES_AT,
    creatorDevice: CREATOR.device,
    withSecret: false,
    claimDevice: isClaimed ? CLAIMER.device : null,
    claimUserId: isClaimed ? CLAIMER.userId : null,
  };
}

describe("presenting a token (contract section 5)", () => {
  it("is refused as unknown when there is no such invitation", () => {
    for (const now of ALWAYS) {
      expect(decideClaim(undefined, CLAIMER, now)).toEqual({ kind: "refuse", code: "UNKNOWN_INVITATION" });
    }
  });

  it("claims a pending invitation for whoever presents it, until the very moment of its expiry", () => {
    for (const claimer of [CLAIMER, ...OTHERS]) {
      expect(decideClaim(invitation("pending"), claimer, BEFORE)).toEqual({ kind: "claim" });
      expect(decideClaim(invitation("pending"), claimer, EXPIRES_AT)).toEqual({ kind: "expire" });
      expect(decideClaim(invitation("pending"), claimer, AFTER)).toEqual({ kind: "expire" });
    }
  });

  it("always returns the badge to its claimer again, and to no other device or user", () => {
    for (const now of ALWAYS) {
      expect(decideClaim(invitation("claimed"), CLAIMER, now)).toEqual({ kind: "already-claimed" });
      for (const other of OTHERS) {
        const decision = decideClaim(invitation("claimed"), other, now);
        expect(decision).toEqual({ kind: "refuse", code: "CLAIMED_INVITATION" });
      }
    }
  });

  it.each([
    ["revoked", "REVOKED_INVITATION"],
    ["expired", "EXPIRED_INVITATION"],
  ] as const)("is refused to everybody once the invitation is %s", (state, code) => {
    for (const now of ALWAYS) {
      for (const claimer of [CLAIMER, ...OTHERS]) {
        expect(decideClaim(invitation(state), claimer, now)).toEqual({ kind: "refuse", code });
      }
    }
  });
});

const SERVER = { kind: "server" } as const;
const CREATING_DEVICE = { kind: "device", ...CREATOR } as const;

describe("revoking (contract section 5)", () => {
  it("is refused as unknown when there is no such invitation", () => {
    for (const now of ALWAYS) {
      for (const revoker of [SERVER, CREATING_DEVICE]) {
        expect(decideRevoke(undefined, revoker, now)).toEqual({ kind: "refuse", code: "UNKNOWN_INVITATION" });
      }
    }
  });

  it.each([
    ["pending", BEFORE, { kind: "revoke" }],
    ["pending", EXPIRES_AT, { kind: "expire" }],
    ["pending", AFTER, { kind: "expire" }],
    ...ALWAYS.flatMap((now) => [
      ["revoked", now, { kind: "already-revoked" }] as const,
      ["claimed", now, { kind: "refuse", code: "CLAIMED_INVITATION" }] as const,
      ["expired", now, { kind: "refuse", code: "EXPIRED_INVITATION" }] as const,
    ]),
  ] as const)("of one that is %s at %i gives %o to the server and to the creating device", (state, now, decision) => {
    for (const revoker of [SERVER, CREATING_DEVICE]) {
      expect(decideRevoke(invitation(state), revoker, now)).toEqual(decision);
    }
  });

  it("reveals nothing about an invitation to another device, in any state", () => {
    for (const state of ["pending", "claimed", "revoked", "expired"] as const) {
      for (const now of ALWAYS) {
        // The claimer is no more than any other device.
        for (const device of [ANOTHER, CLAIMER.device]) {
          const decision = decideRevoke(invitation(state), { kind: "device", device }, now);
          expect(decision).toEqual({ kind: "refuse", code: "UNKNOWN_INVITATION" });
        }
      }
    }
  });
});
