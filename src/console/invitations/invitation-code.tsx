import { useLayoutEffect, useRef, useState } from "preact/hooks";
import type { Invitation } from "../../client/index.ts";
import { useAskBeforeLeaving } from "../parts/leaving.ts";
import { Digits, When } from "../parts/texts.tsx";
import { QrCode } from "./qr-code.tsx";

/** A new invitation with its token, as text and as a QR code. The service does not show the token again. */
export function InvitationCode({ invitation, onDone }: { invitation: Invitation; onDone: () => void }) {
  const { id, badgeId, expiresAt, badgeExpiresAt } = invitation;
  const token = useRef<HTMLElement>(null);
  const heading = useRef<HTMLHeadingElement>(null);
  const [copied, setCopied] = useState<string | null>(null);
  const [isSafe, setSafe] = useState(false);
  useLayoutEffect(() => heading.current?.focus(), []);
  useAskBeforeLeaving(isSafe ? null : LOSS);
  const copy = async () => {
    try {
      await navigator.clipboard.writeText(id);
      setSafe(true);
      setCopied("Copied.");
    } catch {
      if (token.current) getSelection()?.selectAllChildren(token.current);
      setCopied("Selected: copy it with your keyboard.");
    }
  };
  return (
    <section class="card code" aria-labelledby="code">
      <h2 id="code" ref={heading} tabIndex={-1}>
        Invitation to number <Digits value={badgeId} />
      </h2>
      <div class="code-body">
        <QrCode text={id} label="QR code of the invitation" />
        <div>
          <p>
            Let the visitor scan this code in your app, or send the text.{" "}
            <strong>It is shown only now: copy it before you close this.</strong>
          </p>
          <p>
            <code ref={token} class="token" onCopy={() => setSafe(true)}>
              {id}
            </code>
          </p>
          <p>
            It must be scanned by <When at={expiresAt} />.{" "}
            {badgeExpiresAt === undefined ? (
              <strong>This badge has no end.</strong>
            ) : (
              <>
                The visitor may enter until <When at={badgeExpiresAt} />.
              </>
            )}
          </p>
          <div class="actions code-actions">
            <button type="button" class="primary" onClick={copy}>
              Copy text
            </button>
            <button type="button" onClick={onDone}>
              Done
            </button>
            <span role="status">{copied}</span>
          </div>
        </div>
      </div>
    </section>
  );
}

const LOSS =
  "The code was not copied, and it is shown only now. Without it nobody can use this invitation: you would have to revoke it and create another.";
