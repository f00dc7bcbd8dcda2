import { assemble } from "./cast.ts";
import type { Narrator } from "./narrator.ts";
import { hearOfBadges, inviteVisitor, pageBadges, runOutOfNumbers, takeNumberBack } from "./scenes-at-the-server.ts";
import { askAgain, getBadge, getSignature, openDoor, shareThePhone } from "./scenes-with-a-phone.ts";
import { WebhookReceiver } from "./webhook-receiver.ts";

/** Tells the story, from a new application to a number that comes back. @throws DemoFailure */
export async function tellStory(narrator: Narrator, origin: string): Promise<void> {
  narrator.say(`The story of a badge, at ${origin} (> sent, < came back)`);
  const receiver = new WebhookReceiver();
  try {
    const cast = await assemble(narrator, origin, receiver);
    const phone = cast.device("phone");
    const alice = await getBadge(cast, phone);
    await askAgain(cast, phone, alice);
    const presentation = await getSignature(cast, phone, alice);
    await openDoor(cast, presentation);
    const bob = await shareThePhone(cast, phone, alice);
    await pageBadges(cast, [alice, bob]);
    const visitor = await inviteVisitor(cast);
    await hearOfBadges(cast, [alice, bob, visitor]);
    const { invitation, latecomer } = await runOutOfNumbers(cast);
    const carol = await takeNumberBack(cast, invitation, latecomer);
    narrator.say("");
    narrator.say(
      `Done: ${new Set([alice, bob, visitor, carol]).size} badges, each with a number of its own, one of them taken ` +
        "back and given out again; a door opened offline; every webhook genuine. All as the contract says.",
    );
  } finally {
    receiver.close();
  }
}
