import { sign } from "node:crypto";
import { OTHER_KEY, P256_ORDER, SIGNING_KEY, STRANGERS_KEY } from "./keys.ts";
import { CLAIMS, HEADER, makeJwt, part, rawSignature, signedParts, withSignature } from "./tokens.ts";
import { IN_SET, refuse, type Vector } from "./vector.ts";

const INPUT = `${part(HEADER)}.${part(CLAIMS)}`;
const ZERO = Buffer.alloc(32);
const ORDER = Buffer.from(P256_ORDER.toString(16), "hex");

/** Everything that is a `bad-signature`. */
export function badSignatureVectors(): Vector[] {
  return [...changedPartVectors(), ...otherKeyVectors(), ...valueVectors(), ...formatVectors()];
}

/** A genuine signature over other parts. */
function changedPartVectors(): Vector[] {
  const signature = rawSignature(INPUT);
  const over = (header: object | string, claims: object | string) =>
    withSignature(`${text(header)}.${text(claims)}`, signature);
  return [
    bad("another badge number", over(HEADER, { ...CLAIMS, sub: "1004711816" })),
    bad("another application", over(HEADER, { ...CLAIMS, aud: "app_zyxwvtsrqpnmkjhgfedc" })),
    bad("another time of issue", over(HEADER, { ...CLAIMS, iat: CLAIMS.iat + 1 })),
    bad("a later expiry", over(HEADER, { ...CLAIMS, exp: CLAIMS.exp + 3600 })),
    bad("another client signature", over(HEADER, { ...CLAIMS, client_signature: "AAAA" })),
    bad("an added claim", over(HEADER, { ...CLAIMS, role: "admin" })),
    bad("the same claims with a space", over(HEADER, part(JSON.stringify(CLAIMS).replace(",", ", ")))),
    bad("the same header in another order", over({ typ: HEADER.typ, kid: HEADER.kid, alg: HEADER.alg }, CLAIMS)),
    bad("an added header parameter", over({ ...HEADER, cty: "JWT" }, CLAIMS)),
    bad("the kid of another key of the set", over({ ...HEADER, kid: OTHER_KEY.kid }, CLAIMS)),
    bad(
      "the payload of another JWT of the key",
      swapSignature(makeJwt(), makeJwt({ claims: { ...CLAIMS, sub: "7" } })),
    ),
    bad("claims that are not JSON either", over(HEADER, part("not JSON"))),
    bad("expired, too", over(HEADER, { ...CLAIMS, exp: 1 })),
  ];
}

function otherKeyVectors(): Vector[] {
  const strangers = STRANGERS_KEY.privateKey;
  const ownKey = { ...HEADER, jwk: STRANGERS_KEY.publicJwk };
  return [
    bad("by a stranger's key", signedParts(part(HEADER), part(CLAIMS), strangers)),
    bad("by a stranger's key that the header brings along", signedParts(part(ownKey), part(CLAIMS), strangers)),
    bad("by the other key of the set under this kid", signedParts(part(HEADER), part(CLAIMS), OTHER_KEY.privateKey)),
    refuse("bad-signature", "the SPKI of another key", makeJwt(), { publicKey: OTHER_KEY.spki }),
    refuse("bad-signature", "another key under this kid in the set", makeJwt(), {
      publicKeys: { keys: [{ ...OTHER_KEY.publicJwk, kid: HEADER.kid }] },
    }),
  ];
}

/** Signatures of 64 octets with wrong numbers. */
function valueVectors(): Vector[] {
  const signature = rawSignature(INPUT);
  const [r, s] = [signature.subarray(0, 32), signature.subarray(32)];
  const of = (...octets: Buffer[]) => withSignature(INPUT, Buffer.concat(octets));
  return [
    bad("a bit of r changed", of(flipped(r), s)),
    bad("a bit of s changed", of(r, flipped(s))),
    bad("r and s exchanged", of(s, r)),
    bad("r is zero", of(ZERO, s)),
    bad("s is zero", of(r, ZERO)),
    bad("r and s are zero", of(ZERO, ZERO)),
    bad("r and s are one", of(number(1n), number(1n))),
    bad("r is the order of the group", of(ORDER, s)),
    bad("s is the order of the group", of(r, ORDER)),
    bad("r and s are the order of the group", of(ORDER, ORDER)),
    bad("every bit is set", of(Buffer.alloc(64, 0xff))),
    bad("r and s in the other byte order", of(Buffer.from(r).reverse(), Buffer.from(s).reverse())),
  ];
}

/** The right key and data, with another encoding or hash. */
function formatVectors(): Vector[] {
  const signature = rawSignature(INPUT);
  const [r, s] = [signature.subarray(0, 32), signature.subarray(32)];
  const der = sign("sha256", Buffer.from(INPUT), { key: SIGNING_KEY.privateKey, dsaEncoding: "der" });
  const of = (...octets: Buffer[]) => withSignature(INPUT, Buffer.concat(octets));
  const hashed = (hash: string) => withSignature(INPUT, rawSignature(INPUT, SIGNING_KEY.privateKey, hash));
  const padding = Buffer.alloc(16);
  return [
    bad("DER, not r and s side by side", withSignature(INPUT, der)),
    bad("the hexadecimal text of the signature", of(Buffer.from(signature.toString("hex")))),
    bad("no signature", `${INPUT}.`),
    bad("an octet less at the end", of(signature.subarray(0, -1))),
    bad("an octet less at the start", of(signature.subarray(1))),
    bad("an octet more at the end", of(signature, Buffer.alloc(1))),
    bad("an octet more at the start", of(Buffer.alloc(1), signature)),
    bad("r alone", of(r)),
    bad("r and s padded to 48 octets", of(padding, r, padding, s)),
    bad("twice the signature", of(signature, signature)),
    bad("SHA-1", hashed("sha1")),
    bad("SHA-384", hashed("sha384")),
    bad("SHA-512", hashed("sha512")),
    bad("over the payload alone", withSignature(INPUT, rawSignature(part(CLAIMS)))),
    bad("over the decoded claims", withSignature(INPUT, rawSignature(JSON.stringify(CLAIMS)))),
    bad("over the JWT without the dot", withSignature(INPUT, rawSignature(INPUT.replace(".", "")))),
  ];
}

function bad(name: string, jwt: string): Vector {
  return refuse("bad-signature", name, jwt, IN_SET);
}

/** A string as it is, or an encoded value. */
function text(value: object | string): string {
  return typeof value === "string" ? value : part({ ...value });
}

function swapSignature(jwt: string, signatureOf: string): string {
  return jwt.slice(0, jwt.lastIndexOf(".")) + signatureOf.slice(signatureOf.lastIndexOf("."));
}

function flipped(octets: Buffer): Buffer {
  const copy = Buffer.from(octets);
  copy.writeUInt8(copy.readUInt8(16) ^ 1, 16);
  return copy;
}

function number(value: bigint): Buffer {
  return Buffer.from(value.toString(16).padStart(64, "0"), "hex");
}
