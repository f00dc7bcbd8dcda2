import { doorsAfterEnd } from "../badges/doors.ts";
import { DoorsKnow } from "../doors/doors-know.tsx";
import { useDoorCounts } from "../doors/knowing.ts";
import { ConfirmDialog } from "../parts/confirm-dialog.tsx";
import { useLoaded, useSession } from "../parts/hooks.ts";
import { Plainly } from "../parts/identity.tsx";
import type { Notice } from "../parts/notice.tsx";
import { goTo } from "../parts/route.ts";
import { useSettings } from "../parts/settings.ts";
import { Show } from "../parts/states.tsx";
import { counted } from "../parts/texts.tsx";

export type PersonStep = "block" | "unblock" | "erase";

const WORDS: Readonly<Record<PersonStep, { title: string; action: string; sentences: readonly string[] }>> = {
  block: {
    title: "Block this person?",
    action: "Block person",
    sentences: [
      "All badges of this person are revoked now, and no new one is issued until you unblock the person.",
      "Revoked badges cannot be restored.",
    ],
  },
  unblock: {
    title: "Unblock this person?",
    action: "Unblock person",
    sentences: ["The person can get new badges again. Revoked badges stay revoked."],
  },
  erase: {
    title: "Erase this person's data?",
    action: "Erase for good",
    sentences: [
      "A random ID replaces the user ID everywhere, also in the history. Names, reasons and phone data are deleted. A block stays.",
      "This cannot be undone. The database's own backups keep the data for up to 61 more days.",
    ],
  },
};

/** Asks before a person is blocked, unblocked or erased. */
export function PersonStepDialog(props: { userId: string; step: PersonStep; onDone: () => void; onClose: () => void }) {
  const { userId, step, onDone, onClose } = props;
  const session = useSession();
  const application = useSettings();
  const doors = useDoorCounts();
  const more = application.statusList ? DoorsKnow : undefined;
  const { title, action, sentences } = WORDS[step];
  const act = async (reason: string | undefined): Promise<Notice> => {
    const notice = await session.run(async (server): Promise<Notice> => {
      if (step === "unblock") {
        await server.unblockUser(userId, { reason });
        return { text: `${userId} can get new badges again.` };
      }
      if (step === "block") {
        const { revoked } = await server.blockUser(userId, { reason });
        const ended = revoked.length === 0 ? "no badge is left in use" : `${counted(revoked.length, "badge")} revoked`;
        return { text: `${userId} is blocked; ${ended}.`, more };
      }
      const { userId: erasedId, erased } = await server.eraseUser(userId);
      if (erased > 0) {
        goTo("person", { user: erasedId });
        return { text: `The person is erased from ${counted(erased, "badge")}.`, more };
      }
      // If the first try's response was lost, nothing has the ID that the second one returns.
      goTo("badges");
      return { text: "The person is erased.", more };
    });
    onDone();
    return notice;
  };
  return (
    <ConfirmDialog
      title={title}
      action={action}
      isFinal={step !== "unblock"}
      act={act}
      onClose={onClose}
      // A reason might name the person.
      asksReason={step !== "erase"}
      {...(step === "erase" && { toType: { text: userId, label: "user ID" } })}
    >
      <p>
        <strong>
          <Plainly text={userId} />
        </strong>
      </p>
      {step === "erase" && <EndingBadges userId={userId} />}
      {sentences.map((sentence) => (
        <p key={sentence}>{sentence}</p>
      ))}
      {step !== "unblock" && <p>{doorsAfterEnd(application, doors)}</p>}
    </ConfirmDialog>
  );
}

/** How many badges an erasure revokes. */
function EndingBadges({ userId }: { userId: string }) {
  const count = useLoaded(async (server, signal) => {
    let badges = 0;
    for await (const page of server.listBadges({ userId, perPage: 1000, signal })) badges += page.badges.length;
    return badges;
  }, userId);
  return (
    <Show loaded={count} what="how many badges end">
      {(badges) => <p>{badges === 0 ? "No badge is in use." : `${counted(badges, "badge")} in use: revoked now.`}</p>}
    </Show>
  );
}
