/** Files of `test/`, without `.test.ts`. */
const BADGES = "badges/issue badges/round-trips badges/faults";
const LIFE = "badges/states badges/life badges/users badges/changes badges/feed-restored";
const STATUS = "badges/status-lists badges/status-copies";
const INVITATIONS =
  "invitations/claim invitations/claim-groups invitations/invitations invitations/release invitations/races";
const RESTORED = "badges/restored invitations/restored";
const ALLOCATOR =
  "allocator/allocator allocator/group-commit allocator/ledger allocator/permutation allocator/range-warnings";
const WEBHOOKS = "webhooks/delivery webhooks/answers webhooks/endpoint webhooks/policy webhooks/signature";
const COSTS = "storage/plans storage/costs storage/devices";
const DOOR = "http/authorization http/errors http/pages http/unavailable";
const BOUND = "bound/binding bound/rebinding bound/signing";
const PROOFS = "proofs/rfc9449 proofs/refusals proofs/nonce proofs/url";
const KEYS = "applications/devices applications/sealing applications/signing-keys applications/resealing";
const OPENAPI = "http/openapi http/openapi-codes";
const ADMIN =
  "node/admin-commands node/admin-applications node/admin-credentials node/admin-events node/admin-reports node/admin-sealing";
const VERIFY = "verify/badge-signature verify/status-list verify/possession verify/cards node/verify";

/** The tests that may notice a mutant of a file, by its room; the first that matches counts. */
const TESTS: readonly (readonly [path: RegExp, ...tests: string[]])[] = [
  [/worker\/allocator\//, ALLOCATOR, BADGES, RESTORED, "invitations/claim-groups invitations/release"],
  [/worker\/badges\//, BADGES, LIFE, BOUND, INVITATIONS, STATUS, "http/pages"],
  [/worker\/invitations\//, INVITATIONS, "invitations/lifecycle invitations/sweep http/unavailable"],
  [/worker\/webhooks\//, WEBHOOKS],
  [/worker\/storage\/webhook/, WEBHOOKS],
  [/worker\/storage\/(invitation|claim)/, INVITATIONS, BADGES, COSTS],
  [/worker\/storage\//, BADGES, BOUND, RESTORED, COSTS],
  [/worker\/keys\/derivation/, "proofs/nonce invitations/idempotency"],
  [/worker\/proofs\//, PROOFS],
  [/worker\/(applications|keys)\//, KEYS, DOOR, RESTORED],
  [/worker\/http\//, DOOR, OPENAPI, "bound/proved-calls", BOUND],
  [/worker\/bounded-cache/, "bounded-cache"],
  [/worker\//, BADGES, DOOR, WEBHOOKS, RESTORED, "webhooks/production invitations/sweep"],
  [/shared\/(badge-life|storage)\//, LIFE, BADGES],
  [/shared\/card-formats/, VERIFY],
  [/shared\//, KEYS, DOOR, OPENAPI, WEBHOOKS, "webhooks/url-guard", ADMIN],
  [/docs-page\//, OPENAPI, "node/docs"],
  [/client\//, "client/verify-webhook client/clients client/errors client/retries client/proofs"],
  [/verify\//, VERIFY],
  [/console\//, "node/console"],
  [/admin\//, "node/output", ADMIN],
  [/examples\//, "node/door node/receiver"],
  [/dev\//, "node/verify-languages node/start node/docs"],
];

/** Files of which no mutant is made, and why. */
const NOT_MUTATED: readonly (readonly [path: RegExp, reason: string])[] = [
  [/\.d\.ts$/, "only types"],
  [/^src\/shared\/schema\.ts$/, "the migrations make the tables; drizzle-kit compares the two"],
  [/^src\/dev\/(verify-|make-\w+-)vectors/, "made the published vectors once; the vectors are tested"],
  [/^src\/dev\/demo\//, "tells a story to a person; the calls it makes are tested where they are answered"],
  [/^src\/dev\/(openapi-lint|docs-assets)/, "steps of the build, which fails"],
];

export const reasonToLeaveOut = (file: string): string | null =>
  NOT_MUTATED.find(([path]) => path.test(file))?.[1] ?? null;

/** Paths of the tests that may notice a mutant of this file. */
export function testsOf(file: string): string[] {
  const [, ...tests] = TESTS.find(([path]) => path.test(file)) ?? [];
  return [...new Set(tests.join(" ").split(" "))].filter((name) => name !== "").map((name) => `test/${name}.test.ts`);
}

/** Whether the file runs in the simulation. */
export const isSimulated = (file: string): boolean =>
  /^src\/worker\/(allocator|invitations|badges|webhooks|storage|[\w-]+\.ts$|applications\/(?!client|refused))/.test(
    file,
  );
