import { once } from "node:events";
import { createServer } from "node:http";

/** An application server that takes every webhook. Only the peer sends any while it is measured. */
export async function startReceiver(): Promise<{ url: string; close(): void }> {
  const server = createServer((request, response) => {
    request.resume().on("end", () => response.writeHead(204).end());
  });
  server.listen(0, "127.0.0.1");
  await once(server, "listening");
  const address = server.address();
  if (address === null || typeof address === "string") throw new Error("the receiver has no port");
  return {
    url: `http://127.0.0.1:${address.port}/`,
    close() {
      server.closeAllConnections();
      server.close();
    },
  };
}
