import { MAX_GROUP_BADGES } from "../../shared/limits.ts";
import type { Claim, ClaimWriteResult } from "../storage/claim-writes.ts";
import { GroupCommit } from "./group-commit.ts";
import { type HolderKey, holderKey } from "./holder.ts";
import type { ClaimStanding, Ledger } from "./ledger.ts";

/**
 * The result of a claim; all but `written` mean that nothing was changed. `released` and `claimed-by-another` come from the
 * ledger: D1 may have been restored to an older state. `overtaken`: the rows have changed since the request read them.
 * `wakeUps` and `bookmark`: see `AllocationResult`.
 */
export type ClaimResult =
  | { kind: "written"; wakeUps: readonly never[]; bookmark?: string | null }
  | { kind: Exclude<ClaimStanding, "held"> }
  | { kind: "overtaken" }
  | { kind: "unavailable" };

/** @returns a result for each claim, and the bookmark of the transaction */
type WriteClaims = (claims: readonly Claim[]) => Promise<{ results: ClaimWriteResult[]; bookmark: string | null }>;

/** Claims of one application, written to D1 in groups and recorded in the ledger. */
export class Claims {
  readonly #ledger: Ledger;
  readonly #write: WriteClaims;
  readonly #recorded: (eventIds: readonly string[]) => void;
  readonly #group = new GroupCommit<Claim, ClaimResult>(MAX_GROUP_BADGES, (group) => this.#claimAll(group));

  /**
   * @param write writes to D1, in one transaction
   * @param recorded called with the events of a group that were recorded and are due
   */
  constructor(ledger: Ledger, write: WriteClaims, recorded: (eventIds: readonly string[]) => void) {
    this.#ledger = ledger;
    this.#write = write;
    this.#recorded = recorded;
  }

  /** @throws Unavailable when D1 fails or does not respond in time */
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
    const { results: written, bookmark } =
      writes.length === 0 ? { results: [], bookmark: null } : await this.#write(writes);
    const recorded: string[] = [];
    for (const [index, claim] of writes.entries()) {
      const result = written[index];
      if (result?.kind !== "written") continue;
      this.#note(claim);
      results.set(claim, { kind: "written", wakeUps: [], bookmark });
      recorded.push(...result.events);
    }
    this.#recorded(recorded);
    return group.map((claim) => results.get(claim) ?? { kind: "overtaken" });
  }

  #standingOf(claim: Claim): ClaimStanding {
    const { holder, claimant } = partiesOf(claim);
    return this.#ledger.checkClaim(holder, claim.number, claimant);
  }

  /**
   * Records the claimant in the ledger. If D1 is restored to before the claim, nobody else gets the number, not even when
   * the invitation is then revoked or expires. A crash before this line matters only together with such a restoration.
   */
  #note(claim: Claim): void {
    const { holder, claimant } = partiesOf(claim);
    this.#ledger.noteClaim(holder, claim.number, claimant);
  }
}

/** Holder keys of the invitation and of the user device that claims it. */
function partiesOf({ digest, device, userId }: Claim): { holder: HolderKey; claimant: HolderKey } {
  return {
    holder: holderKey({ kind: "invitation", invitation: digest }),
    claimant: holderKey({ kind: "device", device, userId }),
  };
}

/** Keeps the first claim of each invitation and user device. The rows that a second one has read are about to change. */
function withoutRivals(claims: readonly Claim[]): Claim[] {
  const seen = new Set<string>();
  return claims.filter((claim) => {
    const parties = Object.values(partiesOf(claim));
    const isRival = parties.some((party) => seen.has(party));
    for (const party of parties) seen.add(party);
    return !isRival;
  });
}
