import { once } from "node:events";
import type { Server } from "node:net";

/** Listens on a free port of this computer. @returns the origin */
export async function listen(server: Server): Promise<string> {
  await once(server.listen(0, "127.0.0.1"), "listening");
  const address = server.address();
  if (address === null || typeof address === "string") throw new Error("no port");
  return `http://127.0.0.1:${address.port}`;
}
