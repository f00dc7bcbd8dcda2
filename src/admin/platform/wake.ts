import { existsSync, readFileSync } from "node:fs";
import { homeOf } from "../../shared/homes.ts";
import { HOME_RECIPIENT, type Recipient, type WakeMessage } from "../../shared/script-commands.ts";
import type { Account } from "./cloudflare.ts";
import { isLocked } from "./file-lock.ts";
import { tickLocally } from "./local-tick.ts";
import type { LocalState } from "./paths.ts";
import { queueSender } from "./queue.ts";
import type { Target } from "./target.ts";

/**
 * Tells the service that a recipient has waiting script commands, or an application waiting events. If this fails or the
 * message is lost, the service finds them within a minute.
 *
 * @throws UserError
 */
export type Wake = (recipient: Recipient) => Promise<void>;

/** Makes the service that runs on this data tick, if there is one. It does not wait for the tick. */
export const localWake =
  (state: LocalState): Wake =>
  async () => {
    const origin = findLocalOrigin(state);
    if (origin !== null) void tickLocally(origin).catch(() => {});
  };

/** The address of the service that runs on this data; null if there is none. */
export function findLocalOrigin({ serviceLock, serviceOrigin }: LocalState): string | null {
  if (!existsSync(serviceOrigin) || !isLocked(serviceLock)) return null;
  return readFileSync(serviceOrigin, "utf8").trim() || null;
}

/** Sends a message to the queue of the recipient's home. */
export function deployedWake(account: Account, target: Pick<Target, "producers">): Wake {
  const send = queueSender(account, target);
  return async (recipient) => {
    const message: WakeMessage = { wake: recipient };
    await send(recipient === HOME_RECIPIENT ? 1 : homeOf(recipient), message);
  };
}
