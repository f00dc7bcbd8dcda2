import type { ApplicationId } from "./identifiers.ts";

/**
 * A home is one D1 database with the allocator objects of its applications. An application lives in one
 * home for ever, and its ID names it: `app_…` is in home 1, `app2_…` in home 2.
 */

/** The number of an application's home. */
export function homeOf(applicationId: ApplicationId): number {
  return Number(applicationId.slice("app".length, applicationId.indexOf("_")) || 1);
}

/** Form of the variable `HOME_<number>`, the place of the home's objects: `location=weur`, `jurisdiction=eu`. */
export const HOME_PLACE = /^(location|jurisdiction)=([a-z-]+)$/;

export const databaseBindingOf = (home: number): string => (home === 1 ? "DB" : `DB_${home}`);

/**
 * The name of the binding of the queue that a home sends to, if it has one of its own. A home in a jurisdiction has
 * one, because its messages must stay there, too. The other homes share home 1's.
 */
export const queueBindingOf = (home: number): string => (home === 1 ? "WEBHOOKS" : `WEBHOOKS_${home}`);
