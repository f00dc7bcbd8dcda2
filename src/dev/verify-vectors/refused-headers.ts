import { createHmac, createPublicKey } from "node:crypto";
import { OTHER_KEY, P384_KEY, SIGNING_KEY, STRANGERS_KEY } from "./keys.ts";
import { CLAIMS, HEADER, type Members, makeJwt, part, rawSignature, withSignature } from "./tokens.ts";
import { KEY_SET, refuse, type Vector } from "./vector.ts";

/** Everything refused for its header or a missing key: `wrong-algorithm`, `wrong-type`, `unknown-key`. */
export function headerVectors(): Vector[] {
  return [...algorithmVectors(), ...typeVectors(), ...unknownKeyVectors(), ...unusableKeyVectors()];
}

function algorithmVectors(): Vector[] {
  const spki = Buffer.from(SIGNING_KEY.spki, "base64");
  const pem = createPublicKey(SIGNING_KEY.privateKey).export({ type: "spki", format: "pem" });
  const unsigned = (alg: string) => `${part({ ...HEADER, alg })}.${part(CLAIMS)}.`;
  const es384Input = `${part({ ...HEADER, alg: "ES384", kid: P384_KEY.kid })}.${part(CLAIMS)}`;
  const es384 = withSignature(es384Input, rawSignature(es384Input, P384_KEY.privateKey, "sha384"));
  const withAlg = (alg: unknown) => makeJwt({ header: { ...HEADER, alg } });
  return [
    wrongAlgorithm("alg none, no signature", unsigned("none")),
    wrongAlgorithm("alg None, no signature", unsigned("None")),
    wrongAlgorithm("alg none, with a signature", withAlg("none")),
    wrongAlgorithm("HS256 keyed with the SPKI DER", hmacJwt(spki)),
    wrongAlgorithm("HS256 keyed with the SPKI base64", hmacJwt(SIGNING_KEY.spki)),
    wrongAlgorithm("HS256 keyed with the SPKI PEM", hmacJwt(pem)),
    refuse("wrong-algorithm", "ES384 by a P-384 key of the set", es384, {
      publicKeys: { keys: [...KEY_SET.keys, P384_KEY.publicJwk] },
    }),
    ...["ES384", "ES256K", "RS256", "EdDSA", "es256", "ES256 ", ["ES256"], null].map((alg) =>
      wrongAlgorithm(`an ES256 signature under alg ${JSON.stringify(alg)}`, withAlg(alg)),
    ),
    wrongAlgorithm("no alg", makeJwt({ header: { kid: HEADER.kid, typ: HEADER.typ } })),
    wrongAlgorithm("alg inherited through __proto__", makeJwt({ header: inheritingHeader() })),
  ];
}

function typeVectors(): Vector[] {
  const types = ["JWT", "at+jwt", "application/badge-signature+jwt", "Badge-Signature+JWT", "", null, [HEADER.typ]];
  return [
    refuse("wrong-type", "no typ", makeJwt({ header: { alg: HEADER.alg, kid: HEADER.kid } })),
    ...types.map((typ) => refuse("wrong-type", `typ ${JSON.stringify(typ)}`, makeJwt({ header: { ...HEADER, typ } }))),
    refuse("wrong-type", "the ES256 example of RFC 7515 appendix A.3", RFC_7515_EXAMPLE),
  ];
}

function unknownKeyVectors(): Vector[] {
  const withKid = (kid: string) => makeJwt({ header: { ...HEADER, kid } });
  return [
    unknownKey("a kid that is not in the set", withKid(STRANGERS_KEY.kid), KEY_SET.keys),
    unknownKey("an empty kid", withKid(""), KEY_SET.keys),
    unknownKey("a kid in other letter case", withKid(HEADER.kid.toLowerCase()), KEY_SET.keys),
    unknownKey("a kid named like a member of every object", withKid("__proto__"), KEY_SET.keys),
    unknownKey("an empty key set", makeJwt(), []),
    unknownKey("a key set without the signing key", makeJwt(), [OTHER_KEY.publicJwk]),
  ];
}

function unusableKeyVectors(): Vector[] {
  const key = SIGNING_KEY.publicJwk;
  const without = (name: string) => Object.fromEntries(Object.entries(key).filter(([member]) => member !== name));
  const inSet = (name: string, jwk: Members) => unknownKey(`the key of the set ${name}`, makeJwt(), [jwk]);
  const asSpki = (name: string, publicKey: string) => refuse("unknown-key", name, makeJwt(), { publicKey });
  const octets = Buffer.from(SIGNING_KEY.spki, "base64").toString("base64url");
  return [
    inSet("has no kid", without("kid")),
    inSet("is for encryption", { ...key, use: "enc" }),
    inSet("is for another algorithm", { ...key, alg: "ES384" }),
    inSet("is for signing only by key_ops", { ...without("use"), key_ops: ["sign"] }),
    inSet("is on another curve", { ...P384_KEY.publicJwk, alg: "ES256", kid: HEADER.kid }),
    inSet("says another curve than its point is on", { ...key, crv: "secp256k1" }),
    inSet("is symmetric", { kty: "oct", k: octets, kid: HEADER.kid }),
    inSet("is an OKP key", { kty: "OKP", crv: "Ed25519", x: key.x ?? "", kid: HEADER.kid }),
    inSet("says another kty than its coordinates are of", { ...key, kty: "OKP" }),
    inSet("lacks y", without("y")),
    inSet("is a point off the curve", { ...key, y: key.x ?? "" }),
    asSpki("an SPKI of another curve", P384_KEY.spki),
    asSpki("an SPKI that is not base64", SIGNING_KEY.spki.replace(/./, "!")),
    asSpki("an empty SPKI", ""),
    asSpki("a cut SPKI", SIGNING_KEY.spki.slice(0, 60)),
  ];
}

function wrongAlgorithm(name: string, jwt: string): Vector {
  return refuse("wrong-algorithm", name, jwt);
}

function unknownKey(name: string, jwt: string, keys: Members[]): Vector {
  return refuse("unknown-key", name, jwt, { publicKeys: { keys } });
}

function hmacJwt(key: string | Buffer): string {
  const input = `${part({ ...HEADER, alg: "HS256" })}.${part(CLAIMS)}`;
  return withSignature(input, createHmac("sha256", key).update(input).digest());
}

/** A member named `__proto__` that a careless parser takes for the object's prototype. */
function inheritingHeader(): string {
  return `{"__proto__":${JSON.stringify(HEADER)},"kid":"${HEADER.kid}","typ":"${HEADER.typ}"}`;
}

/** A valid ES256 JWS by the vectors' signing key that is not a badge signature. */
const RFC_7515_EXAMPLE = [
  "eyJhbGciOiJFUzI1NiJ9",
  "eyJpc3MiOiJqb2UiLA0KICJleHAiOjEzMDA4MTkzODAsDQogImh0dHA6Ly9leGFtcGxlLmNvbS9pc19yb290Ijp0cnVlfQ",
  "DtEhU3ljbEg8L38VWAfUAqOyKAM6-Xx-F4GawxaepmXFCgfTjDxw5djxLa8ISlSApmWQxfKTUJqPP3-Kg6NU1Q",
].join(".");
