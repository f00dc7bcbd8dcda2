import { once } from "node:events";
import { createServer } from "node:http";

/** An application server that takes every webhook and counts them, for each side apart. */
export interface Receiver {
  /** Where a side's webhooks go. */
  url(side: string): string;
  received(side: string): number;
  close(): void;
}

export async function startReceiver(): Promise<Receiver> {
  const counts = new Map<string, number>();
  const server = createServer(({ url = "" }, response) => {
    counts.set(url, (counts.get(url) ?? 0) + 1);
    response.writeHead(204).end();
  });
  server.listen(0, "127.0.0.1");
  await once(server, "listening");
  const address = server.address();
  if (address === null || typeof address === "string") throw new Error("the receiver has no port");
  return {
    url: (side) => `http://127.0.0.1:${address.port}/${side}`,
    received: (side) => counts.get(`/${side}`) ?? 0,
    close() {
      server.closeAllConnections();
      server.close();
    },
  };
}
