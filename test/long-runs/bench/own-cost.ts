import { existing, newBadgeOne, type Operation, pageOf100, sign } from "./operations.ts";
import { startProvider } from "./provider.ts";
import { type Contestant, callSide, inRounds, newContestant, summarize, summaryTable } from "./rounds.ts";
import type { Side } from "./sides.ts";

/** What we want to reach. */
const GOAL = 1.5;
const PLAN = { rounds: 150, limitSeconds: 75, warmUpCalls: 6000, calls: 0 };
/**
 * What else runs on the machine adds to a measurement and never takes from it (caches, a hypervisor's share), so of many
 * short ones the fifth that was disturbed least is taken.
 */
const LEAST_DISTURBED = 0.2;

/** The calls whose own cost is measured, by the names they have in the figures: many short measurements of about 10 ms. */
export const OWN_COST_OPERATIONS: readonly Operation[] = [
  { ...existing, name: "login", calls: 270 },
  { ...sign, name: "signature", calls: 160 },
  { ...pageOf100, name: "page", calls: 110 },
];

/** Lets a Worker be called `calls` times in its own isolate, one call after the other, and checks the last response. */
async function drive(operation: Operation, contestant: Contestant, calls: number) {
  const { clients } = contestant;
  if (clients.devices.length === 0) await callSide(contestant, 1, [newBadgeOne.next(clients)]);
  const { call, check } = operation.next(clients);
  const repeated = { ...call, headers: { ...call.headers, repeat: String(calls) } };
  const [startedAt, cpuBefore] = [performance.now(), contestant.cpuMilliseconds()];
  await callSide(contestant, 1, [{ call: repeated, check }]);
  const [elapsed, cpu] = [performance.now() - startedAt, contestant.cpuMilliseconds() - cpuBefore];
  // Elapsed time where CPU time cannot be told.
  return { calls, microseconds: ((Number.isNaN(cpu) ? elapsed : cpu) * 1000) / calls };
}

/** On sides of their own, whose applications have their users verified (contract section 22). */
const VERIFIED: readonly Operation[] = [{ ...existing, name: "login with a user token", calls: 200 }];

const join = (sides: readonly Side[]) => Promise.all(sides.map((side) => newContestant(side, 1, null)));

/** Measures what a call costs in the Worker's own isolate, platform calls memoised. */
export const measureOwnCost = async (sides: readonly Side[]) =>
  inRounds(PLAN, OWN_COST_OPERATIONS, await join(sides), drive);

/** The same for a login with a user token; the floor verifies the token, and no more. */
export async function measureVerifiedLogin(sides: readonly Side[]) {
  const provider = await startProvider();
  try {
    const contestants = await join(sides);
    for (const { homes, clients } of contestants) {
      await homes.first.database.run((_, d1) =>
        d1.prepare("UPDATE application SET user_issuer = ?, user_audience = ?").bind(provider.issuer, "bench").run(),
      );
      // The first user of a contestant's clients.
      clients.loginHeaders.authorization = `Bearer ${await provider.logIn("user-0", "bench")}`;
    }
    return await inRounds(PLAN, VERIFIED, contestants, drive);
  } finally {
    provider.close();
  }
}

/** Calls a side again and again, until the process ends: a profiler can look on. */
export async function callForever(sides: readonly Side[], name: string): Promise<void> {
  const called = OWN_COST_OPERATIONS.filter((operation) => operation.name === name);
  const contestants = await join(sides);
  for (;;) await inRounds(PLAN, called, contestants, drive);
}

/** Microseconds of each call, and the ratios of the rounds; `noise` is floor over floor. */
export function reportOwnCost(measurements: Awaited<ReturnType<typeof measureOwnCost>>) {
  const names = [...OWN_COST_OPERATIONS, ...VERIFIED].map(({ name }) => name);
  const summaryOf = (name: string) => summarize(measurements, name, "microseconds", LEAST_DISTURBED);
  const summaries = names.map((name) => [name, summaryOf(name)] as const);
  const operations = summaries.map(([name, { service, floor, twin, toFloor, noise }]) => {
    const microseconds = { serviceMicroseconds: service, floorMicroseconds: floor, twinMicroseconds: twin };
    return { name, ...microseconds, ratio: service / floor, ofRounds: toFloor, noise };
  });
  const ratios = operations.map(({ name, ratio }) => `${name} ${ratio.toFixed(2)}`).join(", ");
  const goal = `Of these microseconds: ${ratios} times the floor's. The goal is at most ${GOAL}.`;
  return { text: `${summaryTable("microseconds a call", summaries)}\n\n${goal}`, operations };
}
