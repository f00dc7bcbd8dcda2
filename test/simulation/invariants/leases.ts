import { z } from "zod";
import { holderKey } from "../../../src/numbers/holder.ts";
import type { ObjectStorage } from "../platform/object-storage.ts";
import type { Verdict } from "./verdict.ts";

const answers = z.object({ kind: z.literal("written"), number: z.number() });
const requests = z.union([
  z.object({ device: z.string(), userId: z.string() }).transform((device) => ({ kind: "device" as const, ...device })),
  z.object({ invitation: z.string() }).transform((invitation) => ({ kind: "invitation" as const, ...invitation })),
]);

/** An allocator that says that D1 has the badge knows it itself: nobody has to look again in an hour. */
export function checkConfirmed(
  verdict: Verdict,
  storage: ObjectStorage | undefined,
  call: { parameters: readonly unknown[]; answer: unknown },
): void {
  const answer = answers.safeParse(call.answer);
  const holder = requests.safeParse(call.parameters[1]);
  if (!answer.success || !holder.success || !storage) return;
  const key = holderKey(holder.data);
  const [lease] = storage.look("SELECT number, confirmed FROM lease WHERE holder = ?", key);
  const isConfirmed = lease === undefined || lease.number !== answer.data.number || lease.confirmed === 1;
  verdict.expect(isConfirmed, "the lease of a written badge is confirmed", () => `${key}: ${JSON.stringify(lease)}`);
}
