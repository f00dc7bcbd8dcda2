import { setTimeout } from "node:timers/promises";
import { type DeviceClient, isRefusedBadge, type RefusedBadgeCode } from "../../client/index.ts";
import type { Cast } from "./cast.ts";
import { must } from "./narrator.ts";
import { newPhoneKey, type Presentation, presentedAt } from "./presentation.ts";

const VISIT_MILLISECONDS = 5000;
const DOOR_CHALLENGE = "7c9e6679";
/** A building's doors poll every 30 s, which would be too slow to watch. */
const REFRESH_MILLISECONDS = 2000;
/** A door that polls has a change within two minutes (contract section 14). */
const MAX_WAIT_MILLISECONDS = 120_000;

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

/** @returns what the phone showed at the door before */
export function revoke({ narrator, server, door }: Cast, phone: DeviceClient, bob: string): Promise<Presentation> {
  return narrator.step(
    "Bob leaves the company: his badge is revoked",
    "403, also for a new login. The number is never issued again.",
    async () => {
      const shown = await presentedAt(DOOR_CHALLENGE, bob, await newPhoneKey());
      const presentation = { ...shown, signature: await phone.sign(shown.clientSignature) };
      narrator.note("Until now the door opens:");
      narrator.received(await door.check(presentation));
      must((await door.check(presentation)).startsWith("open"), "a door opens for an active badge");
      await server.revokeBadge(bob);
      await mustBeRefused(phone.requestBadge({ userId: "bob" }), "REVOKED_BADGE");
      return presentation;
    },
  );
}

/** @param revokedAt by `performance.now()`, a moment at which the badge had been revoked */
export function doorLearns({ narrator, door }: Cast, bobs: Presentation, revokedAt: number): Promise<void> {
  return narrator.step(
    "The door learns from its status list that Bob's badge was revoked",
    "A list is at most 30 s old when it is sent. A door that polls every 30 s knows within two minutes.",
    async () => {
      narrator.note(`The door polls its list every ${REFRESH_MILLISECONDS / 1000} seconds:`);
      const waited = () => performance.now() - revokedAt;
      let result = await door.check(bobs);
      while (result.startsWith("open") && waited() < MAX_WAIT_MILLISECONDS) {
        await setTimeout(REFRESH_MILLISECONDS);
        await door.refresh({ isShown: false });
        result = await door.check(bobs);
      }
      narrator.received(`${result}, ${Math.round(waited() / 1000)} seconds after the revocation`);
      must(result === "closed: revoked", "a door knows of a revoked badge within two minutes");
    },
  );
}

export function doorWithoutNetwork({ narrator, door }: Cast, alices: Presentation, bobs: Presentation): Promise<void> {
  return narrator.step(
    "The door loses the network, and then its power for a moment",
    "Its file keeps what it downloaded. The list expires after a day.",
    async () => {
      door.unplug();
      must(!(await door.refresh()), "there is no network");
      door.restart();
      for (const presentation of [alices, bobs]) {
        narrator.sent(`DoorControl.check(signature for badge ${presentation.badgeId})`);
        narrator.received(await door.check(presentation));
      }
      must((await door.check(alices)).startsWith("open"), "a door goes on without the network");
      must((await door.check(bobs)) === "closed: revoked", "a door does not forget a revoked badge");
    },
  );
}

/** @returns the number of Bob's second badge */
export function visitForSeconds({ narrator, server, door }: Cast, phone: DeviceClient, bob: string): Promise<string> {
  return narrator.step(
    `Bob visits: an invitation to a badge that ends in ${VISIT_MILLISECONDS / 1000} seconds`,
    "It ends by itself. A signature expires with its badge, so the door knows, too.",
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
      narrator.sent("DoorControl.check(signature of before)");
      const result = await door.check({ ...presentation, signature });
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
