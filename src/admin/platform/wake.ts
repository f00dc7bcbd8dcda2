import { existsSync, readFileSync } from "node:fs";
import * as z from "zod";
import { homeOf, queueBindingOf } from "../../shared/homes.ts";
import { HOME_RECIPIENT, type Recipient, type WakeMessage } from "../../shared/script-commands.ts";
import { UserError } from "../command-line/errors.ts";
import type { Account } from "./cloudflare.ts";
import { isLocked } from "./file-lock.ts";
import { tickLocally } from "./local-tick.ts";
import type { LocalState } from "./paths.ts";
import type { Target } from "./target.ts";

/**
 * Tells the service that commands of the script wait for a recipient (contract section 21), or an application's events. If that
 * fails, or the message is lost, the service finds them within a minute.
 *
 * @throws UserError
 */
export type Wake = (recipient: Recipient) => Promise<void>;

/** Runs the cron trigger of the service that runs on this data, if one does. It does not wait for the tick. */
export const localWake =
  (state: LocalState): Wake =>
  async () => {
    const origin = findLocalOrigin(state);
    if (origin !== null) void tickLocally(origin).catch(() => {});
  };

/** Where the service is reached that runs on this data; null: none does. */
export function findLocalOrigin({ serviceLock, serviceOrigin }: LocalState): string | null {
  if (!existsSync(serviceOrigin) || !isLocked(serviceLock)) return null;
  return readFileSync(serviceOrigin, "utf8").trim() || null;
}

const queues = z.array(z.object({ queue_id: z.string(), queue_name: z.string() }));

/** Sends a message to the queue of the recipient's home (Cloudflare API: Queues, Push Message). */
export function deployedWake(account: Account, { producers }: Pick<Target, "producers">): Wake {
  const known = new Map<string, string>();
  const findQueue = async (name: string): Promise<string> => {
    const found = known.get(name) ?? (await lookUp(account, name));
    known.set(name, found);
    return found;
  };
  return async (recipient) => {
    const home = recipient === HOME_RECIPIENT ? 1 : homeOf(recipient);
    const [own, first] = [queueBindingOf(home), queueBindingOf(1)];
    const producer =
      producers.find(({ binding }) => binding === own) ?? producers.find(({ binding }) => binding === first);
    if (producer === undefined) throw new UserError(`wrangler.toml has no queue with binding = "${first}": add it.`);
    const message: WakeMessage = { wake: recipient };
    const path = `/queues/${await findQueue(producer.queue)}/messages`;
    await account.call(z.unknown(), { method: "POST", path, body: { body: message, content_type: "json" } });
  };
}

/** The ID of a queue. */
async function lookUp(account: Account, name: string): Promise<string> {
  const found = await account.call(queues, { path: `/queues?name=${encodeURIComponent(name)}` });
  const queue = found.find(({ queue_name: each }) => each === name);
  if (queue === undefined) throw new UserError(`There is no queue ${name}.`);
  return queue.queue_id;
}
