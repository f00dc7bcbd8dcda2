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

/** What is run for a file of the core after the simulation, the cheapest first. A mutant that passes them all survived. */
const AFTER_SIMULATION: Readonly<Record<string, readonly Stage[]>> = {
  "src/numbers/adoption.ts": [RECONCILED],
  "src/numbers/allocations.ts": [RESTORED, RELEASE],
  "src/numbers/allocator.ts": [vitest("workers", ["numbers/allocator"]), RESTORED, RECONCILED, RELEASE],
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
  "src/numbers/application-id.ts": [vitest("workers", ["numbers/allocator"])],
  "src/numbers/freed-numbers.ts": [vitest("workers", ["numbers/ledger"]), INVITATIONS],
  "src/numbers/random.ts": [vitest("workers", ["numbers/ledger"])],
  "src/numbers/range-warnings.ts": [vitest("workers", ["numbers/range-warnings"])],
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

const LIMITS = [
  pure("webhooks/policy"),
  pure("webhooks/url-guard"),
  ...["http/errors", "http/pages", "http/authorization", "webhooks/answers", "webhooks/delivery"].map((file) =>
    vitest("workers", [file]),
  ),
];
const KEYS = vitest("workers", ["applications/sealing", "applications/signing-keys", "applications/resealing"]);
const DOOR = vitest("workers", ["http/authorization", "http/errors"]);
const OPENAPI = vitest("workers", ["http/openapi", "http/openapi-codes"]);
const STORAGE = vitest("workers", ["storage/plans", "storage/costs"]);
const CLIENT = vitest("workers", ["client/clients", "client/errors", "client/retries"]);
const ADMIN = ["admin-commands", "admin-applications", "admin-credentials", "admin-events", "admin-reports"];
const node = (file: string): Stage => vitest("node", [`node/${file}`]);

/** What is run for any other file, by the start of its path; the first that fits counts. */
const BY_PATH: readonly (readonly [RegExp, readonly Stage[]])[] = [
  [/^src\/limits/, LIMITS],
  [/^src\/context/, [vitest("workers", ["webhooks/production"]), BADGES]],
  [/^src\/bounded-cache/, [pure("bounded-cache")]],
  [/^src\/sweep/, [vitest("workers", ["invitations/sweep"], true), WEBHOOKS]],
  [/^src\/applications\/devices/, [vitest("workers", ["applications/devices"]), KEYS]],
  [/^src\/applications\//, [DOOR, KEYS, RECONCILED]],
  [/^src\/storage\//, [STORAGE, BADGES, INVITATIONS, WEBHOOKS, RECONCILED]],
  [/^src\/http\/openapi\//, [OPENAPI, node("docs")]],
  [/^src\/http\//, [DOOR, vitest("workers", ["http/pages", "http/unavailable"]), OPENAPI]],
  [/^src\/(numbers|invitations|badges|webhooks)\//, [BADGES, INVITATIONS, WEBHOOKS, RESTORED]],
  [/^src\/client\//, [pure("client/verify-webhook"), CLIENT, node("client")]],
  [/^src\/verify\//, [pure("verify/badge-signature"), node("verify")]],
  [/^src\/admin\/(operations|commands|actions|platform)\/.*seal/, [node("admin-sealing")]],
  [/^src\/admin\/output/, [node("output"), ...ADMIN.map(node)]],
  [/^src\/admin\//, [...ADMIN, "admin-sealing"].map(node)],
  [/^src\/examples\//, [node("receiver")]],
  [/^src\/dev\//, [node("start"), node("docs")]],
  [/^src\/[\w-]+\.ts$/, [BADGES, DOOR, WEBHOOKS]],
];

/** What no mutant can be made of that a test should notice, and why. */
const NOT_MUTATED: readonly (readonly [RegExp, string])[] = [
  [/\.d\.ts$/, "only types"],
  [/^src\/storage\/schema\.ts$/, "the migrations make the tables; drizzle-kit compares the two"],
  [/^src\/dev\/(verify-vectors\/|make-verify-vectors)/, "made the published vectors once; the vectors are tested"],
  [/^src\/demo\//, "tells a story to a person; the calls it makes are tested where they are answered"],
  [/^src\/dev\/(openapi-lint|docs-assets)/, "steps of the build, which fails"],
];

/** Why a file is left out, or null when mutants of it are made. */
export const reasonToLeaveOut = (file: string): string | null =>
  NOT_MUTATED.find(([path]) => path.test(file))?.[1] ?? null;

/** Only this part of the service runs in the simulation. */
const IS_SIMULATED =
  /^src\/(numbers|invitations|badges|webhooks|storage|[\w-]+\.ts$)|^src\/applications\/(registry|cred|auth|dev)/;

export function stagesOf(file: string): readonly Stage[] {
  const known = AFTER_SIMULATION[file] ?? BY_PATH.find(([path]) => path.test(file))?.[1] ?? [];
  return IS_SIMULATED.test(file) ? [SIMULATION, ...known] : known;
}
