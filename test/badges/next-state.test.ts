import { describe, expect, it } from "vitest";
import { stateAt } from "../../src/shared/badge-lifecycle/states.ts";
import {
  type Decision,
  decideState,
  type Life,
  type Transition,
} from "../../src/worker/allocator/decide/next-state.ts";

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

const LIVE = ["active", "suspended"] as const;
const ENDED = ["revoked", "replaced"] as const;

function badge(state: Life["state"], end: End): Life {
  const { expiresAt, isNoted } = ENDS[end];
  const isFinal = state === "revoked" || state === "replaced";
  return { state, startsAt: null, expiresAt, endedAt: isFinal || isNoted ? NOTED : null };
}

const SUSPEND: Transition = { kind: "suspend" };
const RESUME: Transition = { kind: "resume" };
const REVOKE: Transition = { kind: "revoke" };
const NOTE: Transition = { kind: "expire" };
const setEnd = (expiresAt: number | null): Transition => ({ kind: "reschedule", expiresAt });

const REFUSED: Decision = { kind: "refused" };
const UNCHANGED: Decision = { kind: "unchanged" };

const take = (state: Life["state"], end: End, step: Transition) => decideState(badge(state, end), step, NOW);

/** A step that is granted: what the badge is then, and what is told. */
function changed(state: Life["state"], expiresAt: number | null, endedAt: number | null, becomes: string | null) {
  return { kind: "changed", next: { state, startsAt: null, expiresAt, endedAt }, becomes };
}

describe.each(LIVE)("a badge that is stored as %s (contract section 12)", (state) => {
  const other = state === "active" ? "suspended" : "active";
  const [toOther, toOwn] = state === "active" ? [SUSPEND, RESUME] : [RESUME, SUSPEND];

  it("before its end a badge is in that state, takes the step to the other one, and ends at once by an end that is not ahead", () => {
    for (const end of ENDS_AHEAD) {
      expect(stateAt(badge(state, end), NOW)).toBe(state);
      expect(take(state, end, toOther)).toEqual(changed(other, ENDS[end].expiresAt, null, other));
      for (const step of [toOwn, NOTE]) expect(take(state, end, step)).toEqual(UNCHANGED);
      for (const expiresAt of [LATER, end === "none" ? LATER : null]) {
        expect(take(state, end, setEnd(expiresAt))).toEqual(changed(state, expiresAt, null, null));
      }
      for (const expiresAt of [PAST, NOW]) {
        expect(take(state, end, setEnd(expiresAt))).toEqual(changed(state, expiresAt, NOW, "expired"));
      }
    }
  });

  it("from its end on a badge is expired, which is recorded once, and neither suspended nor resumed", () => {
    for (const end of ENDS_PAST) {
      const { expiresAt, isNoted } = ENDS[end];
      expect(stateAt(badge(state, end), NOW)).toBe("expired");
      for (const step of [SUSPEND, RESUME]) expect(take(state, end, step)).toEqual(REFUSED);
      const recorded = isNoted ? UNCHANGED : changed(state, expiresAt, expiresAt, "expired");
      expect(take(state, end, NOTE)).toEqual(recorded);
    }
    // Even if the clock is behind.
    expect(stateAt({ state, expiresAt: AHEAD, endedAt: NOTED }, NOW)).toBe("expired");
  });

  it.each(ALL_ENDS)("is revoked for good, and its present end again changes nothing: %s", (end) => {
    const { expiresAt, isNoted } = ENDS[end];
    expect(take(state, end, REVOKE)).toEqual(changed("revoked", expiresAt, isNoted ? NOTED : NOW, "revoked"));
    expect(take(state, end, setEnd(expiresAt))).toEqual(UNCHANGED);
  });

  it("a later end puts an expired badge back into its former state, an earlier one leaves it expired; the expiry sends one event, and the return only if it did", () => {
    for (const expiresAt of [AHEAD, null]) {
      const step = setEnd(expiresAt);
      expect(take(state, "past and noted", step)).toEqual(changed(state, expiresAt, null, state));
      for (const end of ["past", "this very moment"] as const) {
        expect(take(state, end, step)).toEqual(changed(state, expiresAt, null, null));
      }
    }
    const earlier = PAST - 1;
    expect(take(state, "past", setEnd(earlier))).toEqual(changed(state, earlier, NOW, "expired"));
    expect(take(state, "past and noted", setEnd(earlier))).toEqual(changed(state, earlier, NOTED, null));
  });
});

describe.each(ENDED)("a badge that is %s (contract section 12)", (state) => {
  it.each(ALL_ENDS)("stays so, and takes no step but another revocation of a revoked one, with the end: %s", (end) => {
    expect(stateAt(badge(state, end), NOW)).toBe(state);
    const steps = [SUSPEND, RESUME, setEnd(null), setEnd(AHEAD), setEnd(PAST), setEnd(ENDS[end].expiresAt)];
    for (const step of steps) expect(take(state, end, step)).toEqual(REFUSED);
    expect(take(state, end, REVOKE)).toEqual(state === "revoked" ? UNCHANGED : REFUSED);
    expect(take(state, end, NOTE)).toEqual(UNCHANGED);
  });
});
