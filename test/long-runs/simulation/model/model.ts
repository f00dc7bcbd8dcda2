import type { Rule } from "./rules.ts";
import { World } from "./world.ts";

/**
 * Runs one seed of the model.
 *
 * @param without rules that are left out
 * @returns the promise that was broken, if any was; and everything that happened, the same in two runs of one seed
 */
export async function runModel(seed: number, without: ReadonlySet<Rule> = new Set()) {
  const world = new World(seed, without);
  const { timeline, promises } = world;
  const fail = (error: unknown) =>
    promises.verdict.expect(false, "no error is left over", error instanceof Error ? error.stack : String(error));
  process.on("unhandledRejection", fail);
  let isOver = false;
  world
    .live()
    .catch(fail)
    .finally(() => {
      isOver = true;
    });
  await timeline.pass(() => isOver || promises.verdict.breach !== null).catch(fail);
  process.off("unhandledRejection", fail);
  return { breach: promises.verdict.breach, history: world.traced, steps: timeline.steps };
}
