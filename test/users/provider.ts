import { CompactSign, type CryptoKey, exportJWK, generateKeyPair, type JWK } from "jose";
import { beforeEach, vi } from "vitest";

/** Every algorithm of user tokens (contract section 22). */
export const ALGORITHMS = ["ES256", "ES384", "RS256", "PS256", "EdDSA"] as const;

export const AUDIENCE = "phone-app";

interface ProviderKey {
  algorithm: string;
  privateKey: CryptoKey;
  /** As it is published. */
  jwk: JWK;
}

let made = 0;

export async function newProviderKey(algorithm: string, kid = `key-${++made}`): Promise<ProviderKey> {
  const { privateKey, publicKey } = await generateKeyPair(algorithm, { extractable: true });
  return { algorithm, privateKey, jwk: { ...(await exportJWK(publicKey)), kid, alg: algorithm, use: "sig" } };
}

const encoder = new TextEncoder();

export interface TokenOptions {
  key?: ProviderKey;
  /** Replaces members of the header; undefined leaves one out. */
  header?: Record<string, unknown>;
}

/** What the provider responds with; may hang until the caller gives up. */
export type Responding = (signal: AbortSignal) => Response | Promise<Response>;

/** An OpenID provider, under a host of its own. */
export class Provider {
  readonly issuer: string;
  readonly key: ProviderKey;
  /** What the key set has. */
  published: ProviderKey[];
  discovery: Responding = () => Response.json({ issuer: this.issuer, jwks_uri: `${this.issuer}/keys` });
  keySet: Responding = () => Response.json({ keys: this.published.map(({ jwk }) => jwk) });
  /** URLs that were fetched, in order. */
  readonly fetched: string[] = [];

  constructor(key: ProviderKey, issuer = `https://issuer-${++made}.example.com`) {
    this.issuer = issuer;
    this.key = key;
    this.published = [key];
  }

  get keySetFetches(): number {
    return this.fetched.filter((url) => url.endsWith("/keys")).length;
  }

  /** Columns of an application whose users this provider verifies. */
  get columns() {
    return { userIssuer: this.issuer, userAudience: AUDIENCE };
  }

  /** @param more replaces claims; undefined leaves one out */
  async token(userId: string, more: Record<string, unknown> = {}, options: TokenOptions = {}): Promise<string> {
    const { key = this.key, header = {} } = options;
    const now = Math.floor(Date.now() / 1000);
    const claims = { iss: this.issuer, aud: AUDIENCE, sub: userId, iat: now, exp: now + 300, ...more };
    const protectedHeader = { alg: key.algorithm, kid: key.jwk.kid, typ: "JWT", ...header };
    return new CompactSign(encoder.encode(JSON.stringify(claims)))
      .setProtectedHeader(JSON.parse(JSON.stringify(protectedHeader)))
      .sign(key.privateKey);
  }
}

/**
 * The outside network: providers. Any other host cannot be found.
 *
 * @returns makes a provider
 */
export function useProviders(): () => Promise<Provider> {
  const providers = new Map<string, Provider>();

  beforeEach(() => {
    vi.spyOn(globalThis, "fetch").mockImplementation(async (input, init) => {
      const url = new URL(input instanceof Request ? input.url : String(input));
      const provider = providers.get(url.origin);
      if (provider === undefined) throw new TypeError("the name could not be resolved");
      provider.fetched.push(url.href);
      const signal = init?.signal ?? new AbortController().signal;
      if (init?.redirect !== "manual") throw new TypeError("a redirect would be followed");
      if (url.pathname === "/keys") return provider.keySet(signal);
      if (url.pathname === "/.well-known/openid-configuration") return provider.discovery(signal);
      return new Response(null, { status: 404 });
    });
  });

  return async () => {
    const provider = new Provider(await newProviderKey("ES256"));
    providers.set(provider.issuer, provider);
    return provider;
  };
}

/** Responds with nothing until whoever asks gives up. */
export const hangs: Responding = (signal) =>
  new Promise((_resolve, reject) => signal.addEventListener("abort", () => reject(signal.reason)));
