import { setTimeout } from "node:timers/promises";
import { type DeviceClient, isRefusedBadge, type RefusedBadgeCode } from "../../client/index.ts";
import type { Cast } from "./cast.ts";
import { checkAtDoor, type Door, newPhoneKey, presentedAt } from "./door.ts";
import { must } from "./narrator.ts";

const VISIT_MILLISECONDS = 5000;
const DOOR_CHALLENGE = "7c9e6679";

export function suspendAndResume({ narrator, server }: Cast, phone: DeviceClient, bob: string): Promise<void> {
  return narrator.step(
    "Bob mislays the phone: his badge is suspended, and resumed",
    "403 while it is suspended: no signature, so no door opens. Then 200 again.",
    async () => {
      await server.suspendBadge(bob);
      await mustBeRefused(phone.sign("Ym9i"), "SUSPENDED_BADGE");
      await server.resumeBadge(bob);
      await phone.sign("Ym9i");
    },
  );
}

export function revoke({ narrator, server }: Cast, phone: DeviceClient, bob: string): Promise<void> {
  return narrator.step(
    "Bob leaves the company: his badge is revoked",
    "403, also for a new login. The number is never issued again.",
    async () => {
      await server.revokeBadge(bob);
      await mustBeRefused(phone.requestBadge({ userId: "bob" }), "REVOKED_BADGE");
    },
  );
}

/** @returns the number of Bob's second badge */
export function visitForSeconds(
  { narrator, server }: Cast,
  phone: DeviceClient,
  bob: string,
  door: Door,
): Promise<string> {
  return narrator.step(
    `Bob visits: an invitation to a badge that ends in ${VISIT_MILLISECONDS / 1000} seconds`,
    "Nobody has to end it. A signature ends with its badge, so the door knows, too.",
    async () => {
      const end = new Date(Date.now() + VISIT_MILLISECONDS);
      const { id } = await server.createInvitation({ expiresAt: end, badgeExpiresAt: end, udid: "reception-desk" });
      const badge = await phone.requestBadge({ userId: "bob", invitationToken: id });
      must(badge.created && badge.badgeId !== bob, "an invitation gives the user device a new badge");
      const presentation = await presentedAt(DOOR_CHALLENGE, badge.badgeId, await newPhoneKey());
      const signature = await phone.sign(presentation.clientSignature);
      await setTimeout(end.getTime() - Date.now() + 1);
      narrator.note(`${VISIT_MILLISECONDS / 1000} seconds later:`);
      await mustBeRefused(phone.sign("Ym9i"), "EXPIRED_BADGE");
      narrator.sent("verifyBadgeSignature(signature of before, { keys, … }) at the door");
      const result = await checkAtDoor(door, { ...presentation, signature });
      narrator.received(result);
      must(result.startsWith("closed"), "a signature ends with its badge");
      return badge.badgeId;
    },
  );
}

async function mustBeRefused(call: Promise<unknown>, code: RefusedBadgeCode): Promise<void> {
  const error = await call.catch((thrown: unknown) => thrown);
  must(isRefusedBadge(error) && error.code === code, `the phone is refused with ${code}`);
}
