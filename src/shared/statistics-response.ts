import * as z from "zod";
import { applicationView } from "./application-responses.ts";
import { eventState } from "./event-responses.ts";
import { described, time } from "./responses.ts";

/** The schema of an application's statistics. */

const counted = (description: string) => z.int().meta({ description, examples: [7] });

const valueCounts = z.object({
  values: z
    .array(
      z.object({
        value: described(z.string().nullable(), "Null: the device did not send it.", "Android"),
        badges: counted("Issued badges with this value."),
      }),
    )
    .meta({ description: "The most frequent values." }),
  others: counted("Issued badges with another value."),
});

export const statistics = z.object({
  applicationId: applicationView.shape.applicationId,
  name: applicationView.shape.name,
  numbers: z
    .object({
      size: counted("Numbers in the range."),
      issued: counted("Numbers of issued badges that no invitation's badge has superseded."),
      reserved: counted("Numbers that pending invitations reserve."),
      retired: counted("Numbers of badges that an invitation's badge has superseded, including revoked ones."),
      coolingDown: counted("Numbers of ended invitations that cannot be issued yet, counted to at most 10,000."),
      left: counted("Numbers that can be issued."),
      used: counted("Numbers that cannot be issued."),
      usedPercent: described(z.number(), "Rounded down to a tenth.", 0.1),
    })
    .meta({ description: "The number range." }),
  badges: z
    .object({ deviceModel: valueCounts, os: valueCounts, osVersion: valueCounts, sdkVersion: valueCounts })
    .meta({ description: "Badges by metadata, of those that are sampled." }),
  sampled: counted("The newest badges, of which metadata is counted: 20,000 at most."),
  invitations: z
    .object({
      pending: counted("Can be claimed."),
      claimed: counted("Were claimed."),
      revoked: counted("Were revoked."),
      expired: counted("Expired."),
    })
    .meta({ description: "Invitations by state." }),
  badgesByState: z
    .object({
      active: counted("Are active: they open doors."),
      suspended: counted("Are suspended."),
      revoked: counted("Were revoked."),
      expired: counted("Have expired."),
      replaced: counted("Were replaced by an invitation's badge."),
    })
    .meta({ description: "Badges by state." }),
  badgesPerDay: z
    .array(
      z.object({
        day: described(z.iso.date(), "A day in UTC.", "2027-01-15"),
        badges: counted("Badges issued on that day."),
      }),
    )
    .meta({ description: "90 days, oldest first, today last." }),
  deliveries: z
    .array(
      z.object({
        state: eventState,
        outcome: described(z.string().nullable(), "How the last attempt ended; null: none was made.", "answered"),
        events: counted("Events."),
      }),
    )
    .meta({
      description:
        "Events by state and last outcome, most frequent first. Of each state at most 10,000 are counted: delivered and untried ones are those among the newest 10,000 events.",
    }),
  logins: z
    .object({
      withToken: counted("With a token that names the user."),
      withoutToken: counted("Without a user token."),
      withWrongToken: counted("With a user token that would be refused."),
    })
    .meta({
      description: "Logins of the last day, counted while user tokens are only observed and not required; otherwise 0.",
    }),
  asOf: described(time, "The moment of these figures.", "2027-01-15T08:00:00.500Z"),
});
