import type {
  Application,
  Badge,
  BadgeState,
  BadgeStepOptions,
  CurrentBadge,
  ServerClient,
} from "../../client/index.ts";
import type { DoorCounts } from "../doors/knowing.ts";
import { grouped, shortTime } from "../parts/texts.tsx";
import { doorsAfterEnd, doorsAfterResume } from "./doors.ts";

/** When a badge starts and ends; null for no start or end. */
export interface Times {
  startsAt: string | null;
  expiresAt: string | null;
}

/** A change of a badge that the page offers. A new one is an entry in the list below. */
export interface BadgeStep {
  /** In menus, followed by `…` because a dialog opens. */
  label: string;
  /** The button that does it. */
  action: string;
  from: readonly BadgeState[];
  /** Absent: offered for every badge in these states. */
  isOffered?: (badge: Badge, application: Application) => boolean;
  /** What it means, in sentences. @param doors null if unknown */
  explain: (application: Application, doors: DoorCounts | null) => readonly string[];
  /** Whether it cannot be undone. */
  isFinal?: boolean;
  /** Whether doors must learn of it. */
  isForDoors?: boolean;
  /** Whether it asks for the badge's start and end. */
  asksTimes?: boolean;
  act: (server: ServerClient, badge: Badge, options: BadgeStepOptions, times: Times) => Promise<CurrentBadge>;
  done: (badge: Badge) => string;
  /** Restores the badge as it was before. Absent if it cannot be undone. */
  undo?: (server: ServerClient, before: Badge, options: BadgeStepOptions) => Promise<CurrentBadge>;
}

const named = ({ id }: Badge): string => `Badge ${grouped(id)}`;

export const timesOf = ({ startsAt, expiresAt }: Pick<Badge, "startsAt" | "expiresAt">): Times => ({
  startsAt: startsAt ?? null,
  expiresAt: expiresAt ?? null,
});

const BADGE_STEPS: readonly BadgeStep[] = [
  {
    label: "Suspend",
    action: "Suspend badge",
    isForDoors: true,
    from: ["active"],
    explain: (application, doors) => [
      "The phone is refused from now on, until you resume the badge. Use this for a missing phone.",
      doorsAfterEnd(application, doors),
      "You can undo this: the badge keeps its number.",
    ],
    act: (server, { id }, options) => server.suspendBadge(id, options),
    done: (badge) => `${named(badge)} is suspended.`,
    undo: (server, { id }, options) => server.resumeBadge(id, options),
  },
  {
    label: "Resume",
    action: "Resume badge",
    isForDoors: true,
    from: ["suspended"],
    explain: (application, doors) => [
      "The phone can open doors again. You can undo this.",
      doorsAfterResume(application, doors),
    ],
    act: (server, { id }, options) => server.resumeBadge(id, options),
    done: (badge) => `${named(badge)} is active again.`,
    undo: (server, { id }, options) => server.suspendBadge(id, options),
  },
  {
    label: "Change start or end",
    action: "Save",
    from: ["active", "suspended", "expired"],
    asksTimes: true,
    explain: () => [],
    act: (server, { id }, options, times) => server.setBadgeTimes(id, times, options),
    done: timesSentence,
    undo: (server, before, options) => server.setBadgeTimes(before.id, timesOf(before), options),
  },
  {
    label: "Let it move to another phone key",
    action: "Allow for 24 hours",
    from: ["active", "suspended"],
    isOffered: ({ keyThumbprint }, { requireProof }) => keyThumbprint !== undefined || requireProof,
    explain: () => [
      "Within 24 hours, the first login of this phone with another key binds the badge to that key. Use this after the app was reinstalled.",
      "Do not use this for a lost phone: suspend or revoke its badge.",
    ],
    act: (server, { id }, options) => server.rebindBadge(id, options),
    done: (badge) => `${named(badge)} moves to the next key that its phone logs in with, within 24 hours.`,
  },
  {
    label: "Revoke",
    action: "Revoke badge",
    isForDoors: true,
    from: ["active", "suspended", "expired"],
    isFinal: true,
    explain: (application, doors) => [
      "The badge ends for good, and its number is never issued again. Only an invitation gives this phone another badge.",
      doorsAfterEnd(application, doors),
      "This cannot be undone.",
    ],
    act: (server, { id }, options) => server.revokeBadge(id, options),
    done: (badge) => `${named(badge)} is revoked.`,
  },
];

/** The changes that are possible in a badge's state. */
export const stepsOf = (badge: Badge, application: Application): BadgeStep[] =>
  BADGE_STEPS.filter(({ from, isOffered }) => from.includes(badge.state) && (isOffered?.(badge, application) ?? true));

/** When a badge starts and ends, in a sentence. */
function timesSentence(badge: Badge): string {
  const { state, startsAt, expiresAt } = badge;
  if (state === "expired") return `${named(badge)} has ended.`;
  const start = startsAt === undefined ? "" : ` starts ${shortTime(startsAt)} and`;
  return `${named(badge)}${start} ${expiresAt === undefined ? "has no end" : `ends ${shortTime(expiresAt)}`}.`;
}
