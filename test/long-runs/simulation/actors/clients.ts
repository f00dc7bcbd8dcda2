import { homeOf } from "../../../../src/shared/homes.ts";
import type { Context } from "../../../../src/worker/context.ts";
import { type Attempt, isUntold, type Outcome } from "../invariants/book.ts";
import { Member } from "../member.ts";
import { type CallName, type CallResult, carryOut, type GrantedBy, type RequestOf } from "../service/door.ts";

const PATIENCE_MILLISECONDS = 120_000;

/** Calls whose object writes an entry, or knows that D1 is where its list ends. */
const CHANGES: readonly CallName[] = ["step", "rebind", "block", "unblock", "erase", "revoke"];

/** What the trace does not show of calls: what is in all of them, and bytes that no seed decides. */
const UNSHOWN = ["applicationId", "secret", "bookmark", "publicKey", "cursor"];

/** Every call of every client goes through here: it is noted, carried out, and held against the promises. */
export class Clients extends Member {
  async call<Name extends CallName>(name: Name, request: RequestOf<Name>): Promise<Outcome<GrantedBy<Name>>> {
    const { timeline, trace, faults, book, told } = this.world;
    const attempt: Attempt<Name> = {
      ...{ name, request, outcome: null, struckBefore: faults.struck },
      ...{ from: timeline.now, to: Number.POSITIVE_INFINITY, toldAt: Number.POSITIVE_INFINITY },
    };
    book.begin(attempt);
    const what = `${name} ${inWords(request)}`;
    trace.add("client", `asks for ${what}`);
    const outcome = await this.#ask<GrantedBy<Name>>((contextOf) =>
      carryOut(contextOf(homeOf(request.applicationId)), name, request),
    );
    attempt.outcome = outcome;
    attempt.toldAt = timeline.now;
    if (!isUntold(attempt)) attempt.to = timeline.now;
    const isWritten = outcome.kind === "granted" && CHANGES.includes(name);
    if (isWritten) book.settle(attempt);
    trace.add("client", `is answered ${what}: ${inWords(outcome)}`);
    told.check(attempt, what);
    return outcome;
  }

  #ask<Granted>(
    call: (contextOf: (home: number) => Context) => Promise<CallResult<Granted>>,
  ): Promise<Outcome<Granted>> {
    const { timeline, wire, faults, isolates } = this.world;
    const fault = faults.draw("client");
    return new Promise((resolve) => {
      const lose = () => resolve({ kind: "lost" });
      timeline.after(PATIENCE_MILLISECONDS, lose);
      if (fault === "before") return wire.carry(lose);
      const back = (outcome: Outcome<Granted>) => wire.carry(() => (fault === "after" ? lose() : resolve(outcome)));
      wire.carry(async () => {
        const done = await isolates.enter(call);
        back(done ? done.result : { kind: "lost" });
      });
    });
  }
}

const inWords = (call: unknown): string =>
  JSON.stringify(call, (key, value) => {
    const isSignature = key === "granted" && typeof value === "string";
    return isSignature || UNSHOWN.includes(key) ? undefined : value;
  });
