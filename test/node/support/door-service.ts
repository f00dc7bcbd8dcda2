import { generateKeyPairSync, type KeyObject, sign } from "node:crypto";
import { deflateSync } from "node:zlib";

export const APPLICATION_ID = "app_0123456789abcdefghjk";
export const ACTIVE = 0;
export const REVOKED = 1;
export const SUSPENDED = 2;

interface SigningKey {
  id: string;
  privateKey: KeyObject;
  publicKey: KeyObject;
}

export function newKey(id: string): SigningKey {
  return { id, ...generateKeyPairSync("ec", { namedCurve: "P-256" }) };
}

function signJwt(key: SigningKey, typ: string, claims: object): string {
  const part = (value: object) => Buffer.from(JSON.stringify(value)).toString("base64url");
  const input = `${part({ alg: "ES256", kid: key.id, typ })}.${part(claims)}`;
  const signature = sign("sha256", Buffer.from(input), { key: key.privateKey, dsaEncoding: "ieee-p1363" });
  return `${input}.${signature.toString("base64url")}`;
}

/** A stand-in for the service, as a door sees it: a key set, a status list and deltas, made by hand. */
export class DoorService {
  url = "https://badges.example";
  keys = [newKey("first")];
  /** By index. */
  readonly statuses = new Map<number, number>();
  /** The last change that its lists contain; null: they do not say. */
  change: number | null = null;
  hasStatusLists = true;
  /** The public key that its badges are bound to, as a JWK. */
  boundKey: object | null = null;
  /** Throws to take the service away, or responds in another way than it should. */
  interfere: (path: string) => Response | undefined = () => undefined;
  readonly requested: string[] = [];
  /** Milliseconds since 1970-01-01 UTC. */
  readonly now: () => number;

  constructor(now: () => number = Date.now) {
    this.now = now;
  }

  /** What `GET /v1/live` responds with. */
  live: (have: number) => Response | Promise<Response> = () => Response.json({ error: "UNAVAILABLE" }, { status: 503 });

  readonly fetch = async (url: string): Promise<Response> => {
    const path = url.slice(this.url.length);
    this.requested.push(path);
    const [, have] = /^\/v1\/live\?have=(\d+)$/.exec(path) ?? [];
    if (have !== undefined) return this.live(Number(have));
    const other = this.interfere(path);
    if (other !== undefined) return other;
    const application = `/v1/applications/${APPLICATION_ID}`;
    if (path === `${application}/jwks.json`) return Response.json(this.keySet());
    if (path === `${application}/status/0` && this.hasStatusLists) return new Response(this.statusList());
    return Response.json({ error: "UNKNOWN_STATUSLIST" }, { status: 404 });
  };

  keySet(): object {
    return { keys: this.keys.map(({ id, publicKey }) => ({ ...publicKey.export({ format: "jwk" }), kid: id })) };
  }

  get listUri(): string {
    return `${this.url}/v1/applications/${APPLICATION_ID}/status/0`;
  }

  /** By the newest key, with which the service signs its lists. */
  statusList(): string {
    const bytes = Buffer.alloc(32_768);
    for (const [index, status] of this.statuses) {
      bytes.writeUInt8(bytes.readUInt8(index >> 2) | (status << ((index & 3) * 2)), index >> 2);
    }
    const iat = Math.floor(this.now() / 1000);
    return signJwt(this.newestKey(), "statuslist+jwt", {
      sub: this.listUri,
      iat,
      exp: iat + 86_400,
      ttl: 60,
      ...(this.change !== null && { change: this.change }),
      status_list: { bits: 2, lst: deflateSync(bytes).toString("base64url") },
    });
  }

  /** Of list 0. @param statuses by index */
  delta(since: number, change: number, statuses: Record<number, number>, claims: object = {}): string {
    const entries = Object.entries(statuses).map(([index, status]) => [0, Number(index), status]);
    const [sub, iat] = [this.listUri.replace(/\/0$/, ""), Math.floor(this.now() / 1000)];
    return signJwt(this.newestKey(), "statusdelta+jwt", { sub, iat, since, change, entries, ...claims });
  }

  badgeSignature(idx: number): string {
    return signJwt(this.newestKey(), "badge-signature+jwt", {
      sub: String(1_000_000_000 + idx),
      aud: APPLICATION_ID,
      iat: Math.floor(this.now() / 1000),
      client_signature: "AAAA",
      ...(this.boundKey === null ? {} : { cnf: { jwk: this.boundKey } }),
      ...(this.hasStatusLists ? { status: { status_list: { idx, uri: this.listUri } } } : {}),
    });
  }

  private newestKey(): SigningKey {
    const key = this.keys.at(-1);
    if (key === undefined) throw new Error("no key");
    return key;
  }
}
