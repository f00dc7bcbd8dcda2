/** One run of tests that may notice a mutant. */
export interface Stage {
  name: string;
  /** Parameters of Node. */
  command: readonly string[];
  /** About five times what it usually takes: a mutant that needs longer never ends. */
  maxSeconds: number;
}

const SIMULATION: Stage = {
  name: "simulation",
  command: ["--disable-warning=ExperimentalWarning", "test/simulation/main.ts", "--seeds", "40"],
  maxSeconds: 20,
};

/** Tests of many repetitions, which other tests of the same rule make superfluous here. */
const SLOW_TESTS = [
  "1,000 devices at once",
  "100000 are ended",
  "no number has two holders",
  "come out as in some order",
];

const MAX_SECONDS = { pure: 40, workers: 100, node: 60 };

function vitest(project: keyof typeof MAX_SECONDS, files: readonly string[], isIsolated = false): Stage {
  const flags = ["--project", project, "--bail", "1", "--maxWorkers", "1", "-t", `^(?!.*(${SLOW_TESTS.join("|")}))`];
  // One runtime for all files of a stage: starting it takes longer than most of them.
  const isolation = isIsolated || project === "node" ? [] : ["--no-isolate"];
  const paths = files.map((file) => `test/${file}.test.ts`);
  return {
    name: `${project}: ${files.join(" ")}`,
    command: ["node_modules/vitest/vitest.mjs", "run", ...flags, ...isolation, ...paths],
    maxSeconds: MAX_SECONDS[project],
  };
}

const WEBHOOKS = vitest("workers", ["webhooks/delivery", "webhooks/answers", "webhooks/endpoint"]);
const BADGES = vitest("workers", ["badges/issue", "badges/round-trips", "badges/faults"]);
const INVITATIONS = vitest("workers", ["invitations/claim", "invitations/claim-groups", "invitations/invitations"]);
const RACES = vitest("workers", ["invitations/races"]);
const RELEASE = vitest("workers", ["invitations/release"]);
const RESTORED = vitest("workers", ["badges/restored", "badges/faults", "badges/round-trips"]);
const COSTS = vitest("workers", ["storage/costs"]);
const RECONCILED = vitest("workers", ["invitations/restored"]);
const pure = (file: string): Stage => vitest("pure", [file]);

/**
 * What is run for a file after the simulation, the cheapest first. A mutant that passes them all survived. The files
 * listed are the core of the service.
 */
const AFTER_SIMULATION: Readonly<Record<string, readonly Stage[]>> = {
  "src/numbers/adoption.ts": [RECONCILED],
  "src/numbers/allocations.ts": [RESTORED, RELEASE],
  "src/numbers/allocator.ts": [RESTORED, RECONCILED, RELEASE],
  "src/numbers/claims.ts": [INVITATIONS, BADGES, RECONCILED],
  "src/numbers/comparison.ts": [RESTORED, RELEASE],
  "src/numbers/client.ts": [BADGES, RELEASE, RECONCILED],
  "src/numbers/fresh-numbers.ts": [vitest("workers", ["numbers/ledger", "badges/restored"]), RECONCILED, COSTS],
  "src/numbers/group-commit.ts": [pure("numbers/group-commit"), BADGES],
  "src/numbers/holder.ts": [BADGES, RESTORED],
  "src/numbers/ledger.ts": [vitest("workers", ["numbers/ledger", "badges/restored"]), RECONCILED, COSTS],
  "src/numbers/ledger-tables.ts": [vitest("workers", ["numbers/ledger"])],
  "src/numbers/permutation.ts": [
    pure("numbers/permutation"),
    vitest("workers", ["numbers/ledger"]),
    vitest("node", ["node/permutation"]),
  ],
  "src/numbers/group-wake-ups.ts": [BADGES, INVITATIONS],
  "src/invitations/claim.ts": [INVITATIONS, BADGES, RECONCILED, RACES],
  "src/invitations/create.ts": [INVITATIONS, vitest("workers", ["http/unavailable"]), RELEASE],
  "src/invitations/expire.ts": [RELEASE, vitest("workers", ["invitations/sweep"], true)],
  "src/invitations/lifecycle.ts": [pure("invitations/lifecycle"), INVITATIONS],
  "src/invitations/revoke.ts": [INVITATIONS, RELEASE, RACES],
  "src/webhooks/attempt.ts": [WEBHOOKS],
  "src/webhooks/consumer.ts": [WEBHOOKS],
  "src/webhooks/deliver.ts": [WEBHOOKS],
  "src/webhooks/event.ts": [WEBHOOKS],
  "src/webhooks/gathering.ts": [WEBHOOKS],
  "src/webhooks/policy.ts": [pure("webhooks/policy"), WEBHOOKS],
  "src/webhooks/sender.ts": [WEBHOOKS],
  "src/webhooks/signature.ts": [pure("webhooks/signature"), WEBHOOKS],
  "src/webhooks/url-guard.ts": [pure("webhooks/url-guard"), WEBHOOKS],
  "src/webhooks/wake-up.ts": [WEBHOOKS],
  "src/badges/existing.ts": [BADGES],
  "src/badges/issue.ts": [BADGES],
  "src/badges/list.ts": [vitest("workers", ["http/pages"]), COSTS],
  "src/badges/sign.ts": [vitest("workers", ["badges/issue", "applications/signing-keys"])],
  "src/storage/badge-writes.ts": [BADGES, RESTORED, RELEASE],
  "src/storage/claim-writes.ts": [INVITATIONS, BADGES, RACES, vitest("workers", ["storage/plans", "storage/costs"])],
  "src/storage/invitations.ts": [INVITATIONS, RELEASE, RACES],
  "src/storage/webhook-attempts.ts": [WEBHOOKS],
  "src/storage/webhook-events.ts": [WEBHOOKS],
};

export const CORE: readonly string[] = Object.keys(AFTER_SIMULATION);

export function stagesOf(file: string): readonly Stage[] {
  return [SIMULATION, ...(AFTER_SIMULATION[file] ?? [])];
}
