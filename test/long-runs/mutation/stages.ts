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
  command: ["--disable-warning=ExperimentalWarning", "test/long-runs/simulation/main.ts", "--seeds", "40"],
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
  "src/worker/allocator/adoption.ts": [RECONCILED],
  "src/worker/allocator/allocations.ts": [RESTORED, RELEASE],
  "src/worker/allocator/allocator.ts": [vitest("workers", ["allocator/allocator"]), RESTORED, RECONCILED, RELEASE],
  "src/worker/allocator/claims.ts": [INVITATIONS, BADGES, RECONCILED],
  "src/worker/allocator/comparison.ts": [RESTORED, RELEASE],
  "src/worker/allocator/client.ts": [BADGES, RELEASE, RECONCILED],
  "src/worker/allocator/fresh-numbers.ts": [
    vitest("workers", ["allocator/ledger", "badges/restored"]),
    RECONCILED,
    COSTS,
  ],
  "src/worker/allocator/group-commit.ts": [pure("allocator/group-commit"), BADGES],
  "src/worker/allocator/holder.ts": [BADGES, RESTORED],
  "src/worker/allocator/ledger.ts": [vitest("workers", ["allocator/ledger", "badges/restored"]), RECONCILED, COSTS],
  "src/worker/allocator/ledger-tables.ts": [vitest("workers", ["allocator/ledger"])],
  "src/worker/allocator/permutation.ts": [
    pure("allocator/permutation"),
    vitest("workers", ["allocator/ledger"]),
    vitest("node", ["node/permutation"]),
  ],
  "src/worker/allocator/application-id.ts": [vitest("workers", ["allocator/allocator"])],
  "src/worker/allocator/freed-numbers.ts": [vitest("workers", ["allocator/ledger"]), INVITATIONS],
  "src/worker/allocator/random.ts": [vitest("workers", ["allocator/ledger"])],
  "src/worker/allocator/range-warnings.ts": [vitest("workers", ["allocator/range-warnings"])],
  "src/worker/badges/claim.ts": [INVITATIONS, BADGES, RECONCILED, RACES],
  "src/worker/invitations/create.ts": [INVITATIONS, vitest("workers", ["http/unavailable"]), RELEASE],
  "src/worker/invitations/expire.ts": [RELEASE, vitest("workers", ["invitations/sweep"], true)],
  "src/worker/invitations/lifecycle.ts": [pure("invitations/lifecycle"), INVITATIONS],
  "src/worker/invitations/revoke.ts": [INVITATIONS, RELEASE, RACES],
  "src/worker/webhooks/attempt.ts": [WEBHOOKS],
  "src/worker/webhooks/consumer.ts": [WEBHOOKS],
  "src/worker/webhooks/deliver.ts": [WEBHOOKS],
  "src/worker/webhooks/event.ts": [WEBHOOKS],
  "src/worker/webhooks/write-coalescer.ts": [WEBHOOKS],
  "src/worker/webhooks/policy.ts": [pure("webhooks/policy"), WEBHOOKS],
  "src/worker/webhooks/sender.ts": [WEBHOOKS],
  "src/worker/webhooks/signature.ts": [pure("webhooks/signature"), WEBHOOKS],
  "src/shared/retry-after.ts": [pure("webhooks/policy"), WEBHOOKS],
  "src/shared/webhook-url.ts": [pure("webhooks/url-guard"), WEBHOOKS],
  "src/worker/webhooks/wake-up.ts": [WEBHOOKS],
  "src/worker/badges/existing.ts": [BADGES],
  "src/worker/badges/issue.ts": [BADGES],
  "src/worker/badges/list.ts": [vitest("workers", ["http/pages"]), COSTS],
  "src/worker/badges/sign.ts": [vitest("workers", ["badges/issue", "applications/signing-keys"])],
  "src/worker/storage/badge-writes.ts": [BADGES, RESTORED, RELEASE],
  "src/worker/storage/claim-writes.ts": [
    INVITATIONS,
    BADGES,
    RACES,
    vitest("workers", ["storage/plans", "storage/costs"]),
  ],
  "src/worker/storage/invitations.ts": [INVITATIONS, RELEASE, RACES],
  "src/worker/storage/webhook-attempts.ts": [WEBHOOKS],
  "src/worker/storage/webhook-events.ts": [WEBHOOKS],
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
  [/^src\/shared\/(limits|schema)/, LIMITS],
  [/^src\/shared\//, [KEYS, DOOR, OPENAPI, ...ADMIN.map(node)]],
  [/^src\/worker\/context/, [vitest("workers", ["webhooks/production"]), BADGES]],
  [/^src\/worker\/bounded-cache/, [pure("bounded-cache")]],
  [/^src\/worker\/sweep/, [vitest("workers", ["invitations/sweep"], true), WEBHOOKS]],
  [/^src\/worker\/applications\/devices/, [vitest("workers", ["applications/devices"]), KEYS]],
  [/^src\/worker\/(applications|keys)\//, [DOOR, KEYS, RECONCILED]],
  [/^src\/worker\/storage\//, [STORAGE, BADGES, INVITATIONS, WEBHOOKS, RECONCILED]],
  [/^src\/worker\/http\//, [DOOR, vitest("workers", ["http/pages", "http/unavailable"]), OPENAPI]],
  [/^src\/worker\/(allocator|invitations|badges|webhooks)\//, [BADGES, INVITATIONS, WEBHOOKS, RESTORED]],
  [/^src\/worker\//, [BADGES, DOOR, WEBHOOKS, RECONCILED]],
  [/^src\/docs-page\//, [OPENAPI, node("docs")]],
  [/^src\/client\//, [pure("client/verify-webhook"), CLIENT, node("packages")]],
  [/^src\/verify\//, [pure("verify/badge-signature"), node("verify")]],
  [/^src\/admin\/(operations|commands|actions|platform)\/.*seal/, [node("admin-sealing")]],
  [/^src\/admin\/output/, [node("output"), ...ADMIN.map(node)]],
  [/^src\/admin\//, [...ADMIN, "admin-sealing"].map(node)],
  [/^src\/examples\//, [node("receiver")]],
  [/^src\/dev\/demo\//, [node("demo")]],
  [/^src\/dev\//, [node("start"), node("docs")]],
];

/** What no mutant can be made of that a test should notice, and why. */
const NOT_MUTATED: readonly (readonly [RegExp, string])[] = [
  [/\.d\.ts$/, "only types"],
  [/^src\/shared\/schema\.ts$/, "the migrations make the tables; drizzle-kit compares the two"],
  [/^src\/dev\/(verify-vectors\/|make-verify-vectors)/, "made the published vectors once; the vectors are tested"],
  [/^src\/dev\/demo\//, "tells a story to a person; the calls it makes are tested where they are answered"],
  [/^src\/dev\/(openapi-lint|docs-assets|build-packages)/, "steps of the build, which fails"],
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
