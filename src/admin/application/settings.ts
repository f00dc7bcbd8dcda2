import type { Command } from "commander";
import type { SubscribableEvent } from "../../shared/events.ts";
import type { application } from "../../shared/schema.ts";
import { checkedWebhookUrl } from "../command-line/arguments.ts";
import { checkedInvitationLink } from "./invitation-link.ts";
import type { BindUntil } from "./proof-options.ts";
import { checkedStatusList } from "./status-list.ts";
import { readUserOptions, type UserOptions } from "./user-options.ts";

/** The options of `application create` and `application update`. False: the option with `--no-`. */
export interface SettingOptions extends UserOptions {
  webhookUrl?: string | false;
  events?: SubscribableEvent[];
  invitationLink?: string | false;
  requireSecret?: boolean;
  reuseAfter?: number;
  /** 0: none. */
  signatureLifetime?: number;
  statusList?: boolean;
  statusLifetime?: number;
  requireProof?: boolean;
  bindUntil?: BindUntil;
  newBadgesPerHour?: number | false;
}

/** What the columns of src/shared/schema.ts are to be; undefined: their default, or as they are. */
export type Settings = Partial<
  Pick<
    typeof application.$inferInsert,
    | "webhookUrl"
    | "events"
    | "invitationLink"
    | "requireSecret"
    | "reuseAfterSeconds"
    | "signatureLifetimeSeconds"
    | "statusList"
    | "statusLifetimeSeconds"
    | "requireProof"
    | "bindUntil"
    | "newBadgesPerHour"
    | "userIssuer"
    | "userAudience"
    | "userClaim"
    | "userObserve"
  >
>;

/** @throws UserError for a value that the service could not use */
export async function readSettings(options: SettingOptions, command: Command): Promise<Settings> {
  return {
    webhookUrl: checkedWebhookUrl(options.webhookUrl, command),
    events: options.events?.join(),
    invitationLink: checkedInvitationLink(options.invitationLink),
    requireSecret: options.requireSecret,
    reuseAfterSeconds: options.reuseAfter,
    signatureLifetimeSeconds: options.signatureLifetime === 0 ? null : options.signatureLifetime,
    statusList: checkedStatusList(options.statusList, command),
    statusLifetimeSeconds: options.statusLifetime,
    requireProof: options.requireProof,
    bindUntil: options.bindUntil?.bindUntil,
    newBadgesPerHour: options.newBadgesPerHour === false ? null : options.newBadgesPerHour,
    ...(await readUserOptions(options, command)),
  };
}
