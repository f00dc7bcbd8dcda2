import { assemble } from "./cast.ts";
import { liveThroughADay } from "./day.ts";
import type { Door } from "./door.ts";
import type { Narrator } from "./narrator.ts";
import { hearOfBadges, inviteVisitor, pageBadges, runOutOfNumbers, takeNumberBack } from "./scenes-at-the-server.ts";
import { doorLearns, doorWithoutNetwork, revoke, suspendAndResume, visitForSeconds } from "./scenes-of-a-life.ts";
import { onlyAlice } from "./scenes-with-a-login.ts";
import { askAgain, getBadge, getSignature, openDoor, shareThePhone } from "./scenes-with-a-phone.ts";
import { WebhookReceiver } from "./webhook-receiver.ts";

/** Tells the story, from a new application to a number that is issued again. @throws DemoFailure */
export async function tellStory(narrator: Narrator, origin: string): Promise<void> {
  narrator.say(`The story of a badge, at ${origin} (> sent, < came back)`);
  const receiver = new WebhookReceiver();
  let door: Door | undefined;
  try {
    const cast = await assemble(narrator, origin, receiver);
    door = cast.door;
    const phone = cast.device("phone");
    const alice = await getBadge(cast, phone);
    await askAgain(cast, phone, alice);
    const presentation = await getSignature(cast, phone, alice);
    await openDoor(cast, presentation);
    const bob = await shareThePhone(cast, phone, alice);
    await pageBadges(cast, [alice, bob]);
    await suspendAndResume(cast, phone, bob);
    const bobs = await revoke(cast, phone, bob);
    const revokedAt = performance.now();
    const visit = await visitForSeconds(cast, phone, bob);
    await doorLearns(cast, bobs, revokedAt);
    await doorWithoutNetwork(cast, presentation, bobs);
    const visitor = await inviteVisitor(cast);
    await hearOfBadges(cast, [alice, bob, visit, visitor]);
    const { invitation, latecomer } = await runOutOfNumbers(cast);
    const carol = await takeNumberBack(cast, invitation, latecomer);
    await onlyAlice(cast);
    const day = await liveThroughADay(narrator, origin);
    narrator.say("");
    narrator.say(
      `Done: ${new Set([alice, bob, visit, visitor, carol]).size} badges have a number each, one of them freed and issued ` +
        "again. A door opened offline, and stayed closed for ended badges, also without the network. Every webhook was " +
        "genuine. A stranger got nothing in Alice's name. Everything is as the contract says.",
    );
    narrator.say("");
    narrator.say(`Now see it in a browser: ${origin}/console`);
    narrator.say(`  Application ID  ${day.applicationId}`);
    narrator.say(`  Secret          ${day.applicationSecret}`);
  } finally {
    receiver.close();
    door?.remove();
  }
}
