import { useEffect, useLayoutEffect, useState } from "preact/hooks";
import type { Invitation, InvitationState, ListedInvitation, ServerClient } from "../../client/index.ts";
import { ConfirmDialog } from "../parts/confirm-dialog.tsx";
import { type Day, dayOf } from "../parts/days.ts";
import { type Loaded, useList, useLoaded, useSession } from "../parts/hooks.ts";
import { focusHeading, type Notice } from "../parts/notice.tsx";
import { type OpenList, pagesOf } from "../parts/pages.ts";
import { explainCode } from "../parts/problems.ts";
import type { Params } from "../parts/route.ts";
import { Title } from "../parts/states.tsx";
import { Table } from "../parts/table.tsx";
import { count, counted, grouped } from "../parts/texts.tsx";
import { Invite } from "./invite.tsx";
import { Passes } from "./passes.tsx";
import { invitationColumns, type Revocable } from "./visit-columns.tsx";
import { STATES, VisitFilters } from "./visit-filters.tsx";

const PER_PAGE = 100;
/** A day's visits are counted up to this many. */
const MOST_COUNTED = 10_000;

/** The search in the address; the default day is today. */
function searchOf({ day = "today", state, q = "" }: Params) {
  const wanted = [...q.trim()].length >= 2 ? q.trim() : undefined;
  return { day: dayOf(day, new Date()), state: STATES.find((each) => each === state), q: wanted };
}

function openVisits(server: ServerClient, params: Params, perPage: number, signal: AbortSignal) {
  const { day, state, q } = searchOf(params);
  const query = { ...day, ...(state && { state }), q, perPage, signal };
  return pagesOf(server.listInvitations(query), ({ invitations }) => invitations);
}

/** Invites visitors, and lists and revokes invitations; those of a day are in the order in which visits begin. */
export function Visitors({ params }: { params: Params }) {
  const session = useSession();
  const { day, state, q } = searchOf(params);
  const key = JSON.stringify(params);
  const [invited, setInvited] = useState(session.invited);
  const showInvited = () => {
    setInvited(session.invited);
    setRevoked(session.revoked);
  };
  const forget = () => {
    session.invited = null;
    session.revoked = new Set();
    showInvited();
    focusHeading();
  };
  const [revoking, setRevoking] = useState<Revocable | null>(null);
  const [revoked, setRevoked] = useState(session.revoked);
  const showRevoked = (badgeIds: readonly string[]) => {
    session.revoked = new Set([...session.revoked, ...badgeIds]);
    setRevoked(session.revoked);
  };
  const open =
    (perPage: number): OpenList<ListedInvitation> =>
    (server, signal) =>
      openVisits(server, params, perPage, signal);
  const list = useList(open(PER_PAGE), key);
  const statistics = useLoaded((server, signal) => server.getStatistics({ signal }));
  const totals = useLoaded((server, signal) => countVisits(server, params.day, signal), params.day);
  const refresh = () => {
    list.reload();
    statistics.reload();
    totals.reload();
  };
  useLayoutEffect(() => {
    session.onInvited = () => {
      showInvited();
      refresh();
    };
    return () => {
      session.onInvited = () => {};
    };
  });
  const mayInvite = session.may("invite");
  const counts = day === null ? statistics.value?.invitations : exactOf(totals.value);
  const revoke = async (reason: string | undefined): Promise<Notice | null> => {
    if (revoking === null) return null;
    const { badgeId, name } = revoking;
    const id = "token" in revoking ? revoking.token : badgeId;
    if (
      "createdAt" in revoking &&
      !(await session.run((server, signal) => holdsNumber(server, params, revoking, signal)))
    ) {
      refresh();
      return { text: explainCode("UNKNOWN_INVITATION"), tone: "bad" };
    }
    await session.run((server) => server.revokeInvitation(id, { reason }));
    showRevoked([badgeId]);
    refresh();
    return { text: `The invitation of ${name ?? `number ${grouped(badgeId)}`} is revoked.` };
  };
  // A colleague may have revoked a pass on this screen.
  useEffect(() => {
    const passes = (invited?.passes ?? []).map(({ invitation }) => invitation);
    const ended = passes.filter((pass) => isRevokedIn(list.items, pass)).map(({ badgeId }) => badgeId);
    if (ended.some((id) => !revoked.has(id))) showRevoked(ended);
  }, [list.items]);
  return (
    <>
      <Title>Visitors</Title>
      {mayInvite && (
        <section aria-label="Invite" class="invite-place">
          {invited === null ? (
            <Invite />
          ) : (
            <Passes invited={invited} revoked={revoked} onRevoke={setRevoking} onDone={forget} />
          )}
        </section>
      )}
      <VisitFilters params={params} day={day} state={state} counts={statistics.value?.invitations} />
      {day?.until !== undefined && <DayTotals totals={totals} />}
      <Table
        noun="invitations"
        list={list}
        columns={invitationColumns(mayInvite, setRevoking)}
        keyOf={({ badgeId, createdAt }) => `${badgeId} ${createdAt}`}
        open={open(1000)}
        total={q === undefined ? totalOf(counts, state) : undefined}
        empty={emptyWords(day, state !== undefined || q !== undefined)}
      />
      {revoking !== null && (
        <ConfirmDialog
          title={`Revoke the invitation of ${revoking.name ?? `number ${grouped(revoking.badgeId)}`}?`}
          action="Revoke invitation"
          isFinal
          act={revoke}
          onClose={() => setRevoking(null)}
        >
          <p>Its code gives nobody a badge any more, and the number becomes free again.</p>
          <p>This cannot be undone. You can create another invitation.</p>
        </ConfirmDialog>
      )}
    </>
  );
}

/** Whether a listed invitation still has its number. The service refuses to revoke a claimed one. */
async function holdsNumber(
  server: ServerClient,
  params: Params,
  { badgeId, createdAt }: Pick<ListedInvitation, "badgeId" | "createdAt">,
  signal: AbortSignal,
): Promise<boolean> {
  for await (const { items } of openVisits(server, { ...params, state: "" }, 1000, signal)) {
    const found = items.find((each) => each.badgeId === badgeId && each.createdAt === createdAt);
    if (found !== undefined) return found.state === "pending" || found.state === "claimed";
  }
  return false;
}

/** Whether a list says that a pass is revoked. If its number was free again, earlier invitations are other visitors'. */
function isRevokedIn(items: readonly ListedInvitation[], pass: Invitation): boolean {
  const newest = items
    .filter(({ badgeId }) => badgeId === pass.badgeId)
    .reduce<ListedInvitation | null>((one, next) => (one && one.createdAt > next.createdAt ? one : next), null);
  return (
    newest?.state === "revoked" &&
    // An erased invitation has no name.
    (newest.name ?? pass.name) === pass.name &&
    newest.expiresAt === pass.expiresAt &&
    newest.badgeStartsAt === pass.badgeStartsAt
  );
}

function emptyWords(day: Day | null, isNarrowed: boolean): string {
  if (isNarrowed) return "No invitation matches. Try fewer letters, another state, or all days.";
  if (day === null) return "Nobody has been invited yet.";
  return day.until === undefined ? "Nobody is expected." : "Nobody is expected on this day.";
}

/** How many visits a day has, by state. */
interface Totals {
  byState: Record<InvitationState, number>;
  isMore: boolean;
}

const exactOf = (totals: Totals | null) => (totals === null || totals.isMore ? undefined : totals.byState);

/** @param state undefined for all. @returns undefined if they were not counted */
function totalOf(counts: Record<InvitationState, number> | undefined, state: InvitationState | undefined) {
  if (counts === undefined) return undefined;
  return state === undefined ? STATES.reduce((sum, each) => sum + counts[each], 0) : counts[state];
}

/** Counts all visits of a day, whatever the filter. Null without a day: the service counts all invitations itself. */
async function countVisits(server: ServerClient, day: string | undefined, signal: AbortSignal): Promise<Totals | null> {
  const params: Params = day === undefined ? {} : { day };
  if (searchOf(params).day?.until === undefined) return null;
  const byState = { pending: 0, claimed: 0, revoked: 0, expired: 0 };
  let counted = 0;
  for await (const { items, isLast } of openVisits(server, params, 1000, signal)) {
    for (const { state } of items) byState[state]++;
    counted += items.length;
    if (counted >= MOST_COUNTED) return { byState, isMore: !isLast };
  }
  return { byState, isMore: false };
}

function DayTotals({ totals: { value } }: { totals: Loaded<Totals | null> }) {
  if (value === null) return null;
  const { pending, claimed, revoked, expired } = value.byState;
  const ended = revoked + expired;
  return (
    <p class="day-totals" role="status">
      {value.isMore ? "More than " : ""}
      <strong>{counted(pending + claimed, "visitor")}</strong> expected: {count(claimed)} with a pass on the phone,{" "}
      {count(pending)} without.{ended > 0 && ` ${counted(ended, "invitation")} revoked or expired.`}
    </p>
  );
}
