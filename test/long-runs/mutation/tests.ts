/** Files of `test/`, without `.test.ts`. */
const BADGES = "badges/issue badges/round-trips badges/faults";
const LIFE = "badges/states badges/life badges/users badges/changes badges/feed-restored";
const RESTORED = "badges/restored badges/faults badges/round-trips";
const INVITATIONS = "invitations/claim invitations/claim-groups invitations/invitations";
const RELEASE = "invitations/release";
const RACES = "invitations/races";
const RECONCILED = "invitations/restored";
const LEDGER = "allocator/ledger badges/restored";
const WEBHOOKS = "webhooks/delivery webhooks/answers webhooks/endpoint";
const COSTS = "storage/plans storage/costs";
const DOOR = "http/authorization http/errors";
const BOUND = "bound/binding bound/rebinding bound/signing";
const KEYS = "applications/sealing applications/signing-keys applications/resealing";
const OPENAPI = "http/openapi http/openapi-codes";
const ADMIN =
  "node/admin-commands node/admin-applications node/admin-credentials node/admin-events node/admin-reports node/admin-sealing";

/** The tests that may notice a mutant of a file, by its path; the first that matches counts. */
const TESTS: readonly (readonly [path: RegExp, ...tests: string[]])[] = [
  [/worker\/allocator\/adoption/, RECONCILED],
  [/worker\/allocator\/(allocations|comparison)/, RESTORED, RELEASE],
  [/worker\/allocator\/(allocator|own-application-id|client)/, "allocator/allocator", RESTORED, RECONCILED, RELEASE],
  [/worker\/allocator\/claims/, INVITATIONS, BADGES, RECONCILED],
  [/worker\/allocator\/(ledger|fresh-numbers|freed-numbers)/, LEDGER, INVITATIONS, RECONCILED, COSTS],
  [/worker\/allocator\/permutation/, "allocator/permutation allocator/ledger node/permutation"],
  [/worker\/allocator\/range-warnings/, "allocator/range-warnings"],
  [/worker\/allocator\//, "allocator/group-commit", BADGES, RESTORED],
  [/worker\/badges\/claim/, INVITATIONS, BADGES, RECONCILED, RACES, BOUND],
  [/worker\/badges\/list/, "http/pages", COSTS],
  [/worker\/badges\/sign/, "badges/issue applications/signing-keys", BOUND],
  [/worker\/badges\/(binding|existing)/, BADGES, BOUND],
  [/worker\/badges\//, BADGES],
  [/worker\/invitations\/expire/, RELEASE, "invitations/sweep"],
  [/worker\/invitations\//, "invitations/lifecycle http/unavailable", INVITATIONS, RELEASE, RACES],
  [/worker\/webhooks\/policy/, "webhooks/policy", WEBHOOKS],
  [/worker\/webhooks\/signature/, "webhooks/signature", WEBHOOKS],
  [/worker\/webhooks\//, WEBHOOKS],
  [/worker\/storage\/(badge-writes|skipped-writes|number-owners)/, BADGES, RESTORED, RELEASE],
  [/worker\/storage\/claim-writes/, INVITATIONS, BADGES, RACES, COSTS],
  [/worker\/storage\/invitation(s|-ends)/, INVITATIONS, RELEASE, RACES],
  [/worker\/storage\/(device-badges|logins|turns)/, BADGES, BOUND, "storage/devices", COSTS],
  [/worker\/storage\/webhook/, WEBHOOKS],
  [/worker\/storage\//, COSTS, BADGES, INVITATIONS, WEBHOOKS, RECONCILED],
  [/worker\/applications\/devices/, "applications/devices", KEYS],
  [/worker\/keys\/derivation/, "proofs/nonce invitations/idempotency"],
  [/worker\/proofs\//, "proofs/rfc9449 proofs/refusals proofs/nonce proofs/url"],
  [/worker\/(applications|keys)\//, DOOR, KEYS, RECONCILED],
  [/worker\/http\/(proof|badge-routes|authentication)/, "bound/proved-calls", BOUND, DOOR, OPENAPI],
  [/worker\/http\//, DOOR, "http/pages http/unavailable", OPENAPI],
  [/worker\/context/, "webhooks/production", BADGES],
  [/worker\/bounded-cache/, "bounded-cache"],
  [/worker\/sweep/, "invitations/sweep", WEBHOOKS],
  [/worker\//, BADGES, DOOR, WEBHOOKS, RECONCILED],
  [/shared\/(badge-life|storage)\//, LIFE, BADGES],
  [/shared\/webhook-url/, "webhooks/url-guard", WEBHOOKS],
  [/shared\/card-formats/, "verify/cards"],
  [/shared\/limits/, "webhooks/policy webhooks/url-guard http/pages", DOOR, WEBHOOKS],
  [/shared\//, KEYS, DOOR, OPENAPI, ADMIN],
  [/docs-page\//, OPENAPI, "node/docs"],
  [/client\/(proof|jws|door-response)/, "client/proofs"],
  [/client\//, "client/verify-webhook client/clients client/errors client/retries client/proofs"],
  [/verify\/possession/, "verify/possession"],
  [/verify\//, "verify/badge-signature verify/status-list verify/possession node/verify"],
  [/console\//, "node/console"],
  [/admin\/.*seal/, "node/admin-sealing"],
  [/admin\/output/, "node/output", ADMIN],
  [/admin\//, ADMIN],
  [/examples\/door/, "node/door"],
  [/examples\//, "node/receiver"],
  [/dev\/verify-in-language/, "node/verify-languages"],
  [/dev\//, "node/start node/docs"],
];

/** Files of which no mutant is made, and why. */
const NOT_MUTATED: readonly (readonly [path: RegExp, reason: string])[] = [
  [/\.d\.ts$/, "only types"],
  [/^src\/shared\/schema\.ts$/, "the migrations make the tables; drizzle-kit compares the two"],
  [
    /^src\/dev\/(verify-vectors\/|make-(verify|possession)-vectors)/,
    "made the published vectors once; the vectors are tested",
  ],
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
