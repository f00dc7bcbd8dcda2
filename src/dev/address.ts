import { createServer, isIPv6 } from "node:net";
import { networkInterfaces } from "node:os";
import { UserError } from "../admin/command-line/errors.ts";

/** Addresses that mean all interfaces, each with the loopback address to use on this computer. */
const ALL_ADDRESSES: Readonly<Record<string, string>> = { "0.0.0.0": "127.0.0.1", "::": "[::1]" };

export interface Origins {
  /** For this computer. */
  own: string;
  /** For users of the service: other devices if it serves the network, else this computer. */
  printed: string;
}

/**
 * The service's addresses.
 *
 * @param host the address it serves on; undefined for localhost
 */
export function originsOf(host: string | undefined, port: number): Origins {
  const own = `http://${host === undefined ? "localhost" : (ALL_ADDRESSES[host] ?? inUrl(host))}:${port}`;
  const isOnAll = host !== undefined && host in ALL_ADDRESSES;
  const network = isOnAll ? networkAddress() : undefined;
  return { own, printed: network === undefined ? own : `http://${network}:${port}` };
}

const inUrl = (address: string): string => (isIPv6(address) ? `[${address}]` : address);

/** An address at which other devices reach this computer; undefined when it has no network. */
function networkAddress(): string | undefined {
  const addresses = Object.values(networkInterfaces()).flatMap((each) => each ?? []);
  return addresses.find(({ family, internal }) => family === "IPv4" && !internal)?.address;
}

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
      throw new UserError(`Port ${port} needs administrator rights: choose one from 1024 on, as in ${EXAMPLE}`);
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
