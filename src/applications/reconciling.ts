import type { Context } from "../context.ts";
import { RECONCILE_CHUNK_ROWS } from "../limits.ts";
import { endPending } from "../storage/invitations.ts";
import {
  findEnded,
  findOpenReconciliation,
  listNumbers,
  type Reconciliation,
  writeReconciliation,
} from "../storage/reconciliations.ts";

/** What one chunk did, and where the next begins. */
interface Chunk {
  checked: number;
  changed: number;
  /** Null: the step is done. */
  through: number | null;
}

/**
 * One chunk of bringing D1 and an application's object in line after one of them was restored to an older state; an
 * administrator asks for it (`reconcile`). No number is handed out twice without this, too: D1's numbers are unique, and
 * leases stay. What it gives back is what the older one forgot: invitations that work, and numbers that can be used.
 * Every chunk can be repeated.
 *
 * @returns whether there may be more to do
 */
export async function reconcileSome(context: Context): Promise<boolean> {
  const open = await findOpenReconciliation(context.db);
  if (!open) return false;
  const { checked, changed, through } = await doChunk(context, open);
  const counted = { checked: open.checked + checked, changed: open.changed + changed };
  const progress = { step: open.step, through: through ?? open.through, finishedAt: null };
  const isLastStep = open.step === "badges";
  await writeReconciliation(
    context.db,
    open,
    through !== null
      ? { ...counted, ...progress }
      : isLastStep
        ? { ...counted, ...progress, finishedAt: context.now() }
        : { ...counted, step: "badges", through: 0, finishedAt: null },
  );
  return true;
}

function doChunk(context: Context, open: Reconciliation): Promise<Chunk> {
  if (open.step === "leases") return giveBackEnded(context, open);
  return open.restored === "d1" ? endGivenBack(context, open) : adoptKnown(context, open);
}

/** The object is older: invitations that have ended since have their numbers there again. */
async function giveBackEnded({ db, allocator }: Context, { applicationId, through }: Reconciliation): Promise<Chunk> {
  const leases = await allocator.invitationLeases(applicationId, through, RECONCILE_CHUNK_ROWS);
  const ended = await findEnded(db, leases.invitations);
  if (ended.length > 0) await allocator.release(applicationId, ended);
  return { checked: leases.invitations.length, changed: ended.length, through: leases.through };
}

/** The object is older: it does not know the leases of what D1 has got since. */
async function adoptKnown({ db, allocator }: Context, open: Reconciliation): Promise<Chunk> {
  const badges = await listNumbers(db, open, RECONCILE_CHUNK_ROWS);
  const changed = badges.length === 0 ? 0 : await allocator.adopt(open.applicationId, badges);
  return { checked: badges.length, changed, through: badges.at(-1)?.number ?? null };
}

/** D1 is older: it says that invitations are pending which have ended since and gave their numbers back. */
async function endGivenBack({ db, allocator, now }: Context, open: Reconciliation): Promise<Chunk> {
  const badges = await listNumbers(db, open, RECONCILE_CHUNK_ROWS);
  const reserved = badges.flatMap(({ number, invitation, device }) =>
    invitation !== null && device === null ? [{ digest: invitation, number }] : [],
  );
  const givenBack = reserved.length === 0 ? [] : await allocator.whichGaveBack(open.applicationId, reserved);
  const changed = givenBack.length === 0 ? 0 : (await endPending(db, givenBack, now())).size;
  return { checked: badges.length, changed, through: badges.at(-1)?.number ?? null };
}
