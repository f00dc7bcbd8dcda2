import type { Credentials } from "./session.ts";

/**
 * Carries a sign-in over a reload of its tab, for who chose that. The secret stands in the tab's `sessionStorage` only from the
 * moment when the page goes away until it is drawn again: a page that is open has nothing stored, so a copy of the tab, a
 * crash and whoever looks into the browser's files meanwhile find nothing. What is found after anything but a reload, or after
 * a minute, is thrown away unread.
 */

const KEY = "console-sign-in";
const LIMIT_MILLISECONDS = 60_000;

/** A link to another page was followed: what comes is no reload. */
let isLeaving = false;

addEventListener("click", ({ target, ctrlKey, metaKey, shiftKey }) => {
  // Those open another tab or window.
  if (ctrlKey || metaKey || shiftKey) return;
  const link = target instanceof Element ? target.closest("a") : null;
  if (link?.protocol === location.protocol && link.pathname !== location.pathname) isLeaving = true;
});

export function keepForReload(credentials: Credentials | null): void {
  if (credentials === null || isLeaving) return;
  sessionStorage.setItem(KEY, JSON.stringify({ ...credentials, at: Date.now() }));
}

/** The page is shown, so nothing is to be kept. */
export function discardKept(): void {
  isLeaving = false;
  sessionStorage.removeItem(KEY);
}

/** @returns null unless the tab has just been reloaded by somebody who chose to stay signed in */
export function takeAfterReload(): Credentials | null {
  const text = sessionStorage.getItem(KEY);
  discardKept();
  const [entry] = performance.getEntriesByType("navigation");
  const isReload = entry instanceof PerformanceNavigationTiming && entry.type === "reload";
  return text !== null && isReload ? parseKept(text) : null;
}

function parseKept(text: string): Credentials | null {
  const kept: unknown = JSON.parse(text);
  if (typeof kept !== "object" || kept === null) return null;
  if (!("applicationId" in kept && "applicationSecret" in kept && "at" in kept)) return null;
  const { applicationId, applicationSecret, at } = kept;
  if (typeof applicationId !== "string" || typeof applicationSecret !== "string" || typeof at !== "number") return null;
  return Math.abs(Date.now() - at) < LIMIT_MILLISECONDS ? { applicationId, applicationSecret } : null;
}
