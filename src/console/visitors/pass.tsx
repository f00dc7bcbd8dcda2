import type { ComponentChildren } from "preact";
import { useState } from "preact/hooks";
import type { Invitation } from "../../client/index.ts";
import { Plainly } from "../parts/identity.tsx";
import { useNotify } from "../parts/notice.tsx";
import { useSettings } from "../parts/settings.ts";
import { Digits, zonedTime } from "../parts/texts.tsx";
import { QrCode } from "./qr-code.tsx";

/** A new invitation, and the host, which the service does not store. */
export interface NewPass {
  invitation: Invitation;
  host: string;
}

/** The content of the QR code: the application's link with the token in it, or the token alone. */
export const linkOf = (link: string | undefined, token: string): string =>
  link === undefined ? token : link.replace("{token}", encodeURIComponent(token));

/** A visitor's pass, on one page when printed. The service does not show its code again. */
export function Pass({
  pass,
  isRevoked,
  children,
}: {
  pass: NewPass;
  isRevoked: boolean;
  children?: ComponentChildren;
}) {
  const application = useSettings();
  const { invitation, host } = pass;
  const { id, badgeId, name, badgeStartsAt, badgeExpiresAt, expiresAt } = invitation;
  const link = linkOf(application.invitationLink, id);
  return (
    <article class={isRevoked ? "pass pass-revoked" : "pass"} aria-label={`Pass of ${name ?? "a visitor"}`}>
      <header>
        <p class="pass-site">{application.name}</p>
        <h2>
          <Plainly text={name ?? "Visitor"} />
        </h2>
        {host !== "" && <p>visits {host}</p>}
      </header>
      {isRevoked ? (
        <p class="problem" role="status">
          Revoked: this code gives nobody a badge any more.
        </p>
      ) : (
        <>
          <QrCode text={link} label={`QR code for ${name ?? "the visitor"}`} />
          <code class="pass-link">{link}</code>
        </>
      )}
      <dl class="facts">
        <div class="field">
          <dt>From</dt>
          <dd>{badgeStartsAt === undefined ? "now" : zonedTime(badgeStartsAt)}</dd>
        </div>
        <div class="field">
          <dt>Until</dt>
          <dd>{badgeExpiresAt === undefined ? "no end" : zonedTime(badgeExpiresAt)}</dd>
        </div>
        <div class="field">
          <dt>Number</dt>
          <dd>
            <Digits value={badgeId} />
          </dd>
        </div>
      </dl>
      {!isRevoked && (
        <p>
          Scan the code with {application.invitationLink === undefined ? "the app" : "your phone"} by{" "}
          {zonedTime(expiresAt)}.
        </p>
      )}
      {children}
    </article>
  );
}

/** Ways to give a pass to the visitor. */
export function PassActions({ pass, onRevoke, onDone }: { pass: NewPass; onRevoke: () => void; onDone: () => void }) {
  const application = useSettings();
  const notify = useNotify();
  const [said, setSaid] = useState<string | null>(null);
  const { invitation, host } = pass;
  const link = linkOf(application.invitationLink, invitation.id);
  const subject = `Your visit to ${application.name}`;
  const text = [
    `Your visit to ${application.name}${host === "" ? "" : `, to see ${host}`}.`,
    `From ${invitation.badgeStartsAt === undefined ? "now" : zonedTime(invitation.badgeStartsAt)} until ${invitation.badgeExpiresAt === undefined ? "further notice" : zonedTime(invitation.badgeExpiresAt)}.`,
    `${application.invitationLink === undefined ? "Enter this code in the app" : "Open this on your phone"} by ${zonedTime(invitation.expiresAt)}: ${link}`,
  ].join("\n");
  const copy = async () => {
    try {
      await navigator.clipboard.writeText(link);
      setSaid("Copied.");
    } catch {
      setSaid("This browser does not let the page copy: select the text below the code, or use Print or Mail.");
    }
  };
  const share = async () => {
    try {
      await navigator.share({ title: subject, text });
    } catch (error) {
      if (!(error instanceof DOMException && error.name === "AbortError"))
        notify({ text: "Sharing failed. Use Copy or Mail.", tone: "bad" });
    }
  };
  return (
    <div class="actions pass-actions no-print">
      <button type="button" class="primary" onClick={() => print()}>
        Print
      </button>
      <button type="button" onClick={copy}>
        {application.invitationLink === undefined ? "Copy code" : "Copy link"}
      </button>
      {"share" in navigator && (
        <button type="button" onClick={share}>
          Share…
        </button>
      )}
      {/* In a tab of its own: here, the browser would ask whether to leave the page and lose its codes. */}
      <a
        class="button"
        target="_blank"
        rel="noreferrer"
        href={`mailto:?subject=${encodeURIComponent(subject)}&body=${encodeURIComponent(text)}`}
      >
        Mail
      </a>
      <button type="button" class="final" onClick={onRevoke}>
        Revoke…
      </button>
      <button type="button" onClick={onDone}>
        Done
      </button>
      <span role="status">{said}</span>
    </div>
  );
}
