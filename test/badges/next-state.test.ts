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

  it.each(ENDS_AHEAD)(
    "is in that state until its end, and takes the step to the other one, with the end: %s",
    (end) => {
      expect(stateAt(badge(state, end), NOW)).toBe(state);
      expect(take(state, end, toOther)).toEqual(changed(other, ENDS[end].expiresAt, null, other));
      for (const step of [toOwn, NOTE]) expect(take(state, end, step)).toEqual(UNCHANGED);
    },
  );

  it.each(ENDS_PAST)("is expired from its end on, and then neither suspended nor resumed, with the end: %s", (end) => {
    expect(stateAt(badge(state, end), NOW)).toBe("expired");
    for (const step of [SUSPEND, RESUME]) expect(take(state, end, step)).toEqual(REFUSED);
  });

  it("a badge is expired once the expiry is recorded, even if the clock is behind", () => {
    expect(stateAt({ state, expiresAt: AHEAD, endedAt: NOTED }, NOW)).toBe("expired");
  });

  it("a badge's expiry is recorded once, as of its end", () => {
    for (const end of ["past", "this very moment"] as const) {
      const { expiresAt } = ENDS[end];
      expect(take(state, end, NOTE)).toEqual(changed(state, expiresAt, expiresAt, "expired"));
    }
    expect(take(state, "past and noted", NOTE)).toEqual(UNCHANGED);
  });

  it.each(ALL_ENDS)("is revoked for good, and its present end again changes nothing: %s", (end) => {
    const { expiresAt, isNoted } = ENDS[end];
    expect(take(state, end, REVOKE)).toEqual(changed("revoked", expiresAt, isNoted ? NOTED : NOW, "revoked"));
    expect(take(state, end, setEnd(expiresAt))).toEqual(UNCHANGED);
  });

  it.each(ENDS_AHEAD)(
    "stays so with another end ahead, and ends at once by one that is not, with the end: %s",
    (end) => {
      for (const expiresAt of [LATER, end === "none" ? LATER : null]) {
        expect(take(state, end, setEnd(expiresAt))).toEqual(changed(state, expiresAt, null, null));
      }
      for (const expiresAt of [PAST, NOW]) {
        expect(take(state, end, setEnd(expiresAt))).toEqual(changed(state, expiresAt, NOW, "expired"));
      }
    },
  );

  it("a later end puts an expired badge back into its former state, and sends an event only if the expiry sent one", () => {
    for (const expiresAt of [AHEAD, null]) {
      const step = setEnd(expiresAt);
      expect(take(state, "past and noted", step)).toEqual(changed(state, expiresAt, null, state));
      for (const end of ["past", "this very moment"] as const) {
        expect(take(state, end, step)).toEqual(changed(state, expiresAt, null, null));
      }
    }
  });

  it("an earlier end in the past leaves an expired badge expired, and the expiry sends one event", () => {
    const expiresAt = PAST - 1;
    expect(take(state, "past", setEnd(expiresAt))).toEqual(changed(state, expiresAt, NOW, "expired"));
    expect(take(state, "past and noted", setEnd(expiresAt))).toEqual(changed(state, expiresAt, NOTED, null));
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
