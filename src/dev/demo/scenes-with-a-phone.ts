import { randomBytes } from "node:crypto";
import { BadgeServiceError, type DeviceClient } from "../../client/index.ts";
import type { Cast } from "./cast.ts";
import { DemoFailure, must } from "./narrator.ts";
import { newPhoneKey, type Presentation, presentedAt } from "./presentation.ts";

const METADATA = { deviceModel: "Pixel 9", os: "Android", osVersion: "16", sdkVersion: "1.0.0" };

/** A door downloads the lists that signatures name. Their URLs begin with the service's PUBLIC_URL. */
const OTHER_ADDRESS = "the service has another address: give --url the one that npm start printed";

const newChallenge = (): string => randomBytes(4).toString("hex");

/** @returns Alice's badge number */
export function getBadge({ narrator, application }: Cast, phone: DeviceClient): Promise<string> {
  return narrator.step(
    "Alice's phone asks for her badge",
    "201 means that it is new: a number from the range, in an unpredictable order.",
    async () => {
      const badge = await phone.requestBadge({ userId: "alice", metadata: METADATA }).catch(explainUnknown);
      must(badge.created, "the first request for a user device makes a badge");
      const number = Number(badge.badgeId);
      const { firstNumber, lastNumber } = application;
      must(number >= firstNumber && number <= lastNumber, "a badge number is in the application's range");
      return badge.badgeId;
    },
  );
}

/** The script has just created the application, so a service that does not know it has other data. */
function explainUnknown(error: unknown): never {
  const isUnknown = error instanceof BadgeServiceError && error.code === "INVALID_APPLICATIONID";
  if (!isUnknown) throw error;
  throw new DemoFailure("the service has other data than this script: start both with the same BADGE_STATE_DIR");
}

export function askAgain({ narrator }: Cast, phone: DeviceClient, alice: string): Promise<void> {
  return narrator.step(
    "The phone asks again, say after a lost connection",
    "200 and the same number, always: the request can be repeated safely.",
    async () => {
      const badge = await phone.requestBadge({ userId: "alice" });
      must(!badge.created && badge.badgeId === alice, "a user device keeps its number");
    },
  );
}

/** @returns what the phone shows at the door */
export function getSignature({ narrator }: Cast, phone: DeviceClient, alice: string): Promise<Presentation> {
  return narrator.step(
    "At a door, the phone signs, and asks the service to attest it",
    "A JWT: the service attests which badge presented which signature, and when.",
    async () => {
      const key = await newPhoneKey();
      const challenge = newChallenge();
      narrator.note(`The door shows ${challenge}, which the phone signs with its own key.`);
      const presentation = await presentedAt(challenge, alice, key);
      const signature = await phone.sign(presentation.clientSignature);
      return { ...presentation, signature };
    },
  );
}

export function openDoor({ narrator, door }: Cast, presentation: Presentation): Promise<void> {
  return narrator.step(
    "The door checks both signatures, offline",
    "All it needs is the keys, and the list of badges that have ended.",
    async () => {
      must(await door.refresh(), "the key set and the first status list need no credentials");
      const check = async (challenge: string) => {
        narrator.sent(`DoorControl.check(signature) at the door showing ${challenge}`);
        const result = await door.check({ ...presentation, challenge });
        narrator.received(result);
        return result;
      };
      const { badgeId, challenge } = presentation;
      const result = await check(challenge);
      if (result === "closed: status-unknown") throw new DemoFailure(OTHER_ADDRESS);
      must(result === `open for badge ${badgeId}`, "a signature verifies with the key set");
      must((await check(newChallenge())).startsWith("closed"), "a signature is for one challenge");
    },
  );
}

/** @returns Bob's badge number */
export function shareThePhone({ narrator }: Cast, phone: DeviceClient, alice: string): Promise<string> {
  return narrator.step(
    "Bob logs in on the same phone",
    "Another user, another number: a badge never changes hands by a login.",
    async () => {
      const badge = await phone.requestBadge({ userId: "bob", metadata: METADATA });
      must(badge.created && badge.badgeId !== alice, "another user on the same device gets another number");
      return badge.badgeId;
    },
  );
}
