import { createServer } from "node:http";
import { exportJWK, generateKeyPair, SignJWT } from "jose";
import { listenSomewhere } from "./listen.ts";

/** An OpenID provider on a free port of this computer. Its users need no password. */
export async function startIdentityProvider() {
  const { privateKey, publicKey } = await generateKeyPair("ES256");
  const keySet = JSON.stringify({ keys: [{ ...(await exportJWK(publicKey)), alg: "ES256" }] });
  const server = createServer(({ url }, response) => {
    const discovery = JSON.stringify({ issuer, jwks_uri: `${issuer}/keys` });
    const body = url === "/keys" ? keySet : url === "/.well-known/openid-configuration" ? discovery : null;
    response.writeHead(body === null ? 404 : 200, { "Content-Type": "application/json" }).end(body);
  });
  const issuer = await listenSomewhere(server);
  return {
    issuer,
    /** The ID token that an app gets when its user has logged in. */
    logIn: (userId: string, audience: string): Promise<string> =>
      new SignJWT({ iss: issuer, sub: userId, aud: audience })
        .setProtectedHeader({ alg: "ES256" })
        .setIssuedAt()
        .setExpirationTime("5 minutes")
        .sign(privateKey),
    close(): void {
      server.closeAllConnections();
      server.close();
    },
  };
}
