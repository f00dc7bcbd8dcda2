// biome-ignore-all lint/suspicious/noTemplateCurlyInString: the faults are pieces of code.

import { type Replacement, replaceInSource } from "./loading.ts";

interface Planted extends Replacement {
  /** In src/worker. */
  file: string;
}

interface Fault extends Planted {
  /** Where two places keep one promise, the other one. */
  and?: Planted;
  /** Whether only `--isolation` sees it. */
  isOfIsolation?: true;
}

const FENCE = "allocator/replica/head.ts";
const ENGINE = "allocator/engine.ts";
const GROUP = "allocator/group.ts";
const CALLS = "allocator/calls.ts";
const REPLICATOR = "allocator/replica/replicator.ts";
const COPY = "allocator/replica/copy.ts";
const REPUBLISH = "allocator/replica/republish.ts";
const RENDER = "allocator/replica/render.ts";

/**
 * Faults that the simulation must find, by name: what the service then does, or does not do. Each breaks one rule of
 * docs/architecture.md.
 */
export const PLANTED: Readonly<Record<string, Fault>> = {
  // The normal path.
  "fences-by-number": {
    file: FENCE,
    from: "AND ${head.entry} = ${p.from}`",
    to: "AND (${head.entry} = ${p.from} OR ${head.sequence} < ${p.sequence})`",
  },
  "replies-before-D1-has-it": {
    file: ENGINE,
    from: "if (group.sequence !== null && standing.at.sequence < group.sequence) return;",
    to: "",
  },
  "decides-while-D1-is-behind": {
    file: ENGINE,
    from: 'if (replicator.behind > 0) return (await this.#send()) ? "done" : "failed";',
    to: 'if (replicator.behind > 0 && this.#calls.isEmpty) return (await this.#send()) ? "done" : "failed";',
  },
  "does-not-touch-for-a-result-without-a-change": {
    file: GROUP,
    from: "if (sequence === null) tables.touch();",
    to: "",
  },
  "decides-a-call-again": { file: GROUP, from: "if (known) return known;", to: "" },
  "forgets-calls-of-the-instance-before": {
    file: CALLS,
    from: "MAX_RECENT_ENTRIES)) this.#remember(call);",
    to: "0)) this.#remember(call);",
  },
  "decides-after-the-deadline": {
    file: ENGINE,
    from: "const isLate = waiting.call.until !== null && now >= waiting.call.until;",
    to: "const isLate = false && now > 0;",
    and: {
      file: CALLS,
      from: "this.#giveUp(({ until }) => until !== null && now >= until);",
      to: "this.#giveUp(() => now < 0);",
    },
  },
  "sends-an-event-with-the-next-entry": {
    file: "allocator/transaction.ts",
    from: "this.#draft.events.push({ payload: { id, event, createdAt: isoTime(this.now), data }, createdAt: this.now });",
    to: "if (this.#draft.history.length > 0) this.#draft.events.push({ payload: { id, event, createdAt: isoTime(this.now), data }, createdAt: this.now });",
  },
  "blocks-first": {
    file: "allocator/decide/block.ts",
    from: `const numbers = tables.badgesOfUser(userId, "revocable", MAX_USER_BADGES).map((badge) => {
    transaction.allowSplit();
    return applyTransition(transaction, audit, badge, { kind: "revoke" }).number;
  });
  // Last: while D1 has only a part of this, nobody sees a blocked user with badges.
  transaction.insertBlock({ userId, blockedAt: now, userDigest: null });`,
    to: `transaction.insertBlock({ userId, blockedAt: now, userDigest: null });
  const numbers = tables.badgesOfUser(userId, "revocable", MAX_USER_BADGES).map((badge) => {
    transaction.allowSplit();
    return applyTransition(transaction, audit, badge, { kind: "revoke" }).number;
  });`,
  },
  // D1 is behind.
  "compares-nothing-at-first": {
    file: REPLICATOR,
    from: "this.#parts = parts;",
    to: 'this.#parts = parts; const at = parts.log.head(); if (at) this.#standing = { kind: "following", at };',
  },
  "compares-by-no-alarm": { file: "allocator/allocator.ts", from: "engine.doubt();\n      if (await", to: "if (await" },
  "notices-no-restoration": {
    file: "scheduling/home-scheduler.ts",
    from: "tick?.compareAfter != null",
    to: "tick === null",
  },
  "stamps-the-clock-too-early": {
    file: "scheduling/home-scheduler.ts",
    from: "await this.#compareLeft(context);",
    to: "await stampHeartbeat(context.db, context.now()); await this.#compareLeft(context);",
  },
  "catches-up-in-view-of-readers": { file: REPLICATOR, from: "this.#readableFrom = newest.sequence;", to: "" },
  "lowers-the-readers-flag": {
    file: FENCE,
    from: "max(iif(${p.keeps}, ${head.readableFrom}, 0), ${p.readableFrom})",
    to: "max(0, ${p.readableFrom})",
  },
  "keeps-sent-entries-no-longer": { file: REPLICATOR, from: "log.renewAfter(head.sequence, now());", to: "" },
  "forgets-signing-keys": { file: RENDER, from: "add(ENSURE_KEYS, keys);", to: "" },
  "forgets-that-a-range-grew": {
    file: RENDER,
    from: "if (lastNumber !== null) statements",
    to: "if (lastNumber === 0) statements",
  },
  // The allocator has no rows.
  "copies-without-moving-the-head": {
    file: COPY,
    from: "fence(session, applicationId, from.entry, { ...to, readableFrom: { keep: false, sequence: 0 } }),",
    to: "SELECT_HEAD.bind(session, { applicationId }),",
  },
  "counts-the-copied-rows": {
    file: COPY,
    from: "...(isNew ? {} : renewed) };",
    to: "...(isNew ? {} : { ...renewed, lastChange: Math.max(0, from.lastChange - 1) }) };",
  },
  "is-ready-before-the-last-page": {
    file: COPY,
    from: "tables.changeSelf(isDone ? { copiedAt: now(), copyAfter: null } : { copyAfter: place ?? null });",
    to: "tables.changeSelf({ copiedAt: now(), copyAfter: null });",
  },
  "copies-pages-of-another-head": {
    file: COPY,
    from: "if (head?.entry !== begun.entry) {",
    to: "if (head === undefined) {",
  },
  "keeps-the-feeds-epoch": {
    file: COPY,
    from: "renewed = { epoch: newRandomId(),",
    to: "renewed = { epoch: from.epoch,",
  },
  "decides-calls-of-before-the-copy": {
    file: ENGINE,
    from: "const isOld = until !== null && until - CALL_DEADLINE_MILLISECONDS <= copiedAt;",
    to: "const isOld = until !== null && copiedAt < 0;",
  },
  // D1's head is unknown.
  "leaves-an-unknown-D1-open": {
    file: REPLICATOR,
    from: "await closeToReaders(db, applicationId, head.entry);",
    to: "{}",
  },
  "decides-while-D1-is-unknown": { file: REPLICATOR, from: "if (!head || !log.has(head)) {", to: "if (!head) {" },
  "leaves-newer-history": {
    file: REPUBLISH,
    from: "[DELETE_NEWER_HISTORY.bind(session, { applicationId, from })]",
    to: "[]",
  },
  "does-not-send-the-logs-events": {
    file: REPUBLISH,
    from: "for (const { changes } of log.walk(through)) {",
    to: "for (const { changes } of log.walk(-2)) {",
  },
  "lets-readers-in-while-it-republishes": {
    file: REPUBLISH,
    from: "readableFrom: { keep: false, sequence: Number.MAX_SAFE_INTEGER } }, statements);",
    to: "readableFrom: { keep: false, sequence: 0 } }, statements);",
  },
  "republishes-with-lower-counters": {
    file: REPUBLISH,
    from: "lastChange: Math.max(own.lastChange, other.lastChange),",
    to: "lastChange: Math.max(0, own.lastChange - 1),",
  },
  "keeps-the-epoch-when-it-republishes": { file: REPUBLISH, from: "epoch: newRandomId(), ", to: "" },
  "leaves-rows-when-it-republishes": {
    file: REPUBLISH,
    from: "for (const table of TABLE_NAMES) await deleteRows(parts, mover, table);",
    to: "",
  },
  // A number that is somebody else's.
  "overwrites-other-applications-rows": {
    file: RENDER,
    from: "WHERE ${sql.identifier(getTableName(target))}.${identifier(target.applicationId)} = ${applicationId}`;",
    to: "`;",
  },
  "stores-invitations-of-refused-numbers": {
    file: RENDER,
    from: 'if (table !== "invitation" && table !== "freedNumber") return',
    to: "return",
  },
  "sends-events-of-refused-numbers": {
    file: RENDER,
    from: 'WHERE ${isNotForeign(field("payload.data.id"), applicationId)}',
    to: "WHERE true",
  },
  "withdraws-nothing": { file: REPLICATOR, from: "if (refused.length > 0)\n", to: "if (refused.length < 0)\n" },
  "forgets-refusals-of-a-lost-response": {
    file: REPLICATOR,
    from: "if (head.refused.length > 0) withdraw",
    to: "if (head.refused.length < 0) withdraw",
  },
  "returns-withdrawn-numbers": {
    file: ENGINE,
    from: "splitByNumbers(group.decided, numbers)",
    to: "splitByNumbers(group.decided, [])",
  },
  "draws-a-withdrawn-number-again": {
    file: GROUP,
    from: "if (freed) transaction.deleteFreed(freed);",
    to: "if (!freed) transaction.insertFreed({ number, freedAt: 0 });",
  },
  // A user is erased.
  "lifts-an-erased-users-block": {
    file: "allocator/decide/erase.ts",
    from: "transaction.insertBlock({ ...block, userId: alias, userDigest });",
    to: "",
  },
  "leaves-the-claimer": {
    file: "allocator/decide/erase.ts",
    from: "eraseClaimed(transaction, badge.invitation, userId, alias);",
    to: "",
  },
  // Section 4, and what else is promised.
  "carries-commands-out-side-by-side": {
    file: "allocator/allocator.ts",
    from: "const done = this.#commands.then(() =>",
    to: "const done = Promise.resolve().then(() =>",
  },
  "trusts-the-open-commands": {
    file: "allocator/script-commands.ts",
    from: "head.sequence >= before.at.sequence && log.has(head)",
    to: "head.sequence >= 0",
  },
  "writes-columns-of-the-wrong-place": {
    file: "allocator/net-changes.ts",
    from: 'const gives = ({ op, columns }: NetChange) => op === "delete" || (op === "update" && columns.supersededAt != null);',
    to: 'const gives = ({ op }: NetChange) => op === "insert";',
  },
  "combines-changes-wrongly": {
    file: "allocator/net-changes.ts",
    from: 'if (before.op === "delete") return { ...change, op: "update" };',
    to: 'if (before.op === "delete") return change;',
  },
  miscounts: {
    file: "allocator/statistics.ts",
    from: "if (was !== null) statistics.badges[was]--;",
    to: 'if (was !== null && was !== "suspended") statistics.badges[was]--;',
  },
  "records-no-ends": {
    file: "allocator/alarms.ts",
    from: "if (end === null || end > Date.now()) return true;",
    to: "return true;",
  },
  "blocks-at-once-in-D1": {
    file: "allocator/engine.ts",
    from: "const pause = Math.min(SEND_PAUSES * batch, MAX_SEND_PAUSE_MILLISECONDS);",
    to: "const pause = 0;",
    isOfIsolation: true,
  },
};

/** Puts a fault into the service. Called before anything of it is loaded. */
export function plant(name: string): void {
  const fault = PLANTED[name];
  if (!fault) throw new Error(`there is no fault ${name}`);
  for (const each of fault.and ? [fault, fault.and] : [fault]) replaceInSource(`worker/${each.file}`, [each]);
}
