import * as z from "zod";
import { queueBindingOf } from "../../shared/homes.ts";
import { UserError } from "../command-line/errors.ts";
import type { Account } from "./cloudflare.ts";
import type { Target } from "./target.ts";

/**
 * Puts a message into a home's queue, or into home 1's if it has none of its own.
 *
 * @throws UserError when there is no such queue
 */
export type SendToHome = (home: number, message: object) => Promise<void>;

const queues = z.array(z.object({ queue_id: z.string(), queue_name: z.string() }));

/** Uses the platform's API (Queues: Push Message). It looks up each queue once. */
export function queueSender(account: Account, { producers }: Pick<Target, "producers">): SendToHome {
  const known = new Map<string, string>();
  const idOf = async (name: string): Promise<string> => {
    const id = known.get(name) ?? (await lookUp(account, name));
    known.set(name, id);
    return id;
  };
  return async (home, message) => {
    const [own, first] = [queueBindingOf(home), queueBindingOf(1)];
    const producer =
      producers.find(({ binding }) => binding === own) ?? producers.find(({ binding }) => binding === first);
    if (producer === undefined) throw new UserError(`wrangler.toml has no queue with binding = "${first}": add it.`);
    const path = `/queues/${await idOf(producer.queue)}/messages`;
    await account.call(z.unknown(), { method: "POST", path, body: { body: message, content_type: "json" } });
  };
}

async function lookUp(account: Account, name: string): Promise<string> {
  const found = await account.call(queues, { path: `/queues?name=${encodeURIComponent(name)}` });
  const queue = found.find(({ queue_name: each }) => each === name);
  if (queue === undefined) throw new UserError(`There is no queue ${name}.`);
  return queue.queue_id;
}
