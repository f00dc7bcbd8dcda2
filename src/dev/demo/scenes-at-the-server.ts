import { BadgeServiceError, type DeviceClient, type Invitation, type ListedBadge } from "../../client/index.ts";
import type { Cast } from "./cast.ts";
import { must } from "./narrator.ts";
import { shownJson } from "./text.ts";

const ONE_HOUR_MILLISECONDS = 3_600_000;
const RECEPTION = "reception-desk";

const inOneHour = (): Date => new Date(Date.now() + ONE_HOUR_MILLISECONDS);

export function pageBadges({ narrator, server }: Cast, expected: readonly string[]): Promise<void> {
  return narrator.step(
    "The application's server pages its badges",
    "Oldest first, each once; without a pagination-cursor it is the last page.",
    async () => {
      const listed: ListedBadge[] = [];
      for await (const page of server.listBadges({ perPage: 1 })) listed.push(...page.badges);
      must(listed.map(({ id }) => id).join() === expected.join(), `the badges are ${expected.join(" and ")}`);
    },
  );
}

/** @returns the visitor's badge number */
export async function inviteVisitor({ narrator, server, device }: Cast): Promise<string> {
  const invitation = await narrator.step(
    "The server invites a visitor",
    "The number goes to the building now, the token (id) to the visitor's app.",
    () => server.createInvitation({ expiresAt: inOneHour(), udid: RECEPTION }),
  );
  return narrator.step(
    "The visitor's phone claims the invitation",
    "201 with the number that was reserved. From here on the token is used up.",
    async () => {
      const request = { userId: "visitor", invitationToken: invitation.id };
      const badge = await device("visitors-phone").requestBadge(request);
      must(badge.created && badge.badgeId === invitation.badgeId, "a token gets the number that it reserved");
      return badge.badgeId;
    },
  );
}

export function hearOfBadges({ narrator, receiver }: Cast, badgeIds: readonly string[]): Promise<void> {
  return narrator.step(
    `${badgeIds.length} webhooks have arrived at the server`,
    "Each is signed with the application's secret, over exactly these bytes.",
    async () => {
      for (const { path, signature, body } of await receiver.until(badgeIds)) {
        narrator.received(`POST ${path}, Signature: ${signature}`);
        narrator.received(shownJson(body));
        narrator.sent("204, verified");
      }
    },
  );
}

/** @returns the invitation that has the last number, and the device that came too late */
export function runOutOfNumbers({ narrator, server, device }: Cast) {
  return narrator.step(
    "Another invitation takes the last number; Carol comes too late",
    "503 NUMBERS_EXHAUSTED: a reserved number goes to nobody else.",
    async () => {
      const invitation = await server.createInvitation({ expiresAt: inOneHour(), udid: RECEPTION });
      const latecomer = device("carols-phone");
      const refusal = await latecomer.requestBadge({ userId: "carol" }).catch((error: unknown) => error);
      const isExhausted = refusal instanceof BadgeServiceError && refusal.code === "NUMBERS_EXHAUSTED";
      must(isExhausted, "without a free number a badge is refused with NUMBERS_EXHAUSTED");
      return { invitation, latecomer };
    },
  );
}

/** @returns Carol's badge number */
export async function takeNumberBack(
  { narrator, server, receiver }: Cast,
  invitation: Invitation,
  latecomer: DeviceClient,
): Promise<string> {
  await narrator.step(
    "The visitor cancels: the server revokes the invitation",
    "Its token is worthless now, and its number is available again.",
    async () => {
      const revoked = await server.revokeInvitation(invitation.id);
      must(revoked.badgeId === invitation.badgeId, "the response names the number that comes back");
    },
  );
  return narrator.step(
    "Carol asks again, and gets the number that came back",
    "Its webhook came, too. Numbers that were issued never come back like this.",
    async () => {
      const badge = await latecomer.requestBadge({ userId: "carol" });
      must(badge.created && badge.badgeId === invitation.badgeId, `the free number is ${invitation.badgeId}`);
      await receiver.until([badge.badgeId]);
      return badge.badgeId;
    },
  );
}
