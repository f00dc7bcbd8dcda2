import { readFileSync, writeFileSync } from "node:fs";
import { fileURLToPath } from "node:url";
import * as z from "zod";
import { acceptedVectors } from "./verify-vectors/accepted.ts";
import { OTHER_KEY, SIGNING_KEY, type TestKey } from "./verify-vectors/keys.ts";
import { claimVectors } from "./verify-vectors/refused-claims.ts";
import { malformedVectors } from "./verify-vectors/refused-forms.ts";
import { headerVectors } from "./verify-vectors/refused-headers.ts";
import { badSignatureVectors } from "./verify-vectors/refused-signatures.ts";
import type { Vector } from "./verify-vectors/vector.ts";

/**
 * Writes `src/verify/vectors.json`: `node src/dev/make-verify-vectors.ts`. Only the ECDSA signatures differ from run to run,
 * so a case that differs from the published one in nothing else keeps its published signature. The tests check the result.
 */

const DESCRIPTION =
  "Test vectors for verifiers of badge signatures (JWS ES256, RFC 7515 and RFC 7518). Each case is self-contained: " +
  "verify `jwt` with the JWK Set `publicKeys` or with the key `publicKey` (base64 of the SPKI DER), for `applicationId`, " +
  "at `nowSeconds` (since 1970-01-01 UTC), with `clockToleranceSeconds` and, where they are present, `maxAgeSeconds`, " +
  "`badgeNumber` and `clientSignature`. `expected` is ok or the reason for the refusal; for ok, `claims` and `keyId` are " +
  "what the JWT states.";

const KEYS_WARNING =
  "TEST ONLY. These private keys are examples printed in RFC 7515 appendix A.3 and RFC 7517 appendix A.2: everyone knows " +
  "them. Never trust a signature made with one of them outside a test.";

function describe(key: TestKey): object {
  return { publicJwk: key.publicJwk, spki: key.spki, privateJwkForTestsOnly: key.privateJwk };
}

const path = fileURLToPath(new URL("../verify/vectors.json", import.meta.url));
const publishedSchema = z.object({ cases: z.array(z.looseObject({ name: z.string(), jwt: z.string() })) });
const published = publishedSchema.parse(JSON.parse(readFileSync(path, "utf8")));
const byName = new Map(published.cases.map((vector) => [vector.name, vector]));

/** A case without its signature, compact or in JSON: ECDSA signatures are random, so they differ each time. */
function unsigned({ name, jwt, ...rest }: { name: string; jwt: string }): string {
  const [header, payload] = jwt.replace(/"signature":"[^"]*"/, "").split(".");
  return JSON.stringify({ name, ...rest, header, payload });
}

function asPublished(vector: Vector): Vector {
  const known = byName.get(vector.name);
  return known !== undefined && unsigned(known) === unsigned(vector) ? { ...vector, jwt: known.jwt } : vector;
}

const made = [
  ...acceptedVectors(),
  ...malformedVectors(),
  ...headerVectors(),
  ...badSignatureVectors(),
  ...claimVectors(),
];
const vectors = {
  description: DESCRIPTION,
  testKeys: { warning: KEYS_WARNING, signing: describe(SIGNING_KEY), other: describe(OTHER_KEY) },
  cases: made.map(asPublished),
};

// A list of one word goes on one line, as the project's formatter writes it.
const json = JSON.stringify(vectors, null, 2).replace(/\[\s+("\w+")\s+\]/g, "[$1]");
writeFileSync(path, `${json}\n`);
console.log(`${vectors.cases.length} cases written`);
