import { createServer, type Server } from "node:http";
import { exportJWK, generateKeyPair, SignJWT } from "jose";
import { listenSomewhere } from "./listen.ts";

/** An OpenID provider on a free port of this computer. Its users need no password. */
export class IdentityProvider {
  readonly issuer: string;
  readonly #server: Server;
  readonly #privateKey: CryptoKey;

  private constructor(issuer: string, server: Server, privateKey: CryptoKey) {
    this.issuer = issuer;
    this.#server = server;
    this.#privateKey = privateKey;
  }

  static async start(): Promise<IdentityProvider> {
    const { privateKey, publicKey } = await generateKeyPair("ES256");
    const keySet = JSON.stringify({ keys: [{ ...(await exportJWK(publicKey)), alg: "ES256" }] });
    const server = createServer(({ url }, response) => {
      const discovery = JSON.stringify({ issuer, jwks_uri: `${issuer}/keys` });
      const body = url === "/keys" ? keySet : url === "/.well-known/openid-configuration" ? discovery : null;
      response.writeHead(body === null ? 404 : 200, { "Content-Type": "application/json" }).end(body);
    });
    const issuer = await listenSomewhere(server);
    return new IdentityProvider(issuer, server, privateKey);
  }

  /** The ID token that an app gets when its user has logged in. */
  logIn(userId: string, audience: string): Promise<string> {
    return new SignJWT()
      .setProtectedHeader({ alg: "ES256" })
      .setIssuer(this.issuer)
      .setSubject(userId)
      .setAudience(audience)
      .setIssuedAt()
      .setExpirationTime("5 minutes")
      .sign(this.#privateKey);
  }

  close(): void {
    this.#server.closeAllConnections();
    this.#server.close();
  }
}
