import { useEffect, useState } from "preact/hooks";
import type { Badge, BadgePage } from "../../client/index.ts";
import { Opener } from "../parts/action.tsx";
import { Ask } from "../parts/ask.tsx";
import { useKnown, useLoaded, usePages, useSession } from "../parts/hooks.ts";
import type { Notice } from "../parts/notice.tsx";
import { Loading, Problem, Rows } from "../parts/states.tsx";
import { Chip, counted } from "../parts/texts.tsx";
import type { Session } from "../session.ts";
import { BadgeCard } from "./badge-card.tsx";
import { asListed } from "./change-badge.ts";

const PER_PAGE = 50;

/** A user: blocked or not, the badges that are not over, and of those that are, which the service does not list, the seen ones. */
export function UserCard({ userId }: { userId: string }) {
  const session = useSession();
  const known = useKnown();
  const user = useLoaded(async (server, signal) => known.learnUser(await server.getUser(userId, { signal })));
  const list = usePages<Badge, BadgePage>(
    (server, signal) => server.listBadges({ userId, perPage: PER_PAGE, signal }),
    ({ badges }) => badges.map((badge) => known.learnBadge(asListed(badge))),
  );
  const isBlocked = known.isBlocked(userId);
  const listed = new Set(list.items.map(({ id }) => id));
  const unlisted = known.badgesOf(userId).filter(({ id }) => !listed.has(id));
  const isSeen = isBlocked === true || list.items.length > 0 || unlisted.length > 0;
  useEffect(() => {
    if (!list.isComplete) return;
    // A badge that was active when last seen, and is no longer listed, was ended by somebody else.
    for (const { id } of unlisted.filter(({ state }) => state === "active" || state === "suspended")) {
      session
        .run((server, signal) => server.getBadge(id, { signal }))
        .then(
          (badge) => known.learnBadge(badge),
          () => undefined,
        );
    }
  }, [list.isComplete]);
  if (user.problem !== null) return <Problem text={user.problem} onRetry={user.reload} />;
  if (isBlocked === undefined) return <Loading what="the user" />;
  if (!isSeen && list.isComplete) return <UnknownUser userId={userId} />;
  return (
    <section class="user" aria-label={`User ${userId}`}>
      {isSeen && <UserHead userId={userId} isBlocked={isBlocked} />}
      <Rows
        list={list}
        what="badges"
        keyOf={({ id }) => id}
        empty={`${userId} has no active or suspended badge. A badge that has ended is found by its number.`}
      >
        {({ id }) => <BadgeCard id={id} heading="h3" />}
      </Rows>
      {list.isComplete && unlisted.length > 0 && (
        <section aria-label="Ended badges">
          <p class="hint">Ended badges that this page has shown since you signed in:</p>
          <ul class="rows" aria-label="ended badges">
            {unlisted.map(({ id }) => (
              <li key={id}>
                <BadgeCard id={id} heading="h3" />
              </li>
            ))}
          </ul>
        </section>
      )}
    </section>
  );
}

function UserHead({ userId, isBlocked }: { userId: string; isBlocked: boolean }) {
  const session = useSession();
  const [asking, setAsking] = useState<"block" | "unblock" | null>(null);
  const close = () => setAsking(null);
  return (
    <div class="card" data-about={userId}>
      <div class="card-head">
        <h2>
          User <span class="user-id">{userId}</span>
        </h2>
        {isBlocked ? <Chip tone="bad">Blocked</Chip> : <Chip tone="good">Not blocked</Chip>}
      </div>
      <div class="actions">
        <Opener
          label={isBlocked ? "Unblock user" : "Block user"}
          about={userId}
          isFinal={!isBlocked}
          onOpen={() => setAsking(isBlocked ? "unblock" : "block")}
        />
      </div>
      {asking === "unblock" && (
        <Ask title={`Unblock ${userId}?`} action="Unblock user" act={() => unblock(session, userId)} onClose={close}>
          <p>{userId} can get new badges again. Revoked badges stay revoked.</p>
        </Ask>
      )}
      {asking === "block" && (
        <Ask title={`Block ${userId}?`} action="Block user" isFinal act={() => block(session, userId)} onClose={close}>
          <p>
            {userId} gets no new badge, and every badge of {userId} is revoked: no phone of theirs opens doors.
          </p>
          <p>
            <strong>Revoked badges cannot be restored.</strong> Unblocking lets {userId} get new ones.
          </p>
        </Ask>
      )}
    </div>
  );
}

/** Most such texts are typing errors, so blocking one as a user is a step of its own. */
function UnknownUser({ userId }: { userId: string }) {
  const session = useSession();
  const [isAsking, setAsking] = useState(false);
  return (
    <div class="card" data-about={userId}>
      <p>
        <strong>No badge has this number, and no user with this ID has a badge that is active or suspended.</strong>
      </p>
      <p>Check every character: capital letters count. A badge that has ended is found by its number alone.</p>
      <details>
        <summary>Refuse this user ID badges all the same</summary>
        <p>For somebody who is never to get a badge. The service takes any text for a user ID, a mistyped one too.</p>
        <div class="actions">
          <Opener label="Block this user ID" about={userId} isFinal onOpen={() => setAsking(true)} />
        </div>
      </details>
      {isAsking && (
        <Ask
          title={`Block ${userId}, who has no badge?`}
          action="Block user ID"
          isFinal
          act={() => block(session, userId)}
          onClose={() => setAsking(false)}
        >
          <p>
            <strong>No active or suspended badge of “{userId}” was found, so this may not be the user you mean.</strong>{" "}
            If the ID is mistyped, the user's badges keep opening doors.
          </p>
          <p>Whoever logs in with exactly this ID gets no badge. You can undo this by unblocking.</p>
        </Ask>
      )}
    </div>
  );
}

async function unblock(session: Session, userId: string): Promise<Notice> {
  session.known.learnUser(await session.run((server, signal) => server.unblockUser(userId, { signal })));
  return { text: `${userId} can get new badges again. Revoked ones stay revoked.`, about: [userId] };
}

async function block(session: Session, userId: string): Promise<Notice> {
  const blocked = await session.run((server, signal) => server.blockUser(userId, { signal }));
  session.known.learnBlocked(blocked);
  const { revoked } = blocked;
  const about = [userId];
  if (revoked.length > 0) return { text: `${userId} is blocked; ${counted(revoked.length, "badge")} revoked.`, about };
  const text = `${userId} is blocked. No badge was found: check the user ID.`;
  return { text, about, tone: "warning", undo: () => unblock(session, userId) };
}
