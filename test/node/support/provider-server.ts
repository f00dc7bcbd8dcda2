import { once } from "node:events";
import { createServer, type Server } from "node:http";
import { newProviderKey, Provider } from "../../users/provider.ts";
import { listen } from "./listen.ts";

/** An OpenID provider behind a real HTTP server on this computer. */
export class ProviderServer {
  readonly provider: Provider;
  readonly #server: Server;

  constructor(provider: Provider, server: Server) {
    this.provider = provider;
    this.#server = server;
  }

  /** Takes it away: its port is closed from now on. */
  async close(): Promise<void> {
    if (!this.#server.listening) return;
    this.#server.close();
    this.#server.closeAllConnections();
    await once(this.#server, "close");
  }

  /** Brings it back at the same address. */
  async open(): Promise<void> {
    this.#server.listen(Number(new URL(this.provider.issuer).port), "127.0.0.1");
    await once(this.#server, "listening");
  }
}

export async function startProvider(algorithm = "ES256"): Promise<ProviderServer> {
  const key = await newProviderKey(algorithm);
  const server = createServer(async (request, response) => {
    const path = request.url ?? "";
    provider.fetched.push(path);
    const { signal } = new AbortController();
    const result =
      path === "/keys"
        ? await provider.keySet(signal)
        : path === "/.well-known/openid-configuration"
          ? await provider.discovery(signal)
          : new Response(null, { status: 404 });
    response.writeHead(result.status, Object.fromEntries(result.headers));
    for await (const piece of result.body ?? []) response.write(piece);
    response.end();
  });
  const provider = new Provider(key, await listen(server));
  return new ProviderServer(provider, server);
}
