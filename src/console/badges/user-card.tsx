import { useState } from "preact/hooks";
import type { BadgePage, ListedBadge } from "../../client/index.ts";
import { Action } from "../parts/action.tsx";
import { Ask } from "../parts/ask.tsx";
import { useLoaded, usePages, useSession } from "../parts/hooks.ts";
import { useNotify } from "../parts/notice.tsx";
import { Rows, Show } from "../parts/states.tsx";
import { Chip, counted } from "../parts/texts.tsx";
import { BadgeCard } from "./badge-card.tsx";

const PER_PAGE = 50;

/** A user: blocked or not, and the badges that are not over. */
export function UserCard({ userId }: { userId: string }) {
  const session = useSession();
  const notify = useNotify();
  const [isAsking, setAsking] = useState(false);
  const user = useLoaded((server, signal) => server.getUser(userId, { signal }));
  const list = usePages<ListedBadge, BadgePage>(
    (server, signal) => server.listBadges({ userId, perPage: PER_PAGE, signal }),
    ({ badges }) => badges,
  );
  const unblock = async () => {
    await session.run((server, signal) => server.unblockUser(userId, { signal }));
    user.reload();
    notify({ text: `${userId} can get new badges again. Revoked ones stay revoked.` });
  };
  const block = async () => {
    const { revoked } = await session.run((server, signal) => server.blockUser(userId, { signal }));
    user.reload();
    list.reload();
    notify({ text: `${userId} is blocked; ${counted(revoked.length, "badge")} revoked.` });
  };
  return (
    <section class="user" aria-label={`User ${userId}`}>
      <Show loaded={user} what="the user">
        {({ blocked }) => (
          <div class="card">
            <div class="card-head">
              <h2>
                User <span class="user-id">{userId}</span>
              </h2>
              {blocked ? <Chip tone="bad">Blocked</Chip> : <Chip tone="good">Not blocked</Chip>}
            </div>
            <div class="actions">
              {blocked ? (
                <Action label="Unblock user" act={unblock} />
              ) : (
                <button type="button" class="final" onClick={() => setAsking(true)}>
                  Block user…
                </button>
              )}
            </div>
          </div>
        )}
      </Show>
      <Rows
        list={list}
        what="badges"
        keyOf={({ id }) => id}
        empty="This user has no active or suspended badge. Is the user ID right? Capital letters count."
      >
        {(badge) => <BadgeCard badge={{ ...badge, state: badge.state ?? "active" }} heading="h3" />}
      </Rows>
      {isAsking && (
        <Ask title={`Block ${userId}?`} action="Block user" isFinal act={block} onClose={() => setAsking(false)}>
          <p>
            {userId} gets no new badge, and every badge of {userId} is revoked: no phone of theirs opens doors.
          </p>
          <p>
            <strong>Revoked badges cannot be restored.</strong> Unblocking lets {userId} get new ones.
          </p>
        </Ask>
      )}
    </section>
  );
}
