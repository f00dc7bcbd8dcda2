import { once } from "node:events";
import { createServer } from "node:http";
import { listenSomewhere } from "../../../src/dev/demo/listen.ts";
import { newProviderKey, Provider } from "../../users/provider.ts";

export type ProviderServer = Awaited<ReturnType<typeof startProvider>>;

/** An OpenID provider behind a real HTTP server on this computer. */
export async function startProvider() {
  const key = await newProviderKey("ES256");
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
  const provider = new Provider(key, await listenSomewhere(server));
  return {
    provider,
    /** Takes it away: its port is closed from now on. */
    async close(): Promise<void> {
      if (!server.listening) return;
      server.close().closeAllConnections();
      await once(server, "close");
    },
  };
}
