import { createHash, createPrivateKey, sign } from "node:crypto";
import { readFileSync } from "node:fs";
import * as z from "zod";

/**
 * Signs a JWT for a new case of the verifier's vectors with one of their test keys, and prints it. The files are edited by
 * hand: copy a similar case, and replace its name, its expectation and its JWT.
 */
const USAGE = `Usage: node src/dev/sign-vector.ts KEY TYP CLAIMS [HEADER]

  KEY      signing, other or phone: a key in src/verify/vectors.json or vectors-possession.json
  TYP      badge-signature+jwt, statuslist+jwt or door-response+jwt
  CLAIMS   JSON, signed as it is written
  HEADER   JSON that overrides alg, kid and typ; null removes a member

The claims of a phone's response need the hash of the badge signature, which is printed with each JWT as badge_signature_hash.

  node src/dev/sign-vector.ts signing badge-signature+jwt \\
    '{"sub":"1004711815","aud":"app_0123456789abcdefghjk","iat":1800000000,"client_signature":"AA=="}'
`;

const jwk = z.object({
  kty: z.string(),
  crv: z.string(),
  x: z.string(),
  y: z.string(),
  kid: z.string(),
  d: z.string(),
});
const vectors = z.object({
  testKeys: z.record(z.string(), z.union([z.string(), z.object({ privateJwkForTestsOnly: jwk })])),
});

function readKeys(): Map<string, z.infer<typeof jwk>> {
  const keys = new Map<string, z.infer<typeof jwk>>();
  for (const file of ["vectors.json", "vectors-possession.json"]) {
    const text = readFileSync(new URL(`../verify/${file}`, import.meta.url), "utf8");
    for (const [name, key] of Object.entries(vectors.parse(JSON.parse(text)).testKeys)) {
      if (typeof key !== "string") keys.set(name, key.privateJwkForTestsOnly);
    }
  }
  return keys;
}

const base64Url = (text: string): string => Buffer.from(text).toString("base64url");

function signJwt(privateJwk: z.infer<typeof jwk>, typ: string, claims: string, header: object): string {
  const members = Object.entries({ alg: "ES256", kid: privateJwk.kid, typ, ...header });
  const stated = Object.fromEntries(members.filter(([, value]) => value !== null));
  const input = `${base64Url(JSON.stringify(stated))}.${base64Url(claims)}`;
  const key = createPrivateKey({ key: privateJwk, format: "jwk" });
  const signature = sign("sha256", Buffer.from(input), { key, dsaEncoding: "ieee-p1363" });
  return `${input}.${signature.toString("base64url")}`;
}

const [name = "", typ, claims, header = "{}"] = process.argv.slice(2);
const key = readKeys().get(name);
if (key === undefined || typ === undefined || claims === undefined) {
  console.error(USAGE);
  process.exit(1);
}
const jwt = signJwt(key, typ, claims, z.object().loose().parse(JSON.parse(header)));
console.log(`${jwt}\nbadge_signature_hash ${createHash("sha256").update(jwt).digest("base64url")}`);
