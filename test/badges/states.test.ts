import { describe, expect, it } from "vitest";
import { stateAt } from "../../src/shared/badge-life/states.ts";
import { type Decision, decideStep, type Life, type Step } from "../../src/worker/core/decide/states.ts";

const NOW = 1_000_000;
const PAST = NOW - 10;
const AHEAD = NOW + 10;
const LATER = NOW + 20;
/** When the sweep noted an expiry. */
const NOTED = NOW - 5;

/** Every end that a badge can have when it is looked at. Noted: the sweep has found it expired. */
const ENDS = {
  none: { expiresAt: null, isNoted: false },
  ahead: { expiresAt: AHEAD, isNoted: false },
  past: { expiresAt: PAST, isNoted: false },
  "past and noted": { expiresAt: PAST, isNoted: true },
  "this very moment": { expiresAt: NOW, isNoted: false },
} as const;

type End = keyof typeof ENDS;
const ENDS_AHEAD: readonly End[] = ["none", "ahead"];
const ENDS_PAST: readonly End[] = ["past", "past and noted", "this very moment"];
const ALL_ENDS = [...ENDS_AHEAD, ...ENDS_PAST];

function badge(state: Life["state"], end: End): Life {
  const { expiresAt, isNoted } = ENDS[end];
  const isFinal = state === "revoked" || state === "replaced";
  return { state, startsAt: null, expiresAt, endedAt: isFinal || isNoted ? NOTED : null };
}

const SUSPEND: Step = { kind: "suspend" };
const RESUME: Step = { kind: "resume" };
const REVOKE: Step = { kind: "revoke" };
const NOTE: Step = { kind: "note-expiry" };
const setEnd = (expiresAt: number | null): Step => ({ kind: "reschedule", expiresAt });

const REFUSED: Decision = { kind: "refused" };
const UNCHANGED: Decision = { kind: "unchanged" };

/** The decision for a stored state and an end, for every step. */
const decideAll = (state: Life["state"], end: End, step: Step) => decideStep(badge(state, end), step, NOW);

describe("the state of a badge that callers see (contract section 12)", () => {
  it.each(["active", "suspended"] as const)(
    "is %s as stored until its end, and expired from that moment on",
    (state) => {
      for (const end of ENDS_AHEAD) expect(stateAt(badge(state, end), NOW)).toBe(state);
      for (const end of ENDS_PAST) expect(stateAt(badge(state, end), NOW)).toBe("expired");
    },
  );

  it.each(["active", "suspended"] as const)(
    "is expired once the expiry is recorded, even if the clock is behind (%s)",
    (state) => {
      expect(stateAt({ state, expiresAt: AHEAD, endedAt: NOTED }, NOW)).toBe("expired");
    },
  );

  it.each(["revoked", "replaced"] as const)("stays %s, whatever end it has", (state) => {
    for (const end of ALL_ENDS) expect(stateAt(badge(state, end), NOW)).toBe(state);
  });
});

describe("suspend and resume (contract section 12)", () => {
  it.each(ENDS_AHEAD)("suspend an active badge and resume it, with the end: %s", (end) => {
    const { expiresAt } = ENDS[end];
    expect(decideAll("active", end, SUSPEND)).toEqual({
      kind: "changed",
      next: { state: "suspended", startsAt: null, expiresAt, endedAt: null },
      becomes: "suspended",
    });
    expect(decideAll("suspended", end, RESUME)).toEqual({
      kind: "changed",
      next: { state: "active", startsAt: null, expiresAt, endedAt: null },
      becomes: "active",
    });
  });

  it.each(ENDS_AHEAD)("change nothing when the badge is already in that state, with the end: %s", (end) => {
    expect(decideAll("suspended", end, SUSPEND)).toEqual(UNCHANGED);
    expect(decideAll("active", end, RESUME)).toEqual(UNCHANGED);
  });

  it.each(ENDS_PAST)("are refused for an expired badge, with the end: %s", (end) => {
    for (const state of ["active", "suspended"] as const) {
      for (const step of [SUSPEND, RESUME]) expect(decideAll(state, end, step)).toEqual(REFUSED);
    }
  });
});

describe("revoke (contract section 12)", () => {
  it.each(ALL_ENDS)("is final for active, suspended and expired badges, with the end: %s", (end) => {
    const { expiresAt, isNoted } = ENDS[end];
    for (const state of ["active", "suspended"] as const) {
      expect(decideAll(state, end, REVOKE)).toEqual({
        kind: "changed",
        next: { state: "revoked", startsAt: null, expiresAt, endedAt: isNoted ? NOTED : NOW },
        becomes: "revoked",
      });
    }
  });
});

describe("setting an end (contract section 12)", () => {
  it.each(["active", "suspended"] as const)("leaves a badge %s while the end is in the future", (state) => {
    for (const end of ENDS_AHEAD) {
      const given = end === "none" ? LATER : null;
      for (const expiresAt of [LATER, given]) {
        expect(decideAll(state, end, setEnd(expiresAt))).toEqual({
          kind: "changed",
          next: { state, startsAt: null, expiresAt, endedAt: null },
          becomes: null,
        });
      }
    }
  });

  it.each(["active", "suspended"] as const)(
    "to a past or the present time ends a badge that is %s at once",
    (state) => {
      for (const end of ENDS_AHEAD) {
        for (const expiresAt of [PAST, NOW]) {
          expect(decideAll(state, end, setEnd(expiresAt))).toEqual({
            kind: "changed",
            next: { state, startsAt: null, expiresAt, endedAt: NOW },
            becomes: "expired",
          });
        }
      }
    },
  );

  it.each(["active", "suspended"] as const)(
    "ahead restores an expired badge to %s, and tells so if it was told",
    (state) => {
      for (const expiresAt of [AHEAD, null]) {
        const next = { state, startsAt: null, expiresAt, endedAt: null };
        const step = setEnd(expiresAt);
        expect(decideAll(state, "past and noted", step)).toEqual({ kind: "changed", next, becomes: state });
        expect(decideAll(state, "past", step)).toEqual({ kind: "changed", next, becomes: null });
        expect(decideAll(state, "this very moment", step)).toEqual({ kind: "changed", next, becomes: null });
      }
    },
  );

  it.each(["active", "suspended"] as const)(
    "to another past time leaves a stored %s expired, and tells so once",
    (state) => {
      const expiresAt = PAST - 1;
      const step = setEnd(expiresAt);
      expect(decideAll(state, "past", step)).toEqual({
        kind: "changed",
        next: { state, startsAt: null, expiresAt, endedAt: NOW },
        becomes: "expired",
      });
      expect(decideAll(state, "past and noted", step)).toEqual({
        kind: "changed",
        next: { state, startsAt: null, expiresAt, endedAt: NOTED },
        becomes: null,
      });
    },
  );

  it.each(ALL_ENDS)("to the badge's present end changes nothing: %s", (end) => {
    for (const state of ["active", "suspended"] as const) {
      expect(decideAll(state, end, setEnd(ENDS[end].expiresAt))).toEqual(UNCHANGED);
    }
  });
});

describe("recording an expiry (contract section 12)", () => {
  it("ends a badge whose end has passed, once, as of its end", () => {
    for (const state of ["active", "suspended"] as const) {
      for (const end of ["past", "this very moment"] as const) {
        const { expiresAt } = ENDS[end];
        expect(decideAll(state, end, NOTE)).toEqual({
          kind: "changed",
          next: { state, startsAt: null, expiresAt, endedAt: expiresAt },
          becomes: "expired",
        });
      }
      expect(decideAll(state, "past and noted", NOTE)).toEqual(UNCHANGED);
    }
  });

  it("does nothing to a badge without an end or with one in the future", () => {
    for (const state of ["active", "suspended"] as const) {
      for (const end of ENDS_AHEAD) expect(decideAll(state, end, NOTE)).toEqual(UNCHANGED);
    }
  });
});

describe("badges in a final state (contract section 12)", () => {
  it.each(ALL_ENDS)("accept no step but another revocation, which changes nothing, with the end: %s", (end) => {
    const steps = [SUSPEND, RESUME, setEnd(null), setEnd(AHEAD), setEnd(PAST), setEnd(ENDS[end].expiresAt)];
    for (const step of steps) {
      expect(decideAll("revoked", end, step)).toEqual(REFUSED);
      expect(decideAll("replaced", end, step)).toEqual(REFUSED);
    }
    expect(decideAll("revoked", end, REVOKE)).toEqual(UNCHANGED);
    expect(decideAll("replaced", end, REVOKE)).toEqual(REFUSED);
    for (const state of ["revoked", "replaced"] as const) expect(decideAll(state, end, NOTE)).toEqual(UNCHANGED);
  });
});
