import type { Dice } from "../../dice.ts";
import { grantedNumber } from "../invariants/book.ts";
import type { ApplicationPlan } from "../plan.ts";
import type { World } from "../world.ts";

/** A user ID of the attacker's own, which no phone uses. */
const ATTACKERS_USER = "mallory";
const ATTACKERS_KEY = "key of mallory";

/**
 * Somebody who knows every udid, user ID, token and badge number of an application, but holds no phone's key (contract
 * section 15): logs in and signs as the phones whose badges are bound, without a key or with another one, and makes badges
 * under their udids. `told.ts` looks at what comes of it, and that the phones notice nothing.
 */
export async function attack({ book, clients }: World, dice: Dice, application: ApplicationPlan): Promise<void> {
  const applicationId = application.id;
  const phone = dice.pick(application.devices);
  if (!phone) return;
  const { udid } = phone;
  // Whoever logs in first gets the badge: only one that a phone was told of can be stolen.
  const told = book
    .attemptsOfApplication(applicationId)
    .filter(({ request }) => request.udid === udid && request.key !== null && request.key !== ATTACKERS_KEY)
    .filter((attempt) => grantedNumber(attempt) !== null);
  const known = dice.pick(told);
  const key = dice.chance(0.4) ? null : ATTACKERS_KEY;
  const what = dice.below(3);
  if (!known || what === 0) {
    const request = { applicationId, udid, userId: ATTACKERS_USER, token: null, metadata: null, key: null };
    await clients.call("badge", request);
  } else if (what === 1) {
    await clients.call("badge", { ...known.request, key });
  } else {
    const badgeNumber = dice.chance(0.5) ? grantedNumber(known) : null;
    await clients.call("sign", { applicationId, udid, base64: "c3RvbGVu", badgeNumber, key });
  }
}
