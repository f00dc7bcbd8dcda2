import { useLayoutEffect, useRef } from "preact/hooks";
import { Plainly } from "../parts/identity.tsx";
import { counted, When, YOUR_TIME_ZONE } from "../parts/texts.tsx";
import type { Guest } from "./guests.ts";

/** The visitors of a pasted list with their times, before anything is sent. */
export function Preview(props: { guests: readonly Guest[]; isBusy: boolean; onSend: () => void; onBack: () => void }) {
  const { guests, isBusy, onSend, onBack } = props;
  const heading = useRef<HTMLParagraphElement>(null);
  useLayoutEffect(() => heading.current?.focus(), []);
  return (
    <>
      <p ref={heading} tabIndex={-1} class="note">
        {counted(guests.length, "visitor")}; nobody is invited yet. Check the times, which are in {YOUR_TIME_ZONE}.
      </p>
      <table class="list" aria-label="Visitors to invite">
        <thead>
          <tr>
            {["Visitor", "From", "Until", "Host", "User ID"].map((title) => (
              <th key={title} scope="col">
                {title}
              </th>
            ))}
          </tr>
        </thead>
        <tbody>
          {guests.map(({ name, startsAt, expiresAt, host, userId }, place) => (
            <tr key={place}>
              <th scope="row" data-title="Visitor">
                <Plainly text={name} />
              </th>
              <td data-title="From">{startsAt === null ? "at once" : <When at={startsAt} />}</td>
              <td data-title="Until">{expiresAt === null ? "no end" : <When at={expiresAt} />}</td>
              <td data-title="Host">{host}</td>
              <td data-title="User ID">{userId === "" ? "" : <Plainly text={userId} />}</td>
            </tr>
          ))}
        </tbody>
      </table>
      <div class="actions preview-actions">
        <button type="button" class="primary" aria-disabled={isBusy} onClick={onSend}>
          {isBusy ? "Working…" : `Invite ${counted(guests.length, "visitor")}`}
        </button>
        <button type="button" onClick={onBack}>
          Back to the list
        </button>
      </div>
    </>
  );
}
