import type { Output } from "../command-line/output.ts";

/** Something that a deployed environment needs. Inspecting it changes nothing. */
export interface Step {
  /** What is needed, such as `Queue badge-webhooks-production`. */
  name: string;
  /** @returns the work to do; null if there is none */
  inspect(): Promise<Work | null>;
}

export interface Work {
  /** A sentence without a full stop, in the imperative. */
  action: string;
  /** Idempotent. */
  make(): Promise<void>;
}

/** How a step ended. `needed`: a check found work to do. */
interface StepResult {
  name: string;
  state: "unchanged" | "changed" | "needed";
  action?: string;
}

/**
 * Takes steps in order, each only if it is needed. They come from an iterable, because each step reads what the one before
 * it wrote into wrangler.toml.
 *
 * @param isCheck true to change nothing
 * @throws what a step throws; the next run continues there
 */
export async function takeSteps(steps: Iterable<Step>, isCheck: boolean, output: Output): Promise<StepResult[]> {
  const results: StepResult[] = [];
  for (const { name, inspect } of steps) {
    const work = await inspect();
    if (work === null) {
      results.push({ name, state: "unchanged" });
      output.note(`✓ ${name}`);
      continue;
    }
    const { action } = work;
    output.note(isCheck ? `✗ ${name}: would ${action}` : `… ${name}: ${action}`);
    if (!isCheck) await work.make();
    results.push({ name, state: isCheck ? "needed" : "changed", action });
  }
  return results;
}
