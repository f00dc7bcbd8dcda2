import { say, table } from "../../command-line.ts";
import { Scene } from "./scene.ts";

/** How many times as long as alone the slowest hundredth of an application's calls may take while another one is attacked. */
const MOST_TIMES = 1.3;

const percentile = (values: readonly number[], share: number): number =>
  values.toSorted((one, other) => one - other)[Math.ceil(share * values.length) - 1] ?? Number.NaN;

/** @throws Error when the attack makes the other application too slow */
export async function checkIsolation(seed: number, seconds: number): Promise<void> {
  const alone = await play(new Scene(seed, seconds), false);
  const beside = await play(new Scene(seed, seconds), true);
  const operations = [...alone.times].map(([operation, before]) => {
    const meanwhile = beside.times.get(operation) ?? [];
    const figures = [0.5, 0.99].flatMap((share) => [percentile(before, share), percentile(meanwhile, share)]);
    return { operation, before, figures, times: percentile(meanwhile, 0.99) / percentile(before, 0.99) };
  });
  const rows = operations.map(({ operation, before, figures, times }) => [
    ...[operation, before.length, ...figures].map(String),
    times.toFixed(2),
  ]);
  say(table(["milliseconds", "calls", "p50 alone", "attacked", "p99 alone", "attacked", "times"], rows));
  const shareOf = ({ d1 }: Scene) => `${((d1.busy / seconds) * 0.1).toFixed()} %`;
  say(`D1 is busy ${shareOf(alone)} of the time alone, ${shareOf(beside)} attacked.`);
  say(`The attacker's calls: ${[...beside.attackers].map(([outcome, calls]) => `${calls} ${outcome}`).join(", ")}`);
  const slow = operations.filter(({ times }) => !(times <= MOST_TIMES)).map(({ operation }) => operation);
  if (slow.length > 0) throw new Error(`More than ${MOST_TIMES} times as slow as alone: ${slow.join(", ")}`);
}

async function play(scene: Scene, isAttacked: boolean): Promise<Scene> {
  const { breach } = await scene.world.run(() => scene.run(isAttacked));
  if (breach) throw new Error(breach.detail);
  return scene;
}
