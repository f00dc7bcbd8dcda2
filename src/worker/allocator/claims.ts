import { MAX_GROUP_BADGES } from "../../shared/limits.ts";
import type { Claim, ClaimWriteResult } from "../storage/claim-writes.ts";
import { GroupCommit } from "./group-commit.ts";
import { holderKey } from "./holder.ts";
import type { ClaimStanding, Ledger } from "./ledger.ts";

/**
 * What came of a claim; all but `written` left everything as it was. `given-back` and `claimed-by-another`: the ledger
 * says so, while D1 may have been restored to an older state. `overtaken`: something moved since the request looked.
 * `wakeUps`: see `AllocationResult`.
 */
export type ClaimResult =
  | { kind: "written"; wakeUps: readonly never[] }
  | { kind: Exclude<ClaimStanding, "held"> }
  | { kind: "overtaken" }
  | { kind: "unavailable" };

/** Claims of one application, written to D1 in groups. The ledger says whose each number is, and hears who got it. */
export class Claims {
  readonly #ledger: Ledger;
  readonly #write: (claims: readonly Claim[]) => Promise<ClaimWriteResult[]>;
  readonly #recorded: (eventIds: readonly string[]) => void;
  readonly #group = new GroupCommit<Claim, ClaimResult>(MAX_GROUP_BADGES, (group) => this.#claimAll(group));

  /**
   * @param write writes to D1, in one transaction
   * @param recorded hears which events of a group have been recorded and are due
   */
  constructor(
    ledger: Ledger,
    write: (claims: readonly Claim[]) => Promise<ClaimWriteResult[]>,
    recorded: (eventIds: readonly string[]) => void,
  ) {
    this.#ledger = ledger;
    this.#write = write;
    this.#recorded = recorded;
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
    const recorded: string[] = [];
    for (const [place, claim] of writes.entries()) {
      const result = written[place];
      if (result?.kind !== "written") continue;
      this.#note(claim);
      results.set(claim, { kind: "written", wakeUps: [] });
      recorded.push(...result.events);
    }
    this.#recorded(recorded);
    return group.map((claim) => results.get(claim) ?? { kind: "overtaken" });
  }

  #standingOf(claim: Claim): ClaimStanding {
    const { holder, claimant } = partiesOf(claim);
    return this.#ledger.mayClaim(holder, claim.number, claimant);
  }

  /**
   * Who claimed is remembered here, should D1 be restored to a time before: then nobody else gets the number, not even
   * when the invitation is revoked or expires. That a note is lost matters only together with such a restoration.
   */
  #note(claim: Claim): void {
    const { holder, claimant } = partiesOf(claim);
    this.#ledger.noteClaim(holder, claim.number, claimant);
  }
}

/** The invitation that holds the number and the user device that claims it, by the names that leases have. */
function partiesOf({ digest, device, userId }: Claim): { holder: string; claimant: string } {
  return {
    holder: holderKey({ kind: "invitation", invitation: digest }),
    claimant: holderKey({ kind: "device", device, userId }),
  };
}

/** Of two claims of one invitation, or by one user device, the second is overtaken: what it read is about to change. */
function withoutRivals(claims: readonly Claim[]): Claim[] {
  const seen = new Set<string>();
  return claims.filter((claim) => {
    const parties = Object.values(partiesOf(claim));
    const isRival = parties.some((party) => seen.has(party));
    for (const party of parties) seen.add(party);
    return !isRival;
  });
}
