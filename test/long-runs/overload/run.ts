import type { Side } from "../bench/side.ts";
import { percentile } from "../bench/statistics.ts";
import { Generator } from "./generator.ts";
import type { Load } from "./loops.ts";
import type { Application } from "./phones.ts";
import { compareStored, type Stored } from "./storage.ts";
import type { Findings } from "./thread.ts";

export interface Plan {
  seed: number;
  /** How long the overload lasts, in seconds. */
  seconds: number;
  /** How many times the sustainable rate is offered. */
  factor: number;
  /** Most connections of the overload. */
  connections: number;
  /** How long a phone waits for its answer under overload. */
  timeoutSeconds: number;
}

export interface Latency {
  p50Ms: number;
  p99Ms: number;
}

export interface OverloadResult {
  sustainableRate: number;
  before: Latency;
  overload: Load & Latency;
  /** Resident memory of the Worker's process. */
  memoryMegabytes: { before: number; highest: number; after: number } | null;
  after: Latency;
  /** Seconds from the last offered call to the end of the first stretch as fast as before; null: not in time. */
  recoveredAfterSeconds: number | null;
  /** Calls of phones that were never answered, made again. */
  again: Load;
  findings: Omit<Findings, "answered"> & { answered: number };
  stored: Stored;
}

const WARM_UP_SECONDS = 3;
const TRIAL_SECONDS = 5;
/** Calls a second, few enough that they do not wait for each other. */
const LIGHT_RATE = 50;
const LIGHT_SECONDS = 8;
const WINDOW_SECONDS = 2;
const RECOVERY_SECONDS = 10;
/** As fast as before: this many times the p99, and this much more. */
const SLACK = { times: 1.5, milliseconds: 20 } as const;
const ASK_AGAIN = 500;

/** Overloads a service that runs, and looks whether it kept its promises and its speed. */
export async function runOverload(
  side: Side,
  application: Application,
  plan: Plan,
  say: (line: string) => void,
): Promise<OverloadResult> {
  const memory: number[] = [];
  const generator = new Generator(side.port, application, plan.seed, (load) => {
    const megabytes = side.memoryMegabytes();
    if (megabytes !== null) memory.push(megabytes);
    say(describe(load, megabytes));
  });
  const light = (seconds: number) => generator.load({ kind: "light", seconds, rate: LIGHT_RATE });
  try {
    await generator.load({ kind: "closed", seconds: WARM_UP_SECONDS });
    const trial = await generator.load({ kind: "closed", seconds: TRIAL_SECONDS });
    const sustainableRate = trial.latencies.length / trial.seconds;
    say(`sustainable: ${Math.round(sustainableRate)}/s with 64 connections. Light load …`);
    const before = latencyOf(await light(LIGHT_SECONDS));
    const rate = sustainableRate * plan.factor;
    say(`p99 ${before.p99Ms} ms. Now ${Math.round(rate)}/s for ${plan.seconds} s …`);
    const memoryBefore = side.memoryMegabytes();
    const { seconds, connections, timeoutSeconds } = plan;
    const timeoutMilliseconds = timeoutSeconds * 1000;
    await generator.load({ kind: "overload", seconds, rate, connections, timeoutMilliseconds });
    say("No more is offered. Light load, while phones still wait …");
    const { after, recoveredAfterSeconds } = await recover(() => light(WINDOW_SECONDS), before, say);
    const overload = await generator.load({ kind: "end" });
    const memoryAfter = side.memoryMegabytes();
    say("Phones that were not answered ask again, and all is compared with D1 …");
    const again = await generator.load({ kind: "again", most: ASK_AGAIN });
    const findings = await generator.findings();
    return {
      sustainableRate,
      before,
      overload: { ...overload, ...latencyOf(overload) },
      memoryMegabytes:
        memoryBefore === null || memoryAfter === null
          ? null
          : { before: memoryBefore, highest: Math.max(...memory), after: memoryAfter },
      after,
      recoveredAfterSeconds,
      again,
      findings: { ...findings, answered: findings.answered.length },
      stored: await compareStored(side.database, application, findings),
    };
  } finally {
    await generator.close();
  }
}

/** Short stretches of light load, until one is as fast as before or the time is over. */
async function recover(
  stretch: () => Promise<Load>,
  before: Latency,
  say: (line: string) => void,
): Promise<{ after: Latency; recoveredAfterSeconds: number | null }> {
  const startedAt = performance.now();
  for (;;) {
    const load = await stretch();
    const after = latencyOf(load);
    const elapsedSeconds = (performance.now() - startedAt) / 1000;
    say(
      `  ${elapsedSeconds.toFixed(1)} s after the end: p99 ${after.p99Ms} ms, ${load.latencies.length} of ${load.offered} answered`,
    );
    const isFast = after.p99Ms <= before.p99Ms * SLACK.times + SLACK.milliseconds;
    if (isFast && load.latencies.length === load.offered) return { after, recoveredAfterSeconds: elapsedSeconds };
    if (elapsedSeconds + WINDOW_SECONDS > RECOVERY_SECONDS) return { after, recoveredAfterSeconds: null };
  }
}

function latencyOf({ latencies }: Load): Latency {
  const values = Float64Array.from(latencies);
  return { p50Ms: rounded(percentile(values, 0.5)), p99Ms: rounded(percentile(values, 0.99)) };
}

const rounded = (milliseconds: number): number => Math.round(milliseconds * 10) / 10;

function describe({ offered, statuses, gaveUp, unreached }: Load, megabytes: number | null): string {
  const answers = Object.entries(statuses).map(([status, count]) => `${count} × ${status}`);
  const lost = Object.entries(unreached).map(([reason, count]) => `${count} × ${reason}`);
  const parts = [`${offered} offered`, ...answers, `${gaveUp.sent + gaveUp.unsent} gave up`, ...lost];
  return `  ${parts.join(", ")}${megabytes === null ? "" : `, ${megabytes} MB`}`;
}
