import { useState } from "preact/hooks";
import type { ListedBadge } from "../../client/index.ts";
import { focusHeading } from "../parts/notice.tsx";
import type { Selection } from "../parts/selection.tsx";
import { counted } from "../parts/texts.tsx";
import { BulkDialog } from "./bulk-dialog.tsx";
import type { BulkStep } from "./bulk-step.ts";

const LABELS: Readonly<Record<BulkStep, string>> = { extend: "Change end…", suspend: "Suspend…", revoke: "Revoke…" };
const STEPS: readonly BulkStep[] = ["extend", "suspend", "revoke"];

/** Actions on all selected badges. */
export function Bulk({ selection, onDone }: { selection: Selection<ListedBadge>; onDone: () => void }) {
  const { items, clear } = selection;
  /** A copy of the selection, because the list may change behind the dialog. */
  const [asking, setAsking] = useState<{ step: BulkStep; badges: readonly ListedBadge[] } | null>(null);
  const close = (hasActed: boolean) => {
    setAsking(null);
    if (!hasActed) return;
    clear();
    onDone();
  };
  const clearAll = () => {
    clear();
    focusHeading();
  };
  return (
    <>
      {items.length > 0 && (
        <section class="actions bulk" aria-label="Selected badges">
          <span role="status">{counted(items.length, "badge")} selected</span>
          {STEPS.map((step) => (
            <button
              key={step}
              type="button"
              class={step === "revoke" ? "final" : undefined}
              onClick={() => setAsking({ step, badges: items })}
            >
              {LABELS[step]}
            </button>
          ))}
          <button type="button" class="quiet" onClick={clearAll}>
            Clear the selection
          </button>
        </section>
      )}
      {asking !== null && <BulkDialog {...asking} onDone={onDone} onClose={close} />}
    </>
  );
}
