import type { Dice } from "../../dice.ts";
import type { ApplicationPlan } from "../plan.ts";
import type { World } from "../world.ts";
import { NEWEST_TOKENS } from "./device.ts";

const ATTACKERS_USER = "mallory";
const ATTACKERS_KEY = "key of mallory";

/** Bookmarks that nobody was given: of a time to come, of another home, malformed. */
const FORGED_BOOKMARKS = [
  `1.ffffffff-ffffffff-ffffffff-${"f".repeat(32)}`,
  `2.ffffffff-ffffffff-ffffffff-${"f".repeat(32)}`,
  `2.00000001-00000000-00000000-${"0".repeat(32)}`,
  "1.first-unconstrained",
] as const;

/**
 * Somebody who knows every udid, user ID, invitation token, badge number, signature and bookmark of an application, but holds
 * no phone's key and has no user's token but his own (contract sections 15, 16 and 22): logs in and signs as the phones, without a key or with another one, with old
 * and forged bookmarks, and makes badges under their udids. `told.ts` and `bindings.ts` look at what comes of it, and that
 * the phones notice nothing.
 */
export async function attack({ book, clients }: World, dice: Dice, application: ApplicationPlan): Promise<void> {
  const applicationId = application.id;
  const phone = dice.pick(application.devices);
  if (!phone) return;
  const { udid } = phone;
  const told = book.granted("badge", { applicationId });
  const replayed = dice.chance(0.8) ? dice.pick(told)?.outcome.bookmark : undefined;
  const bookmark = dice.chance(0.2) ? dice.oneOf(FORGED_BOOKMARKS) : (replayed ?? null);
  const ofPhone = told.filter(({ request }) => request.udid === udid && request.key !== ATTACKERS_KEY);
  const known = dice.chance(0.5) ? ofPhone.at(-1) : dice.pick(ofPhone);
  const key = dice.chance(0.5) ? null : ATTACKERS_KEY;
  const what = dice.below(5);
  if (!known || what === 0) {
    const badge = { userId: ATTACKERS_USER, user: ATTACKERS_USER, token: null, metadata: null };
    await clients.call("badge", { applicationId, udid, ...badge, key: null, bookmark });
  } else if (what < 3) {
    const token = dice.chance(0.5) ? (dice.pick(book.tokens.slice(-NEWEST_TOKENS)) ?? null) : null;
    const user = dice.chance(0.5) ? ATTACKERS_USER : null;
    await clients.call("badge", { ...known.request, user, token, metadata: null, key, bookmark });
  } else {
    const badgeNumber = dice.chance(0.5) ? known.outcome.granted.number : null;
    await clients.call("sign", { applicationId, udid, base64: "c3RvbGVu", badgeNumber, key, bookmark });
  }
}
