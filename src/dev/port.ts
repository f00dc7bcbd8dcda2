import { createServer } from "node:net";
import { parseArgs } from "node:util";
import { Mistake } from "../admin/mistake.ts";

const DEFAULT_PORT = 8787;
const MAX_PORT = 65_535;
const USAGE = "npm start -- --port 8788";

/** Reads the command line of `npm start`. */
export function parsePort(words: string[]): number {
  const text = portText(words);
  if (text === undefined) return DEFAULT_PORT;
  const port = /^[1-9][0-9]{0,4}$/.test(text) ? Number(text) : Number.NaN;
  if (!(port <= MAX_PORT))
    throw new Mistake(`"${text}" is not a port: give a number from 1 to ${MAX_PORT}, as in ${USAGE}`);
  return port;
}

function portText(words: string[]): string | undefined {
  try {
    return parseArgs({ args: words, options: { port: { type: "string" } } }).values.port;
  } catch {
    throw new Mistake(`npm start serves on port ${DEFAULT_PORT}; its only option is another port, as in ${USAGE}`);
  }
}

/** @throws Mistake when something listens on the port of this computer */
export async function assertPortFree(port: number): Promise<void> {
  for (const host of ["127.0.0.1", "::1", "0.0.0.0"]) {
    const problem = await tryToListen(port, host);
    if (problem === "EADDRINUSE")
      throw new Mistake(`Port ${port} is in use: stop what uses it or choose another, as in ${USAGE}`);
    if (problem === "EACCES")
      throw new Mistake(`Port ${port} needs more rights: choose one from 1024 on, as in ${USAGE}`);
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
