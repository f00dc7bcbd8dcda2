import { createServer } from "node:http";
import { exportJWK, generateKeyPair, SignJWT } from "jose";
import { listenSomewhere } from "../../../src/dev/demo/listen.ts";

/** An OpenID provider on this computer, whose tokens outlast a benchmark. RS256, as most providers sign. */
export async function startProvider() {
  const { privateKey, publicKey } = await generateKeyPair("RS256");
  const keys = [{ ...(await exportJWK(publicKey)), kid: "bench", alg: "RS256" }];
  const server = createServer(({ url }, response) => {
    response.end(JSON.stringify(url === "/keys" ? { keys } : { issuer, jwks_uri: `${issuer}/keys` }));
  });
  const issuer = await listenSomewhere(server);
  const logIn = (userId: string, audience: string) =>
    new SignJWT()
      .setProtectedHeader({ alg: "RS256", kid: "bench" })
      .setIssuer(issuer)
      .setSubject(userId)
      .setAudience(audience)
      .setIssuedAt()
      .setExpirationTime("2 hours")
      .sign(privateKey);
  return { issuer, logIn, close: () => server.close() };
}
