import { applicationId } from "../../../../src/shared/identifiers.ts";
import { Member } from "../member.ts";
import { HOUR } from "../plan.ts";
import type { Change } from "../platform/d1.ts";
import type { Row } from "../platform/sqlite.ts";
import { digestOf, isIssued, STRANGER } from "./history.ts";

/** What never changes: of an issued badge, of an invitation, and of an event. */
const FIXED = {
  badge: ["number", "application_id", "device", "user_id", "event_id", "issued_at", "signing_key_id", "ordinal"],
  invitation: ["number", "application_id", "expires_at", "expires_at_time", "with_secret"],
  webhook_event: ["application_id", "payload"],
};
/** What callers see of a badge, apart from its number. */
const SEEN_COLUMNS = ["ordinal", "alias", "state", "expires_at", "ended_at", "metadata", "key_thumbprint"];

/** How long delivered events are kept (contract section 18). */
const EVENT_RETENTION_MILLISECONDS = 30 * 24 * HOUR;

/** What may become of a stored state (contract section 12); what is not here is final. */
const NEXT_STATES: Readonly<Record<string, readonly string[]>> = {
  active: ["suspended", "revoked", "replaced"],
  suspended: ["active", "revoked"],
};

/** Looks at every transaction of D1: that nothing becomes what it must not (contract sections 5, 8, 12, 13 and 18). */
export class Rows extends Member {
  /** The highest ordinal and change number that there ever were, by application and column. */
  readonly #highest = new Map<string, number>();
  /** Whose each number is, also after a restoration has made D1 forget it. */
  readonly #owners = new Map<number, string>();

  see(all: readonly Change[], lateMilliseconds: number): void {
    const { replica, history, erased, verdict } = this.world;
    const changes = all
      .filter(({ before, after }) => (after ?? before)?.application_id !== STRANGER)
      .map((change) => erased.knownChange(change));
    const touched = all.filter(({ before }) => before?.application_id === STRANGER);
    verdict.expect(touched.length === 0, "nobody changes a row of another application", touched);
    const isRepeated = replica.see(changes, lateMilliseconds);
    for (const change of changes) history.see(change);
    const head = changes.find(({ table }) => table === "application_head");
    if (head?.after && isFolded(changes)) history.noteFolded(String(head.after.application_id));
    // An entry that is applied again does what it did, when all of this was looked at.
    if (!isRepeated) this.#check(changes);
  }

  #check(changes: readonly Change[]): void {
    for (const change of changes) {
      const { table } = change;
      if (table === "badge") this.#checkBadge(change, changes);
      if (table === "invitation") this.#checkInvitation(change);
      if (table === "blocked_user") this.#checkBlock(change, changes);
      if (table === "webhook_event") this.#checkEvent(change);
      if (table === "script_command") this.#checkCommand(change);
    }
    this.#checkNumbers(changes);
    this.#checkEvents(changes);
    this.world.bindings.see(changes);
  }

  #expect({ before, after }: Change, isKept: boolean, invariant: string, detail: unknown = ""): void {
    this.world.verdict.expect(isKept, invariant, before, "became", after, detail);
  }

  #checkBadge(change: Change, changes: readonly Change[]): void {
    const { history, timeline, plan } = this.world;
    const { before, after } = change;
    if (before === null && after !== null) this.#checkRest(change, after);
    if (isIssued(before)) {
      const fixed = before.superseded_at === null ? FIXED.badge : [...FIXED.badge, "superseded_at"];
      this.#expect(change, isSame(change, fixed), "an issued number stays with its user device, or retired");
      const isExpired =
        before.expires_at !== null && Number(before.expires_at) <= timeline.now + plan.clockErrorMilliseconds;
      const isPossible =
        before.state === after?.state ||
        NEXT_STATES[String(before.state)]?.includes(String(after?.state)) === true ||
        // It was resumed in the same entry.
        (before.state === "suspended" && (isExpired || isFolded(changes)) && after?.state === "replaced");
      this.#expect(change, isPossible, "a badge's state takes only the steps there are");
    }
    if (!isIssued(after)) return;
    const { number, application_id, user_id, device } = after;
    const isSuperseded = after.superseded_at !== null || after.state !== "replaced";
    this.#expect(change, isSuperseded, "a badge that was replaced is retired");
    if (!isIssued(before) && after.state === "active") {
      const values = { application_id: application_id ?? null, user_id: user_id ?? null };
      const isBlocked = history.during("blocked_user", values, timeline.now).some(({ to }) => to > timeline.now);
      // Of two entries in one batch the second may block the user and revoke the badge.
      const last = changes.findLast((each) => each.table === "badge" && each.after?.number === number);
      const isKept = !isBlocked || last?.after?.state !== "active";
      this.#expect(change, isKept, "no transaction issues a badge to a blocked user");
    }
    const owner = `${device} ${user_id}`;
    const known = this.#owners.get(Number(number)) ?? owner;
    this.#expect(change, known === owner, "a number is never issued to two, whatever is restored", known);
    this.#owners.set(Number(number), owner);
  }

  /** A number whose invitation was revoked or expired rests for its application's reuse delay (contract section 5). */
  #checkRest(change: Change, { number, application_id }: Row): void {
    const { plan, timeline, d1 } = this.world;
    const sql = "SELECT max(ended_at) AS ended FROM invitation WHERE number = ? AND state IN ('revoked', 'expired')";
    const endedAt = Math.max(...d1.look(sql, number ?? null).map(({ ended }) => Number(ended)));
    const { reuseAfterSeconds = 0 } = plan.applications.find(({ id }) => id === application_id) ?? {};
    // An end that lies ahead of the object's clock counts from that clock, and the next object has another one.
    const early = endedAt + reuseAfterSeconds * 1000 - 3 * plan.clockErrorMilliseconds - timeline.now;
    this.#expect(change, early <= 0, "a freed number rests for the reuse delay", `${early} ms early`);
  }

  /** An invitation ends once, for a reason, and until then its number is reserved for it. */
  #checkInvitation(change: Change): void {
    const { timeline, plan, book, d1, erased } = this.world;
    const { before, after } = change;
    const isEnded = before !== null && before.state !== "pending";
    const stays = isSame(change, isEnded ? [...FIXED.invitation, "state", "ended_at"] : FIXED.invitation);
    this.#expect(change, before === null || stays, "an ended invitation stays as it ended");
    if (after === null || after.state === before?.state) return;
    const isOver = Number(after.expires_at_time) <= timeline.now + plan.clockErrorMilliseconds;
    const isAsked = book.of("revoke").some(({ request }) => digestOf(request.token) === after.digest);
    const [found] = d1.look("SELECT * FROM badge WHERE number = ?", after.number ?? null);
    const badge = found && erased.known(found);
    const isIts = badge?.invitation === after.digest;
    const isClaimers = badge?.device === after.claim_device && badge?.user_id === after.claim_user_id;
    const isPossible = {
      pending: isIts && badge?.ordinal === null,
      claimed: isIts && isClaimers,
      revoked: isAsked && !isIts,
      expired: isOver && !isIts,
    }[String(after.state)];
    this.#expect(change, isPossible === true, "a number is reserved until its invitation ends, for a reason", badge);
  }

  /** Also while D1 has only a part of the block's entries. A block outlives an erasure, under an alias (contract section 24). */
  #checkBlock(change: Change, changes: readonly Change[]): void {
    const { book, replica, administrator } = this.world;
    const { application_id = null, user_id = null } = change.after ?? change.before ?? {};
    if (change.after === null) {
      const isAlias = (other: Change) =>
        other.table === "blocked_user" && other.before === null && other.after?.user_id === user_id;
      const wanted = { applicationId: applicationId.parse(application_id), userId: String(user_id) };
      const since = replica.loggedAt(changes);
      const isAsked = book.since("unblock", wanted, since).length > 0 || administrator.hasUnblocked(wanted);
      this.#expect(change, changes.some(isAlias) || isAsked, "a block is lifted only when somebody asks for it");
      return;
    }
    if (change.before !== null) return;
    const sql = `SELECT * FROM badge WHERE application_id = ? AND user_id = ? AND ordinal IS NOT NULL
      AND state IN ('active', 'suspended')`;
    const live = this.world.d1.look(sql, application_id, user_id);
    this.#expect(change, live.length === 0, "nobody sees a blocked user with a badge", live);
  }

  #checkCommand(change: Change): void {
    const { before, after } = change;
    if (!after?.result || before?.result || !String(after.command).includes('"reconcile"')) return;
    const { differences } = JSON.parse(String(after.result));
    const { replica, timeline } = this.world;
    const isLacking = replica.lacked(String(after.recipient), Number(after.created_at), timeline.now);
    this.#expect(change, isLacking || !differences || differences.count === 0, "a comparison finds no difference");
  }

  #checkEvent(change: Change): void {
    const { before, after } = change;
    if (before === null && after !== null) this.#checkSubject(change, after);
    if (after === null) {
      const age = this.world.timeline.now - Number(before?.created_at);
      const isOld = before?.state === "delivered" && age >= EVENT_RETENTION_MILLISECONDS;
      this.#expect(change, isOld, "an event goes when it was delivered and is 30 days old");
      return;
    }
    const isKept = before === null || isSame(change, FIXED.webhook_event) || isErased(change);
    this.#expect(change, isKept, "an event's payload changes only when its user is erased");
    const isAlone = before?.state !== "delivered" || isSame(change, ["state", "due_at"]);
    this.#expect(change, isAlone, "a delivered event is left alone");
    const isTaken = after?.state !== "delivered" || this.world.deliveries.accepted.has(String(after.id));
    this.#expect(change, isTaken, "a delivered event was taken by its receiver");
  }

  /** Nobody hears of a number that another application has. */
  #checkSubject(change: Change, { application_id, payload }: Row): void {
    const { data } = JSON.parse(String(payload));
    const sql = "SELECT 1 FROM badge WHERE number = ? AND application_id <> ?";
    const foreign = data?.id === undefined ? [] : this.world.d1.look(sql, Number(data.id), application_id ?? null);
    this.#expect(change, foreign.length === 0, "an event is about a badge of its application");
  }

  /** Positions and change numbers grow from commit to commit; a change that callers see has a number, and no other has. */
  #checkNumbers(all: readonly Change[]): void {
    const changes = all.filter(({ table, after }) => table === "badge" && isIssued(after));
    const isSeen = (change: Change) => {
      const { before, after } = change;
      const supersedesRevoked =
        before?.state === "revoked" && before.superseded_at === null && after?.superseded_at !== null;
      return !isSame(change, SEEN_COLUMNS) && !supersedesRevoked;
    };
    for (const change of changes) {
      const isNumbered = isSeen(change) || isSame(change, ["change"]) || isFolded(all);
      this.#expect(change, isNumbered, "a change that nobody sees has no number");
    }
    const issues = changes.filter(({ before }) => !isIssued(before));
    const assigned = [
      ...issues.map(({ after }) => [`${after?.application_id} ordinal`, Number(after?.ordinal)] as const),
      ...changes.filter(isSeen).map(({ after }) => [`${after?.application_id} change`, Number(after?.change)] as const),
    ];
    for (const [key, number] of assigned.sort(([, one], [, other]) => one - other)) {
      const isHigher = number > (this.#highest.get(key) ?? 0);
      this.world.verdict.expect(isHigher, "ordinals and change numbers grow with every commit", key, number);
      this.#highest.set(key, number);
    }
  }

  /** One event a change, in its transaction (contract section 18); what a claim replaced is named by the event of the claim. */
  #checkEvents(changes: readonly Change[]): void {
    const told = changes.flatMap(({ table, before, after }) => {
      if (table !== "webhook_event" || before !== null || after === null) return [];
      const { event, id, state, application_id } = after;
      // Of an entry that D1 may have had before, events wait as `held` where the application has no URL.
      if (state === "held" && !this.#hasUrl(application_id)) return [];
      const { data } = JSON.parse(String(after.payload));
      const userId = this.world.erased.nameOf(data.userId);
      const what = event === "badge:created" ? [event, data.id, userId, id] : [event, data.id, data.change];
      return [what.join(" "), ...(data.replacedBadgeId ? [`replacing ${data.replacedBadgeId}`] : [])];
    });
    const owed = changes.flatMap((change) => this.#owedFor(change));
    // Of a badge that changed more than once, the row has the last change, which may have no event.
    const events = told.map(withoutChange);
    const isExact =
      told.toSorted().join() === owed.toSorted().join() ||
      (isFolded(changes) && owed.every((event) => events.includes(withoutChange(event))));
    this.world.verdict.expect(isExact, "each change has one event in its transaction", told, "instead of", owed);
  }

  #hasUrl(id: Row[string] | undefined): boolean {
    return this.world.plan.applications.some((application) => application.id === id && application.webhookUrl !== null);
  }

  #owedFor({ table, before, after }: Change): string[] {
    const application = this.world.plan.applications.find(({ id }) => id === after?.application_id);
    const [was, is] = [formatState(before), formatState(after)];
    if (!application?.webhookUrl || after === null || was === is) return [];
    if (table === "badge" && !isIssued(before)) {
      return [`badge:created ${after.number} ${after.user_id} ${after.event_id}`];
    }
    const event = is === "active" ? "badge:resumed" : `${table}:${is}`;
    const change = table === "badge" ? after.change : null;
    const told = application.events.includes(event) ? [[event, after.number, change].join(" ")] : [];
    return event === "badge:replaced" ? [...told, `replacing ${after.number}`] : told;
  }
}

/** Whether an entry changed a badge more than once: then its row shows the last change only. */
function isFolded(changes: readonly Change[]): boolean {
  const head = changes.find(({ table }) => table === "application_head");
  const count = Number(head?.after?.last_change) - Number(head?.before?.last_change);
  const seen = changes.filter(
    (each) => each.table === "badge" && typeof each.after?.change === "number" && !isSame(each, ["change"]),
  );
  return count > seen.length;
}

/** An event of a badge without the number of its change. */
const withoutChange = (event: string): string => event.replace(/^(\S+ \d+) \d+$/, "$1");

const isSame = ({ before, after }: Change, columns: readonly string[]): boolean =>
  columns.every((column) => before?.[column] === after?.[column]);

/** Whether an event's body has got an alias in place of a user. */
const isErased = ({ before, after }: Change): boolean =>
  before?.application_id === after?.application_id && String(after?.payload).includes('"userId":"erased:');

/** The state that callers see, apart from an expiry that nobody has noted. A reserved badge has none. */
function formatState(row: Row | null): string {
  if (row === null || row.ordinal === null) return "none";
  const isExpired = row.ordinal !== undefined && row.ended_at !== null;
  return isExpired && (row.state === "active" || row.state === "suspended") ? "expired" : String(row.state);
}
