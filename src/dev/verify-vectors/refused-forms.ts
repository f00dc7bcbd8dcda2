import {
  BADGE_NUMBER,
  CLAIMS,
  claimsWithout,
  HEADER,
  ISSUED_AT,
  makeJwt,
  part,
  signatureWith,
  signedParts,
  withSignature,
} from "./tokens.ts";
import { refuse, type Vector } from "./vector.ts";

const BASE64URL = "ABCDEFGHIJKLMNOPQRSTUVWXYZabcdefghijklmnopqrstuvwxyz0123456789-_";

/** Everything that is `malformed`. */
export function malformedVectors(): Vector[] {
  return [...partVectors(), ...encodingVectors(), ...jsonVectors(), ...claimVectors()];
}

function partVectors(): Vector[] {
  const jwt = makeJwt();
  const [header = "", payload = "", signature = ""] = jwt.split(".");
  const flattened = JSON.stringify({ protected: header, payload, signature });
  return [
    malformed("an empty string", ""),
    malformed("one part", header),
    malformed("two parts, no signature part", `${header}.${payload}`),
    malformed("four parts", `${jwt}.${signature}`),
    malformed("five parts, as an encrypted JWT has", `${jwt}..${signature}`),
    malformed("a dot at the end", `${jwt}.`),
    malformed("a dot at the start", `.${jwt}`),
    malformed("a doubled dot", `${header}..${payload}.${signature}`),
    malformed("an empty header", signedParts("", payload)),
    malformed("an empty payload", signedParts(header, "")),
    malformed("only dots", ".."),
    malformed("an authorization scheme before it", `Bearer ${jwt}`),
    malformed("the JSON serialization of a JWS", flattened),
    malformed("longer than any the service makes", `${header}.${"A".repeat(16_400)}.${signature}`),
  ];
}

function encodingVectors(): Vector[] {
  const [header, payload] = [withSpareBits(HEADER), withSpareBits(CLAIMS)];
  const input = `${header}.${payload}`;
  // A signature with both characters that differ between base64 and base64url.
  const raw = signatureWith(input, (bytes) => /-.*_|_.*-/.test(bytes.toString("base64url")));
  const [jwt, signature] = [withSignature(input, raw), raw.toString("base64url")];
  return [
    malformed("white space before it", ` ${jwt}`),
    malformed("white space after it", `${jwt} `),
    malformed("a line feed after it", `${jwt}\n`),
    malformed("a carriage return and a line feed after it", `${jwt}\r\n`),
    malformed("a NUL after it", `${jwt}\0`),
    malformed("a line feed within the payload", signedParts(header, `${payload.slice(0, 40)}\n${payload.slice(40)}`)),
    malformed("a space within the signature", `${input}.${signature.slice(0, 40)} ${signature.slice(40)}`),
    malformed("padding after the header", signedParts(`${header}==`, payload)),
    malformed("padding after the payload", signedParts(header, `${payload}==`)),
    malformed("padding after the signature", `${jwt}==`),
    malformed("padding after the header, added on the way", jwt.replace(".", "==.")),
    malformed("padding after the payload, added on the way", withSignature(`${input}==`, raw)),
    malformed("percent-encoded padding after the signature", `${jwt}%3D%3D`),
    malformed("the signature in base64, not base64url", `${input}.${raw.toString("base64").replace(/=+$/, "")}`),
    malformed("stray bits at the end of the header", signedParts(withStrayBit(header), payload)),
    malformed("stray bits at the end of the payload", signedParts(header, withStrayBit(payload))),
    malformed("stray bits at the end of the signature", `${input}.${withStrayBit(signature)}`),
    malformed("a lone character at the end of the payload", signedParts(header, payload.slice(0, -1))),
    malformed("a letter outside ASCII in the signature", `${input}.${signature.slice(0, -1)}\u{ff21}`),
  ];
}

function jsonVectors(): Vector[] {
  const markedHeader = `\ufeff${JSON.stringify(HEADER)}`;
  const markedClaims = `\ufeff${JSON.stringify(CLAIMS)}`;
  const invalidUtf8 = Buffer.concat([Buffer.from('{"sub":"'), Buffer.from([0xc3, 0x28]), Buffer.from('"}')]);
  return [
    malformed("a header that is not JSON", makeJwt({ header: "ES256" })),
    malformed("a header that is an array", makeJwt({ header: JSON.stringify([HEADER]) })),
    malformed("a header that is null", makeJwt({ header: "null" })),
    malformed("a header in invalid UTF-8", makeJwt({ header: invalidUtf8 })),
    malformed("a header that starts with a byte order mark", makeJwt({ header: markedHeader })),
    malformed("claims that are not JSON", makeJwt({ claims: `badge ${BADGE_NUMBER}` })),
    malformed("claims that are cut off", makeJwt({ claims: JSON.stringify(CLAIMS).slice(0, -1) })),
    malformed("claims that are an array", makeJwt({ claims: JSON.stringify([CLAIMS]) })),
    malformed("claims that are null", makeJwt({ claims: "null" })),
    malformed("claims in invalid UTF-8", makeJwt({ claims: invalidUtf8 })),
    malformed("claims that start with a byte order mark", makeJwt({ claims: markedClaims })),
    malformed("crit naming a claim", makeJwt({ header: { ...HEADER, crit: ["exp"], exp: ISSUED_AT + 300 } })),
    malformed("crit with an unencoded payload", makeJwt({ header: { ...HEADER, crit: ["b64"], b64: false } })),
    malformed("an empty crit", makeJwt({ header: { ...HEADER, crit: [] } })),
    malformed("no kid", makeJwt({ header: { alg: HEADER.alg, typ: HEADER.typ } })),
    malformed("kid as a number", makeJwt({ header: { ...HEADER, kid: 7 } })),
  ];
}

function claimVectors(): Vector[] {
  const wrong: Record<string, readonly unknown[]> = {
    sub: [
      Number(BADGE_NUMBER),
      null,
      "",
      "0",
      `0${BADGE_NUMBER}`,
      `-${BADGE_NUMBER}`,
      `+${BADGE_NUMBER}`,
      ` ${BADGE_NUMBER}`,
      `${BADGE_NUMBER}\n`,
      "1e9",
      "0x3be2a4c7",
      "1004711815.0",
      "\u0661\u0662\u0663",
      "9007199254740992",
      "9007199254740993",
      "90071992547409910",
    ],
    aud: [[CLAIMS.aud], [CLAIMS.aud, "app_zyxwvtsrqpnmkjhgfedc"], 7, null],
    iat: [String(ISSUED_AT), ISSUED_AT + 0.5, -1, 1e300, null, true],
    exp: [String(CLAIMS.exp), CLAIMS.exp + 0.5, -1, 1e300, null, false],
    nbf: [String(CLAIMS.iat), CLAIMS.iat + 0.5, -1, 1e300, null, false],
    client_signature: [7, null, [CLAIMS.client_signature]],
  };
  const missing = ["sub", "aud", "iat", "client_signature"].map((name) =>
    malformed(`no ${name}`, makeJwt({ claims: claimsWithout(name) })),
  );
  const wrongForms = Object.entries(wrong).flatMap(([name, values]) =>
    values.map((value) =>
      malformed(`${name} is ${JSON.stringify(value)}`, makeJwt({ claims: { ...CLAIMS, [name]: value } })),
    ),
  );
  return [...missing, ...wrongForms];
}

function malformed(name: string, jwt: string): Vector {
  return refuse("malformed", name, jwt);
}

/** Encodes with as much trailing white space as it takes to leave four unused bits in the last character. */
function withSpareBits(value: object): string {
  let json = JSON.stringify(value);
  while (json.length % 3 !== 1) json += " ";
  return part(json);
}

/** Sets an unused bit of the last character: a lenient decoder reads the same bytes (RFC 4648 section 3.5). */
function withStrayBit(text: string): string {
  const last = BASE64URL.indexOf(text.slice(-1));
  return text.slice(0, -1) + BASE64URL.charAt(last | 1);
}
