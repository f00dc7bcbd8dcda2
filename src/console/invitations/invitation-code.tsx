import { useLayoutEffect, useRef, useState } from "preact/hooks";
import type { Invitation } from "../../client/index.ts";
import { Digits, When } from "../parts/texts.tsx";
import { QrCode } from "./qr-code.tsx";

/** A new invitation with its token, as text and as a QR code. The service does not show the token again. */
export function InvitationCode({ invitation, onDone }: { invitation: Invitation; onDone: () => void }) {
  const { id, badgeId, expiresAt, badgeExpiresAt } = invitation;
  const token = useRef<HTMLElement>(null);
  const heading = useRef<HTMLHeadingElement>(null);
  const [copied, setCopied] = useState<string | null>(null);
  useLayoutEffect(() => heading.current?.focus(), []);
  const copy = async () => {
    try {
      await navigator.clipboard.writeText(id);
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
            <code ref={token} class="token">
              {id}
            </code>
          </p>
          <p>
            Valid until <When at={expiresAt} />.
            {badgeExpiresAt !== undefined && (
              <>
                {" "}
                The badge ends <When at={badgeExpiresAt} />.
              </>
            )}
          </p>
          <div class="actions">
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
