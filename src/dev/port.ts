import { createServer } from "node:net";
import { UserError } from "../admin/errors.ts";

const EXAMPLE = "npm start -- --port 8788";

/**
 * @param host the address to serve on; undefined for localhost
 * @throws UserError when the service cannot listen there
 */
export async function assertPortFree(port: number, host: string | undefined): Promise<void> {
  const own = ["127.0.0.1", "::1", "0.0.0.0"];
  if (host !== undefined && (await tryToListen(port, host)) === "EADDRNOTAVAIL") {
    throw new UserError(`${host} is not an address of this computer: see npm start -- --help`);
  }
  for (const address of host === undefined ? own : [...own, host]) {
    const problem = await tryToListen(port, address);
    if (problem === "EADDRINUSE")
      throw new UserError(`Port ${port} is in use: stop what uses it or choose another, as in ${EXAMPLE}`);
    if (problem === "EACCES")
      throw new UserError(`Port ${port} needs more rights: choose one from 1024 on, as in ${EXAMPLE}`);
  }
}

/** The error code, or undefined. */
function tryToListen(port: number, host: string): Promise<string | undefined> {
  return new Promise((resolve) => {
    const server = createServer();
    server.once("error", (error) =>
      resolve("code" in error && typeof error.code === "string" ? error.code : "unknown"),
    );
    server.listen({ port, host, exclusive: true }, () => server.close(() => resolve(undefined)));
  });
}
