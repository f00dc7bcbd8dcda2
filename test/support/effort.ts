import { inject } from "vitest";

/** How much random tests try: `TEST_EFFORT` of the environment, which vitest.config.ts reads. */
type Effort = "short" | "full";

declare module "vitest" {
  interface ProvidedContext {
    effort: Effort;
  }
}

const EFFORT = inject("effort");

/** One of two amounts: what every run of the tests can afford, or what `npm run test:full` takes its time for. */
export const byEffort = <Amount>(short: Amount, full: Amount): Amount => (EFFORT === "full" ? full : short);
