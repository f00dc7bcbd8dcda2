import { createServer } from "node:http";
import { setTimeout as wait } from "node:timers/promises";
import { exportJWK, generateKeyPair, SignJWT } from "jose";
import { listenSomewhere } from "../../../src/dev/demo/listen.ts";
import { APPLICATION_CACHE_SECONDS } from "../../../src/shared/limits/cache-limits.ts";
import { table } from "../command-line.ts";
import { existing, newBadgeOne, type Operation, pageOf100, sign } from "./operations.ts";
import { type Contestant, callSide, inRounds, newContestant, percentile, summarize } from "./rounds.ts";
import type { Side } from "./sides.ts";

/** Independent runs, each with Workers of its own: how they differ is what a figure is worth. */
export const RUNS = 3;
const PLAN = { rounds: 60, limitSeconds: 40, warmUpCalls: 6000, calls: 0 };
/**
 * What else runs on the machine adds to a measurement and never takes from it (caches, a hypervisor's share), so of many
 * short ones the fifth that was disturbed least is taken.
 */
const LEAST_DISTURBED = 0.2;

/** `goal`: the service's cost as a multiple of the floor's, at most. */
interface OwnCostOperation extends Operation {
  goal: number;
}

/** The calls whose own cost is measured, by the names they have in the figures: many short measurements of about 10 ms. */
const OWN_COST_OPERATIONS: readonly OwnCostOperation[] = [
  { ...existing, name: "login", calls: 270, goal: 1.75 },
  { ...sign, name: "signature", calls: 160, goal: 1.5 },
  { ...pageOf100, name: "page of 100", calls: 110, goal: 1.35 },
];

/** Lets a Worker be called `calls` times in its own isolate, one call after the other, and checks the last response. */
async function drive(operation: Operation, contestant: Contestant, calls: number) {
  const { clients } = contestant;
  if (clients.devices.length === 0) await callSide(contestant, 1, [newBadgeOne.next(clients)]);
  const { call, check } = operation.next(clients);
  const repeated = { ...call, headers: { ...call.headers, repeat: String(calls) } };
  const cpuBefore = contestant.cpuMilliseconds();
  await callSide(contestant, 1, [{ call: repeated, check }]);
  return { calls, microseconds: ((contestant.cpuMilliseconds() - cpuBefore) * 1000) / calls };
}

/** On sides of their own, whose applications have their users verified (contract section 22). */
const VERIFIED: readonly OwnCostOperation[] = [
  { ...existing, name: "login with a user token", calls: 200, goal: 1.75 },
];

/** An OpenID provider on this computer, whose tokens outlast a benchmark. RS256, as most providers sign. */
async function startProvider() {
  const { privateKey, publicKey } = await generateKeyPair("RS256");
  const keys = [{ ...(await exportJWK(publicKey)), kid: "bench", alg: "RS256" }];
  const server = createServer(({ url }, response) => {
    response.end(JSON.stringify(url === "/keys" ? { keys } : { issuer, jwks_uri: `${issuer}/keys` }));
  });
  const issuer = await listenSomewhere(server);
  const logIn = (userId: string, audience: string) =>
    new SignJWT()
      .setProtectedHeader({ alg: "RS256", kid: "bench" })
      .setIssuer(issuer)
      .setSubject(userId)
      .setAudience(audience)
      .setIssuedAt()
      .setExpirationTime("2 hours")
      .sign(privateKey);
  return { issuer, logIn, close: () => server.close() };
}

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
    // Both sides have cached the applications without an issuer.
    await wait(APPLICATION_CACHE_SECONDS * 1000);
    return await inRounds(PLAN, VERIFIED, contestants, drive);
  } finally {
    provider.close();
  }
}

type OwnCost = Awaited<ReturnType<typeof measureOwnCost>>;

/** Microseconds of each call, and the ratio, of each run; `noise` is floor over floor. */
export function reportOwnCost(runs: readonly OwnCost[]): string {
  const rows = [...OWN_COST_OPERATIONS, ...VERIFIED].map(({ name, goal }) => {
    const ofRuns = runs.map((run) => {
      const { service, floor, twin } = summarize(run, name, "microseconds", LEAST_DISTURBED);
      return { service, floor, ratio: service / floor, noise: twin / floor };
    });
    const shown = (figure: keyof (typeof ofRuns)[number], digits: number) =>
      ofRuns.map((run) => run[figure].toFixed(digits)).join(" ");
    const ratios = ofRuns.map(({ ratio }) => ratio);
    const spread = (Math.max(...ratios) - Math.min(...ratios)).toFixed(2);
    const verdict = `${goal} ${percentile(ratios, 0.5) <= goal ? "reached" : "missed"}`;
    return [name, shown("service", 0), shown("floor", 0), shown("ratio", 2), spread, shown("noise", 2), verdict];
  });
  const head = ["microseconds of CPU a call", "service", "floor", "service/floor", "spread", "floor/floor", "goal"];
  return `${table(head, rows)}\n\nOf ${runs.length} runs; the goal is for the median.`;
}
