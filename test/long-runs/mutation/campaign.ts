import type { Mutant } from "./mutants.ts";
import { type Ending, runNode } from "./run.ts";
import { type Stage, stagesOf } from "./stages.ts";
import type { Workspace } from "./workspace.ts";

/** What became of a mutant: the stage that noticed it, or null where none did. */
export interface Fate {
  mutant: Mutant;
  killedBy: string | null;
  isTimeout: boolean;
  seconds: number;
}

/**
 * Runs every stage on the unchanged copy.
 *
 * @throws Error when one is red: what would notice a mutant must pass without it
 */
export async function expectGreen(
  workspace: Workspace,
  files: readonly string[],
  say: (line: string) => void,
): Promise<void> {
  const stages = new Map(files.flatMap(stagesOf).map((stage) => [stage.name, stage]));
  for (const stage of stages.values()) {
    const { code, seconds, output } = await runStage(workspace, stage);
    if (code !== 0) throw new Error(`${stage.name} is red without a mutant:\n${output.slice(-4000)}`);
    say(`green in ${seconds.toFixed(1)} s: ${stage.name}`);
  }
}

/** Tries the stages on one mutant, until one of them is red. */
export async function tryMutant(workspace: Workspace, mutant: Mutant): Promise<Fate> {
  return await workspace.during(mutant, async () => {
    let seconds = 0;
    for (const stage of stagesOf(mutant.file)) {
      const ending = await runStage(workspace, stage);
      seconds += ending.seconds;
      if (ending.code !== 0) return { mutant, killedBy: stage.name, isTimeout: ending.code === null, seconds };
    }
    return { mutant, killedBy: null, isTimeout: false, seconds };
  });
}

const runStage = (workspace: Workspace, { command, maxSeconds }: Stage): Promise<Ending> =>
  runNode(command, workspace.folder, maxSeconds);
