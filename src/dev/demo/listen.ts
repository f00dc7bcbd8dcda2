import { once } from "node:events";
import type { Server } from "node:http";
import { DemoFailure } from "./narrator.ts";

/** Listens on a free port of this computer. @returns the origin */
export async function listenSomewhere(server: Server): Promise<string> {
  server.listen(0, "127.0.0.1");
  await once(server, "listening");
  const address = server.address();
  if (address === null || typeof address === "string") throw new DemoFailure("no port of this computer is free");
  return `http://127.0.0.1:${address.port}`;
}
