import { MAX_GROUP_BADGES } from "../limits.ts";
import type { Claim, ClaimWriteResult } from "../storage/claim-writes.ts";
import { GroupCommit } from "./group-commit.ts";
import { holderKey } from "./holder.ts";
import type { ClaimStanding, Ledger } from "./ledger.ts";
import { giveWakeUpsToOne } from "./wake-ups.ts";

/**
 * What came of a claim; all but `written` left everything as it was. `given-back` and `claimed-by-another`: the ledger
 * says so, while D1 may have been restored to an older state. `overtaken`: something moved since the request looked.
 */
export type ClaimResult =
  | { kind: "written"; wakeUps: readonly string[] }
  | { kind: Exclude<ClaimStanding, "held"> }
  | { kind: "overtaken" };

/** Claims of one application, written to D1 in groups. The ledger says whose each number is, and hears who got it. */
export class Claims {
  readonly #ledger: Ledger;
  readonly #write: (claims: readonly Claim[]) => Promise<ClaimWriteResult[]>;
  readonly #group = new GroupCommit<Claim, ClaimResult>(MAX_GROUP_BADGES, (group) => this.#claimAll(group));

  /** @param write writes to D1, in one transaction */
  constructor(ledger: Ledger, write: (claims: readonly Claim[]) => Promise<ClaimWriteResult[]>) {
    this.#ledger = ledger;
    this.#write = write;
  }

  /** @throws Unavailable when D1 does not answer */
  claim(claim: Claim): Promise<ClaimResult> {
    return this.#group.add(claim);
  }

  async #claimAll(group: readonly Claim[]): Promise<ClaimResult[]> {
    const results = new Map<Claim, ClaimResult>();
    for (const claim of group) {
      const standing = this.#standingOf(claim);
      if (standing !== "held") results.set(claim, { kind: standing });
    }
    const writes = withoutRivals(group.filter((claim) => !results.has(claim)));
    const written = writes.length === 0 ? [] : await this.#write(writes);
    const wakeUps: string[] = [];
    for (const [place, claim] of writes.entries()) {
      const result = written[place];
      if (result?.kind !== "written") continue;
      this.#note(claim);
      results.set(claim, { kind: "written", wakeUps: [] });
      if (result.eventPending) wakeUps.push(claim.eventId);
    }
    return giveWakeUpsToOne(
      group.map((claim) => results.get(claim) ?? { kind: "overtaken" }),
      wakeUps,
    );
  }

  #standingOf({ digest, number, device, userId }: Claim): ClaimStanding {
    const invitation = holderKey({ kind: "invitation", invitation: digest });
    return this.#ledger.mayClaim(invitation, number, holderKey({ kind: "device", device, userId }));
  }

  /**
   * Who claimed is remembered here, should D1 be restored to a time before: then nobody else gets the number, not even
   * when the invitation is revoked or expires. That a note is lost matters only together with such a restoration.
   */
  #note({ digest, number, device, userId }: Claim): void {
    const invitation = holderKey({ kind: "invitation", invitation: digest });
    this.#ledger.noteClaim(invitation, number, holderKey({ kind: "device", device, userId }));
  }
}

/** Of two claims of one invitation, or by one user device, the second is overtaken: what it read is about to change. */
function withoutRivals(claims: readonly Claim[]): Claim[] {
  const claimed = new Set<string>();
  return claims.filter(({ digest, device, userId }) => {
    const keys = [holderKey({ kind: "invitation", invitation: digest }), holderKey({ kind: "device", device, userId })];
    const isRival = keys.some((key) => claimed.has(key));
    for (const key of keys) claimed.add(key);
    return !isRival;
  });
}
