import { expectKind } from "../../shared/kinds.ts";
import { DEFAULT_SKIPPED_NUMBERS } from "../../shared/limits.ts";
import { isoTime } from "../../shared/time.ts";
import { wholeNumber } from "../command-line/arguments.ts";
import { command, option } from "../command-line/command.ts";
import { UserError } from "../command-line/errors.ts";
import { counted, shownNumber, shownTime } from "../command-line/output.ts";
import { type Session, shownCommand } from "../command-line/session.ts";
import { type Carried, carryOut } from "../inbox/carry-out.ts";
import { APPLICATION, findApplication } from "./record.ts";

export const reconcileCommand = command("reconcile", {
  arguments: [APPLICATION],
  summary: "compare D1 with an application's allocator after a restoration",
  description:
    "After D1 or an allocator was restored, the running service restores by itself what one of them lacks. This asks it to " +
    "do so now, and shows how far back the allocator's journal reaches.\n\n" +
    "Only when D1 lacks more than the journal has, changes of the application get 503 and the log says journal-gap. A " +
    "later state of D1 is the way out; --accept-loss gives up what is missing: no number, list position or change number " +
    "that either of them knows is used again, pending invitations end, and the change feed starts anew.",
  options: {
    acceptLoss: option("--accept-loss", "go on without what is missing"),
    skip: option("--skip <n>", `fresh numbers to skip besides (${DEFAULT_SKIPPED_NUMBERS})`, wholeNumber(0)),
  },
  examples: ["", "--accept-loss --env production"],
  async work(session, applicationId, { acceptLoss = false, skip }) {
    if (skip !== undefined && !acceptLoss) throw new UserError("Numbers are only skipped with --accept-loss: add it.");
    await findApplication(session.homes.of(applicationId), applicationId);
    const asked = { kind: "reconcile", acceptLoss, skip: skip ?? DEFAULT_SKIPPED_NUMBERS } as const;
    return expectKind(await carryOut(session, applicationId, asked), "level", "gap", "loss-accepted");
  },
  json(carried, applicationId) {
    const { kind: result, ...found } = carried;
    const times = carried.kind === "level" && { journalSince: isoTime(carried.journalSince) };
    return { applicationId, result, ...found, ...times };
  },
  text: reconciledText,
  failure: (reconciled, session, id) => (reconciled.kind === "gap" ? gapLine(session, id, reconciled.d1) : undefined),
});

function gapLine(session: Session, id: string, d1: number | null): string {
  if (d1 === null) return "D1 has no place for the application's changes: restore D1 to a later state.";
  return `D1 lacks more than the allocator remembers: restore D1 to a later state, or give that up with ${shownCommand(session, `reconcile ${id} --accept-loss`)}`;
}

function reconciledText(reconciled: Extract<Carried, { kind: "level" | "gap" | "loss-accepted" }>): string {
  switch (reconciled.kind) {
    case "level": {
      const { sequence, applied, journalSince, journalBytes } = reconciled;
      const done =
        applied === 0 ? "D1 lacked nothing" : `${counted(applied, "entry")} that D1 lacked were applied again`;
      const since = journalSince === null ? "the application's beginning" : shownTime(journalSince);
      const reach = `The journal reaches back to ${since} (${shownNumber(journalBytes)} bytes).`;
      return `D1 and the allocator agree at entry ${sequence}: ${done}.\n${reach}`;
    }
    case "gap":
      return `D1 is at entry ${reconciled.d1 ?? "none"}, the allocator's journal at entry ${reconciled.journal}, and what lies between is missing.`;
    case "loss-accepted": {
      const { d1, journal, skipped } = reconciled;
      return [
        `The loss is accepted: D1 was at entry ${d1}, the allocator's journal at entry ${journal}.`,
        `Skipped ${shownNumber(skipped)} fresh numbers; pending invitations have ended; followers of changes start anew (410).`,
      ].join("\n");
    }
  }
}
