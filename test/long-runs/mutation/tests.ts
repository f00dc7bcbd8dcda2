/** Parts of the paths of tests, as vitest takes them: folders, and files where the whole folder would take too long. */
const BADGES = "badges/issue badges/faults";
const LIFE = "badges/next-state badges/life badges/users badges/changes badges/script";
const INVITATIONS = "invitations/claim invitations/invitations invitations/describe";
const RESTORED = "allocator/restores allocator/unknown-results";
const DOOR = "http/authorization http/errors http/pages http/unavailable";

/** The tests that most likely notice a mutant of a file, by its folder; the first that matches counts. */
const TESTS: readonly (readonly [path: RegExp, tests: string])[] = [
  [
    /worker\/allocator\//,
    `allocator/ ${BADGES} ${LIFE} ${INVITATIONS} bound/ homes/sweep history/erase live/live mixed-releases`,
  ],
  [/worker\/live\//, "live/ http/authorization http/errors node/door"],
  [
    /worker\/scheduling\//,
    `${RESTORED} homes/ storage/retention badges/script webhooks/ mixed-releases node/home-numbers`,
  ],
  [
    /worker\/(api-error|storage\/(console|door)-secrets|applications\/(access|recent-settings))/,
    `${DOOR} http/lists live/ users/`,
  ],
  [/worker\/home/, "homes/"],
  [
    /worker\/storage\/(heartbeat|sealed|number-ranges|command-rows|retention)/,
    `homes/ storage/ applications/ badges/near- badges/script ${RESTORED}`,
  ],
  [/worker\/storage\/invitation/, `${INVITATIONS} http/list storage/ badges/near-staleness`],
  [/worker\/storage\/(application|known|statistics)/, `applications/ ${DOOR} http/overview storage/ ${RESTORED}`],
  [
    /worker\/badges\//,
    `${BADGES} ${LIFE} ${INVITATIONS} bound/ badges/near- badges/status- invitations/reception http/pages http/guessing http/lists allocator/lost-storage`,
  ],
  [/worker\/index/, "homes/consumer homes/register homes/sweep storage/costs webhooks/endpoint"],
  [/worker\/json-object/, "dpop/refusals users/verify-token http/errors"],
  [/worker\/edge-cache/, "badges/status- http/key-set"],
  [
    /worker\/invitations\//,
    `${INVITATIONS} http/unavailable http/errors http/lists invitations/idempotency invitations/reception`,
  ],
  [
    /worker\/(webhooks\/|storage\/webhook)/,
    "webhooks/ http/lists http/overview history/erase homes/sweep homes/consumer allocator/large-commands storage/rows-read",
  ],
  [/worker\/users\/|storage\/observed/, "users/ http/authorization badges/users http/lists"],
  [/worker\/history\/|storage\/history/, "history/ http/list storage/rows-read"],
  [
    /worker\/storage\/(badges|blocked|bounded|invitation-list|text|settings)/,
    "http/ storage/rows-read storage/costs badges/users",
  ],
  [/worker\/storage\/(device|status|issued)/, `${BADGES} ${LIFE} bound/ badges/near- badges/status- users/ live/live`],
  [/worker\/storage\//, `${BADGES} ${INVITATIONS} bound/ ${RESTORED} storage/ http/log-sample`],
  [/worker\/dpop\//, "dpop/ bound/proved"],
  [/worker\/(applications|keys)\//, `applications/ ${DOOR} http/ ${RESTORED} dpop/nonce invitations/idempotency`],
  [/worker\/http\//, "http/ bound/ badges/users users/ badges/near- live/live invitations/reception"],
  [/worker\//, `${BADGES} ${DOOR} webhooks/ ${RESTORED} lru-cache retryable http/log-sample`],
  [/shared\/(badge-lifecycle|storage)\//, `${LIFE} ${BADGES}`],
  [/verify\/|shared\/card-formats/, "verify/ node/verify."],
  [/shared\/limits\/key-/, "http/openapi dpop/ bound/ applications/ node/admin-credentials"],
  [
    /shared\/(limits|requests|([a-z]+-)?responses|schema)/,
    `${BADGES} ${LIFE} ${INVITATIONS} http/ webhooks/ allocator/ users/ storage/ live/ badges/near- badges/status- homes/sweep applications/unsealed`,
  ],
  [/shared\/((head-)?statistics|initial-head)/, "storage/ http/overview http/errors allocator/"],
  [/shared\/retryable/, `retryable ${RESTORED}`],
  [/shared\/qr-code/, "node/qr-code"],
  [
    /shared\/(homes|invitation-link|script-commands)/,
    `http/ client/calls badges/script homes/isolation invitations/describe ${RESTORED} allocator/unknown-database`,
  ],
  [
    /shared\/(actor|history|events)/,
    "history/history allocator/alarms storage/rows-read http/openapi http/l webhooks/ node/admin-",
  ],
  [/shared\/openid\//, "users/ node/admin-users"],
  [
    /shared\//,
    `applications/ ${DOOR} http/openapi http/l homes/consumer badges/status-lists webhooks/ node/admin- node/output node/home-numbers`,
  ],
  [/docs-page\//, "http/openapi node/docs."],
  [/client\//, "client/ node/client-timers"],
  [/console\//, "node/console"],
  [/pass\//, "node/pass"],
  [/admin\/(home|number-range)\//, "node/home- node/admin-applications node/admin-cards"],
  [/admin\/deploy\//, "node/deploy"],
  [/admin\//, "node/output node/admin-"],
  [/examples\//, "node/door node/receiver"],
  [/dev\/(build|check)-packages/, "node/packages node/wheel"],
  [/dev\//, "node/verify-languages node/start node/docs."],
];

/** Types; the schema, which drizzle-kit compares with the migrations; what signs a published vector; the demo; and steps of the build. */
const NOT_MUTATED =
  /\.d\.ts$|^src\/(shared|worker\/allocator\/tables)\/schema\.ts$|^src\/dev\/(sign-vector|demo\/|openapi-lint|docs-assets)/;

export const isMutated = (file: string): boolean => !NOT_MUTATED.test(file);

/** Whether the file is in the pages, which are built before tests open them. */
export const isInPages = (file: string): boolean => /^src\/(console|pass|docs-page|client|shared)\//.test(file);

/** Whether the file runs in the simulation. */
export const isSimulated = (file: string): boolean =>
  /^src\/worker\/(allocator|scheduling|invitations|badges|webhooks|storage|[\w-]+\.ts$|applications\/(?!address-prefix|auth-failure))/.test(
    file,
  );

/** Whether the file runs in workerd, where the tests of the Worker may notice a mutant of it. */
export const isInWorker = (file: string): boolean => /^src\/(worker|shared)\//.test(file);

/** All tests that run in workerd. */
export const WORKER_TESTS = [
  ...["allocator", "applications", "badges", "bound", "client", "dpop", "history", "homes", "http", "invitations"],
  ...["live", "storage", "users", "verify", "webhooks", "mixed-releases", "lru-cache", "retryable"],
].map((name) => `test/${name}`);

/** @returns parts of the paths of the tests that most likely notice a mutant of this file */
export function testsOf(file: string): string[] {
  const [, tests] = TESTS.find(([path]) => path.test(file)) ?? [];
  return tests === undefined ? [] : tests.split(" ").map((name) => `test/${name}`);
}
