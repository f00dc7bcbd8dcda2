import type { ComponentChildren } from "preact";
import type { Application, Badge, BadgeState, ServerClient } from "../../client/index.ts";
import { grouped } from "../parts/texts.tsx";

/** The steps of a badge's life that the page offers (contract section 12). A new step is an entry here. */
export interface BadgeStep {
  /** The button; `…` follows where the step asks first. */
  label: string;
  from: readonly BadgeState[];
  /** Absent: for every badge in these states. */
  isOffered?: (badge: Badge, application: Application) => boolean;
  /** Absent: nothing is lost by it, so it does not ask. */
  question?: {
    title: (badge: Badge) => string;
    text: (badge: Badge) => ComponentChildren;
  };
  /** Whether it cannot be undone. */
  isFinal?: boolean;
  act: (server: ServerClient, badge: Badge) => Promise<Badge>;
  /** Notice for when it is done. */
  done: (badge: Badge) => string;
  /** Absent: it cannot be undone. */
  undo?: Pick<BadgeStep, "act" | "done">;
}

const suspend: Pick<BadgeStep, "act" | "done"> = {
  act: (server, { id }) => server.suspendBadge(id),
  done: ({ id }) => `Badge ${grouped(id)} is suspended.`,
};

const resume: Pick<BadgeStep, "act" | "done"> = {
  act: (server, { id }) => server.resumeBadge(id),
  done: ({ id }) => `Badge ${grouped(id)} is active again.`,
};

export const BADGE_STEPS: readonly BadgeStep[] = [
  {
    label: "Suspend",
    from: ["active"],
    question: {
      title: ({ id }) => `Suspend badge ${grouped(id)}?`,
      text: ({ userId }) => (
        <>
          <p>
            The phone of {userId} is refused from now on, until you resume the badge. Right for a phone that is missing.
          </p>
          <p>You can undo this: the badge keeps its number.</p>
        </>
      ),
    },
    ...suspend,
    undo: resume,
  },
  {
    label: "Resume",
    from: ["suspended"],
    ...resume,
    undo: suspend,
  },
  {
    label: "Rebind",
    from: ["active", "suspended"],
    isOffered: ({ keyThumbprint }, { requireProof }) => keyThumbprint !== undefined || requireProof,
    question: {
      title: ({ id }) => `Let badge ${grouped(id)} move to another key?`,
      text: ({ userId }) => (
        <>
          <p>
            Within 24 hours, the first login of this phone of {userId} with another key binds the badge to that key.
            Right for a phone whose app was installed anew and has lost its key.
          </p>
          <p>
            <strong>Not for a phone that was lost:</strong> suspend or revoke its badge.
          </p>
        </>
      ),
    },
    act: (server, { id }) => server.rebindBadge(id),
    done: ({ id }) => `Badge ${grouped(id)} moves to the next key that its phone logs in with, within 24 hours.`,
  },
  {
    label: "Revoke",
    from: ["active", "suspended", "expired"],
    question: {
      title: ({ id }) => `Revoke badge ${grouped(id)}?`,
      text: ({ userId }) => (
        <>
          <p>The badge of {userId} ends for good, and its number is never issued again.</p>
          <p>
            <strong>This cannot be undone.</strong> Only an invitation that you create here gives this phone another
            badge.
          </p>
        </>
      ),
    },
    isFinal: true,
    act: (server, { id }) => server.revokeBadge(id),
    done: ({ id }) => `Badge ${grouped(id)} is revoked.`,
  },
];
