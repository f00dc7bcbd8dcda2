import { eq } from "drizzle-orm";
import { describe, it } from "vitest";
import { invitation } from "../../src/shared/schema.ts";
import { createApplication } from "../support/application.ts";
import { byEffort } from "../support/effort.ts";
import { fc } from "../support/random.ts";
import { SECOND, useStandingClock } from "./support/clock.ts";
import { COMMANDS, expectNumbersAsModel } from "./support/commands.ts";
import { copier } from "./support/copies.ts";
import { useQuietLog } from "./support/log.ts";
import { Model } from "./support/model.ts";
import { orm, RECORDED_EVENTS } from "./support/storage.ts";

useQuietLog();
useStandingClock();

const RUNS = byEffort(10, 600);

/**
 * Random histories of small applications against a model of the contract. A failure prints its seed and path, with which
 * `fc.assert(property, { seed, path })` repeats it, and the shortest history that fails.
 */
describe("any history of badges and invitations (contract sections 1, 2 and 5)", () => {
  it("hands out no number twice, reissues none that was issued, frees what ended, and reuses it first", async () => {
    const copy = copier(await createApplication(RECORDED_EVENTS));
    const setup = fc.record({
      size: fc.integer({ min: 2, max: 8 }),
      reuseAfter: fc.constantFrom(0, 0, 2 * SECOND),
    });
    const history = fc.commands(COMMANDS, { maxCommands: 25, size: "max" });
    const property = fc.asyncProperty(setup, history, async ({ size, reuseAfter }, commands) => {
      const application = await copy(size, reuseAfter / SECOND);
      const model = new Model(size, reuseAfter);
      await fc.asyncModelRun(() => ({ model, real: application }), commands);
      await expectNumbersAsModel(model, application);
      // Another run's sweep has nothing to do with these.
      await orm().delete(invitation).where(eq(invitation.applicationId, application.id));
    });
    await fc.assert(property, { numRuns: RUNS });
  }, 400_000);
});
