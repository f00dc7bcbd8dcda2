import { expect, it } from "vitest";
import { verifyWebhook, type WebhookEvent } from "../../src/client/index.ts";
import { runSweep } from "../badges/life-support.ts";
import { ahead, HOUR, MINUTE, moveClock, useStandingClock } from "../invitations/support/clock.ts";
import { useQuietLog } from "../invitations/support/log.ts";
import { readRows } from "../invitations/support/storage.ts";
import { createApplication } from "../support/application.ts";
import { SUBSCRIBABLE } from "../support/subscribable.ts";
import { device, server, signedAsService } from "./support.ts";

useQuietLog();
useStandingClock();

/** What a receiver does with each; the compiler checks that no kind is forgotten, and which data each has. */
function describeEvent(event: WebhookEvent): string {
  switch (event.event) {
    case "badge:created":
      return `${event.data.id} for ${event.data.userId}, instead of ${event.data.replacedBadgeId ?? "none"}`;
    case "badge:suspended":
    case "badge:resumed":
    case "badge:revoked":
    case "badge:expired":
    case "badge:replaced":
      return `${event.data.id} ${event.data.state}, change ${event.data.change}`;
    case "invitation:revoked":
    case "invitation:expired":
      return `${event.data.id} free, was until ${event.data.expiresAt}`;
  }
}

it("every event that the service sends is verified and typed by its name (contract section 18)", async () => {
  const application = await createApplication({
    webhookUrl: "https://hooks.example/badges",
    webhookHeldAt: 1,
    events: SUBSCRIBABLE.join(","),
  });
  const client = server(application);
  const phone = device(application, "phone");
  const { badgeId: first } = await phone.requestBadge({ userId: "alice", metadata: { os: "iOS" } });
  await client.suspendBadge(first);
  await client.resumeBadge(first);
  const visit = { expiresAt: ahead(MINUTE), udid: "desk" };
  const invitation = await client.createInvitation({ ...visit, badgeExpiresAt: ahead(HOUR) });
  const { badgeId: second } = await phone.requestBadge({ userId: "alice", invitationToken: invitation.id });
  const revoked = await client.createInvitation(visit);
  await client.revokeInvitation(revoked.id);
  const expired = await client.createInvitation(visit);
  moveClock(HOUR);
  await runSweep();
  await client.revokeBadge(second);

  const rows = (await readRows(application)).events;
  const told: string[] = [];
  for (const { id, payload } of rows) {
    const timestampSeconds = Math.floor(Date.now() / 1000);
    const webhook = { eventId: id, timestampSeconds, body: payload, secrets: [application.secret] };
    const result = await verifyWebhook({
      headers: await signedAsService(webhook),
      body: payload,
      secrets: application.secret,
    });
    if (!result.ok || !result.event) throw new Error(`not an event of the contract: ${payload}`);
    expect(result.event).toEqual(JSON.parse(payload));
    told.push(`${result.kind}: ${describeEvent(result.event)}`);
  }
  expect(told.toSorted()).toEqual(
    [
      `badge:created: ${first} for alice, instead of none`,
      `badge:suspended: ${first} suspended, change 2`,
      `badge:resumed: ${first} active, change 3`,
      `badge:replaced: ${first} replaced, change 4`,
      `badge:created: ${second} for alice, instead of ${first}`,
      `invitation:revoked: ${revoked.badgeId} free, was until ${revoked.expiresAt}`,
      `invitation:expired: ${expired.badgeId} free, was until ${expired.expiresAt}`,
      `badge:expired: ${second} expired, change 6`,
      `badge:revoked: ${second} revoked, change 7`,
    ].toSorted(),
  );
});
