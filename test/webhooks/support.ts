import { Outbox } from "../support/outbox.ts";
import { type Answering, useReceivers } from "../support/receivers.ts";

/** The outside network (see `useReceivers`), and what opens an application with a receiver of its own there. */
export function useOutboxes() {
  const receiver = useReceivers();
  const open = async (answering?: Answering) => {
    const endpoint = receiver(answering);
    return { endpoint, outbox: await Outbox.open({ webhookUrl: endpoint.url }) };
  };
  return { receiver, open };
}
