import { useLayoutEffect, useRef } from "preact/hooks";
import { csvOf, saveFile } from "../parts/csv.ts";
import { useSettings } from "../parts/settings.ts";
import { counted } from "../parts/texts.tsx";
import { linkOf, Pass, PassActions } from "./pass.tsx";
import type { Invited } from "./send-invitations.ts";
import type { Revocable } from "./visit-columns.tsx";

/** The new passes. Their codes are shown only now. */
export function Passes(props: {
  invited: Invited;
  revoked: ReadonlySet<string>;
  onRevoke: (invitation: Revocable) => void;
  onDone: () => void;
}) {
  const { invited, revoked, onRevoke, onDone } = props;
  const { passes, refused } = invited;
  const application = useSettings();
  const heading = useRef<HTMLParagraphElement>(null);
  useLayoutEffect(() => heading.current?.focus(), []);
  const [only] = passes;
  const isOne = passes.length === 1 && refused.length === 0;
  const save = () => {
    const rows = passes.map(({ invitation, host }) => [
      invitation.name ?? "",
      host,
      invitation.badgeId,
      linkOf(application.invitationLink, invitation.id),
    ]);
    saveFile("visitors.csv", csvOf(["Visitor", "Host", "Number", application.invitationLink ? "Link" : "Code"], rows));
  };
  return (
    <>
      <p ref={heading} tabIndex={-1} class="note no-print">
        {counted(passes.length, "pass", "passes")}. <strong>The code is shown only now:</strong> print, copy, share or
        mail it before you close this.
      </p>
      {refused.length > 0 && <Refused refused={refused} />}
      {isOne && only ? (
        <>
          <PassActions
            pass={only}
            onRevoke={() => onRevoke({ ...only.invitation, token: only.invitation.id })}
            onDone={onDone}
          />
          <div class="passes">
            <Pass pass={only} isRevoked={revoked.has(only.invitation.badgeId)} />
          </div>
        </>
      ) : (
        <>
          <div class="actions pass-actions no-print">
            <button type="button" class="primary" onClick={() => print()}>
              Print all
            </button>
            <button type="button" onClick={save}>
              Save names and codes as CSV
            </button>
            <button type="button" onClick={onDone}>
              Done
            </button>
          </div>
          <div class="passes">
            {passes.map((pass) => (
              <Pass key={pass.invitation.badgeId} pass={pass} isRevoked={revoked.has(pass.invitation.badgeId)} />
            ))}
          </div>
        </>
      )}
    </>
  );
}

/** The visitors who were refused, with the reasons. */
export function Refused({ refused }: Pick<Invited, "refused">) {
  return (
    <div class="problem no-print" role="alert">
      <p>{counted(refused.length, "visitor")} could not be invited:</p>
      <ul>
        {refused.map(({ name, why }, place) => (
          <li key={place}>
            {name}: {why}
          </li>
        ))}
      </ul>
    </div>
  );
}
