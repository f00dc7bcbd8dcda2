import { BadgeServiceError, type DeviceClient, type Invitation, type ListedBadge } from "../../client/index.ts";
import type { Cast } from "./cast.ts";
import { must } from "./narrator.ts";
import { shownJson, withoutSecrets } from "./text.ts";

const ONE_HOUR_MILLISECONDS = 3_600_000;
const RECEPTION = "reception-desk";

const inOneHour = (): Date => new Date(Date.now() + ONE_HOUR_MILLISECONDS);

export function pageBadges({ narrator, server }: Cast, expected: readonly string[]): Promise<void> {
  return narrator.step(
    "The application's server pages its badges",
    "Oldest first, each exactly once. A page without a pagination-cursor is the last.",
    async () => {
      const listed: ListedBadge[] = [];
      for await (const page of server.listBadges({ perPage: 1 })) listed.push(...page.badges);
      must(listed.map(({ id }) => id).join() === expected.join(), `the badges are ${expected.join(" and ")}`);
    },
  );
}

/** @returns the visitor's badge number */
export async function inviteVisitor({ narrator, server, device, door }: Cast): Promise<string> {
  const invitation = await narrator.step(
    "The server invites a visitor, and sends a link",
    "The number goes to the building, and the link to the visitor, who needs no app.",
    async () => {
      const invited = await server.createInvitation({ expiresAt: inOneHour(), udid: RECEPTION, name: "Walt Visitor" });
      const { invitationLink } = await server.getApplication();
      must(invitationLink !== undefined, "where PUBLIC_URL is set, invitations have a link");
      narrator.note(withoutSecrets(invitationLink.replace("{token}", invited.id)));
      return invited;
    },
  );
  const phone = device("visitors-phone");
  await narrator.step(
    "The visitor opens the link, which says who is expected, and where",
    "That consumes nothing, so a messenger's preview of the link does no harm.",
    async () => {
      const { state, name } = await phone.describeInvitation(invitation.id);
      must(state === "pending" && name === "Walt Visitor", "the token is enough to have an invitation described");
    },
  );
  await narrator.step(
    'The visitor taps "Show my pass": the page claims the invitation',
    "201 with the reserved number. The token is used up now.",
    async () => {
      const badge = await phone.requestBadge({ userId: "visitor", invitationToken: invitation.id });
      must(badge.created && badge.badgeId === invitation.badgeId, "a token gets the number that it reserved");
    },
  );
  await narrator.step(
    "A door with a scanner reads the code on the phone's screen",
    "The page shows a new code every 30 seconds; a photograph is soon too old.",
    async () => {
      const code = await phone.sign(new TextEncoder().encode("pass"));
      const scan = async (what: string, laterSeconds: number) => {
        narrator.sent(`DoorControl.check(${what}), at most ${SCANNED_SECONDS} seconds old`);
        const result = await door.scan(code, SCANNED_SECONDS, laterSeconds);
        narrator.received(result);
        return result;
      };
      must((await scan("the code", 0)).startsWith("open"), "a code is a badge signature");
      const photograph = await scan("its photograph, a minute later", SCANNED_SECONDS + 1);
      must(photograph === "closed: too-old", "a photograph does not open the door a minute later");
    },
  );
  return invitation.badgeId;
}

/** `--max-age` of a door with a scanner. */
const SCANNED_SECONDS = 60;

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
    "Its webhook came, too. A number that was issued never comes back like this.",
    async () => {
      const badge = await latecomer.requestBadge({ userId: "carol" });
      must(badge.created && badge.badgeId === invitation.badgeId, `the free number is ${invitation.badgeId}`);
      await receiver.until([badge.badgeId]);
      return badge.badgeId;
    },
  );
}
