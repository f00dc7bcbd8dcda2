import { isIPv6 } from "node:net";
import { networkInterfaces } from "node:os";

/** Addresses that stand for all of a computer's, and the address by which it then reaches itself. */
const ALL_ADDRESSES: Readonly<Record<string, string>> = { "0.0.0.0": "127.0.0.1", "::": "[::1]" };

export interface Origins {
  /** For this computer. */
  own: string;
  /** For whoever the service is meant for: another device when it serves the network, else this computer. */
  printed: string;
}

/**
 * Where the service can be reached.
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

/** An address by which other devices reach this computer; undefined when it is on no network. */
function networkAddress(): string | undefined {
  const addresses = Object.values(networkInterfaces()).flatMap((each) => each ?? []);
  return addresses.find(({ family, internal }) => family === "IPv4" && !internal)?.address;
}
