import { createServer, type Server } from "node:http";
import { text } from "node:stream/consumers";
import { setTimeout } from "node:timers/promises";
import { findApplication } from "../../admin/application/record.ts";
import { updateApplication } from "../../admin/application/update.ts";
import { openHomes } from "../../admin/command-line/session.ts";
import { localState } from "../../admin/platform/paths.ts";
import { plainHomeSubmitter } from "../../admin/script-command/submit.ts";
import { ServerClient } from "../../client/index.ts";
import type { ApplicationId } from "../../shared/identifiers.ts";
import { DAY_MILLISECONDS, HOUR_MILLISECONDS } from "../../shared/time.ts";
import { ensureDemoApplication } from "../demo-application.ts";
import { newDevice } from "./cast.ts";
import { listenSomewhere } from "./listen.ts";
import { DemoFailure, must, type Narrator } from "./narrator.ts";

/** A day at a company, to see in the console: badges on several systems, visitors, a webhook that failed. */

const DELIVERY_LIMIT_MILLISECONDS = 30_000;
const DELIVERY_POLL_MILLISECONDS = 250;

/** How many people get a badge. */
const BADGES = 50;

/** The person whose webhook the receiver cannot store. */
const UNLUCKY = "user-04";

/** Model, system, version and SDK, the most frequent first. */
const PHONES = [
  ["iPhone17,1", "iOS", "26.1", "2.4.0"],
  ["SM-S931B", "Android", "16", "2.4.0"],
  ["iPhone15,4", "iOS", "26.1", "2.4.0"],
  ["Pixel 9", "Android", "16", "2.3.1"],
  ["iPhone14,5", "iOS", "18.7", "2.3.1"],
  ["SM-A546B", "Android", "15", "2.2.0"],
] as const;

/** The credentials for the console: those of the application that `npm start` prints. */
export interface Day {
  applicationId: ApplicationId;
  applicationSecret: string;
}

/** @throws DemoFailure */
export function liveThroughADay(narrator: Narrator, origin: string): Promise<Day> {
  return narrator.step(
    "A day passes at a company: phones, visitors, a webhook that fails",
    "This is the demo application that npm start prints: its people see this at /console.",
    async () => {
      const receiver = startReceiver();
      try {
        return await live(narrator, origin, receiver);
      } finally {
        receiver.closeAllConnections();
        receiver.close();
      }
    },
  );
}

/** The company's server, whose disk is too full for one of the webhooks. */
function startReceiver(): Server {
  return createServer(async (request, response) => {
    // The service may be stopped while it sends.
    const body = await text(request).catch(() => "");
    const isUnlucky = body.includes(`"${UNLUCKY}"`);
    response.writeHead(isUnlucky ? 500 : 204).end(isUnlucky ? "could not write: no space left on device" : undefined);
  });
}

async function live(narrator: Narrator, origin: string, receiver: Server): Promise<Day> {
  const { applicationId, applicationSecret, isDisabled } = await ensureDemoApplication(localState());
  if (applicationSecret === null || isDisabled) {
    throw new DemoFailure("the demo application's secret was changed, or it is disabled: npm start says what to do");
  }
  const common = { baseUrl: origin, applicationId };
  const server = new ServerClient({ ...common, applicationSecret });
  const stopWebhooks = await sendWebhooks(applicationId, receiver);
  try {
    const numbers = await Promise.all(Array.from({ length: BADGES }, (_, place) => issueBadge(common, place)));
    await endSome(server, numbers);
    await inviteVisitors(server, common);
    await untilTried(server, numbers.length);
  } finally {
    await stopWebhooks();
  }
  narrator.note(`${BADGES} badges, some of them suspended or revoked; three visitors; one badge that ends soon.`);
  return { applicationId, applicationSecret };
}

/** @returns a function that sets the URL back, because the receiver ends with the story */
async function sendWebhooks(applicationId: ApplicationId, receiver: Server): Promise<() => Promise<void>> {
  const webhookUrl = `${await listenSomewhere(receiver)}/badges`;
  const opened = await openHomes(undefined);
  const set = (url: string | null) =>
    updateApplication(opened.homes, plainHomeSubmitter(opened), applicationId, { webhookUrl: url });
  const { webhookUrl: before } = await findApplication(opened.homes.databaseFor(applicationId), applicationId);
  await set(webhookUrl);
  return async () => {
    // A story that was cut off has left the URL of its receiver.
    await set(before !== null && /^http:\/\/127\.0\.0\.1:\d+\/badges$/.test(before) ? null : before);
    await opened.close();
  };
}

interface Common {
  baseUrl: string;
  applicationId: string;
}

/** @param place the number of the person in the company */
async function issueBadge(common: Common, place: number): Promise<string> {
  // Spread evenly by the golden ratio, then bent so that the first phones are the most frequent.
  const kind = Math.floor(PHONES.length * ((place * 0.618_034) % 1) ** 1.6);
  const [deviceModel, os, osVersion, sdkVersion] = PHONES[kind] ?? PHONES[0];
  const { badgeId } = await newDevice(common, "phone").requestBadge({
    userId: `user-${String(place + 1).padStart(2, "0")}`,
    metadata: { deviceModel, os, osVersion, sdkVersion },
  });
  return badgeId;
}

async function endSome(server: ServerClient, numbers: readonly string[]): Promise<void> {
  const [, mislaid, , left, , contractor] = numbers;
  must(mislaid !== undefined && left !== undefined && contractor !== undefined, "every phone gets a number");
  await server.suspendBadge(mislaid);
  await server.revokeBadge(left);
  // This gives the console something that needs attention.
  await server.setBadgeEnd(contractor, new Date(Date.now() + 3 * DAY_MILLISECONDS));
}

async function inviteVisitors(server: ServerClient, common: Common): Promise<void> {
  /** @param hours from now until the visit begins; it takes two */
  const invite = (name: string, hours: number) => {
    const badgeExpiresAt = new Date(Date.now() + (hours + 2) * HOUR_MILLISECONDS);
    const badgeStartsAt = new Date(Date.now() + hours * HOUR_MILLISECONDS);
    return server.createInvitation({
      udid: "reception",
      name,
      expiresAt: badgeExpiresAt,
      badgeStartsAt,
      badgeExpiresAt,
    });
  };
  const [came, cancelled] = [await invite("Ann Lee", 0), await invite("Bob Ray", 1), await invite("Cleo Diaz", 24)];
  await newDevice(common, "visitor").requestBadge({ userId: "visitor", invitationToken: came.id });
  await server.revokeInvitation(cancelled.id);
}

/** Waits until every webhook was sent at least once. */
async function untilTried(server: ServerClient, least: number): Promise<void> {
  const deadline = Date.now() + DELIVERY_LIMIT_MILLISECONDS;
  for (;;) {
    let tried = 0;
    let waiting = 0;
    for await (const { attempts } of server.listEvents({ perPage: 1000 }).events()) {
      if (attempts > 0) tried += 1;
      else waiting += 1;
    }
    if (waiting === 0 && tried >= least) return;
    if (Date.now() > deadline) throw new DemoFailure(`${waiting} webhooks were not sent in half a minute`);
    await setTimeout(DELIVERY_POLL_MILLISECONDS);
  }
}
