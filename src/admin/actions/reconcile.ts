import type { Command } from "commander";
import { shownNumber, tableLines } from "../output.ts";
import { withSession } from "../session.ts";

/** `reconcile` */
export async function reconcile(
  id: string | null,
  restored: "d1" | "object",
  patienceMilliseconds: number,
  command: Command,
): Promise<void> {
  await withSession(command, async ({ database, output }) => {
    const { requestReconciliation, watchReconciliation } = await import("../operations/reconciliation.ts");
    const request = await requestReconciliation(database, id, restored);
    const done = await watchReconciliation(
      database,
      request,
      ({ open, checked }) => output.note(`Applications to go: ${open}; ${shownNumber(checked)} looked at.`),
      patienceMilliseconds,
    );
    const rows = done.map(({ applicationId, checked, changed }) => [
      applicationId,
      shownNumber(checked),
      shownNumber(changed),
    ]);
    output.result(done, () => tableLines(["APPLICATION", "LOOKED AT", "CHANGED"], rows, "There are no applications."));
  });
}
