import { z } from "zod";
import { deviceId, invitationDigest } from "../../../../src/shared/identifiers.ts";
import { holderKey } from "../../../../src/worker/allocator/holder.ts";
import { IS_UNCONFIRMED } from "../../../../src/worker/allocator/ledger-tables.ts";
import type { Sqlite } from "../platform/sqlite.ts";
import type { Verdict } from "./verdict.ts";

const writes = z.object({ kind: z.literal("written"), number: z.number() });
const requests = z.union([
  z.object({ device: deviceId, userId: z.string() }).transform((device) => ({ kind: "device" as const, ...device })),
  z
    .object({ invitation: invitationDigest })
    .transform((invitation) => ({ kind: "invitation" as const, ...invitation })),
]);
const releases = z.array(z.object({ digest: invitationDigest }));

/** An allocator that says that D1 has the badge knows it itself: nobody has to look again in an hour. */
export class LeaseCheck {
  readonly #verdict: Verdict;
  /** Holders whose numbers went back. A request of theirs that is repeated leases once more, until D1 says that it ended. */
  readonly #released = new Set<string>();

  constructor(verdict: Verdict) {
    this.#verdict = verdict;
  }

  /** @param call of an object, when it responds */
  observe(
    object: { sqlite: Sqlite } | undefined,
    { method, parameters, returned }: { method: string; parameters: readonly unknown[]; returned: unknown },
  ): void {
    const ended = method === "release" ? releases.parse(parameters[0]) : [];
    for (const { digest } of ended) this.#released.add(holderKey({ kind: "invitation", invitation: digest }));
    const written = writes.safeParse(returned);
    const holder = requests.safeParse(parameters[1]);
    if (!written.success || !holder.success || !object) return;
    const key = holderKey(holder.data);
    if (this.#released.has(key)) return;
    const query = `SELECT number, NOT ${IS_UNCONFIRMED} AS confirmed FROM lease WHERE holder = ?`;
    const [lease] = object.sqlite.run(query, [key]).rows;
    const isConfirmed = lease === undefined || lease.number !== written.data.number || lease.confirmed === 1;
    this.#verdict.expect(isConfirmed, "the lease of a written badge is confirmed", key, lease);
  }
}
