import type { Output } from "../command-line/output.ts";

/** Something that a deployed environment needs. Inspecting it changes nothing, and so does making it twice. */
export interface Step {
  /** What is needed, such as `Queue badge-webhooks-production`. */
  name: string;
  /** @returns what is to be done; null when nothing is */
  inspect(): Promise<Work | null>;
}

export interface Work {
  /** A sentence without a full stop, in the imperative. */
  action: string;
  make(): Promise<void>;
}

/** How a step ended: `missing` where only a check was asked for. */
interface StepResult {
  name: string;
  state: "there" | "made" | "missing";
  action?: string;
}

/**
 * Takes steps in their order, each after a look at whether it is needed. The steps come one by one: what a step writes into
 * wrangler.toml the next one reads.
 *
 * @param isCheck true: nothing is made
 * @throws what a step throws; a further run goes on there
 */
export async function takeSteps(steps: Iterable<Step>, isCheck: boolean, output: Output): Promise<StepResult[]> {
  const results: StepResult[] = [];
  for (const { name, inspect } of steps) {
    const work = await inspect();
    if (work === null) {
      results.push({ name, state: "there" });
      output.note(`✓ ${name}`);
      continue;
    }
    const { action } = work;
    output.note(isCheck ? `✗ ${name}: would ${action}` : `… ${name}: ${action}`);
    if (!isCheck) await work.make();
    results.push({ name, state: isCheck ? "missing" : "made", action });
  }
  return results;
}
