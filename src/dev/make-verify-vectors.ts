import { readFileSync, writeFileSync } from "node:fs";
import { fileURLToPath } from "node:url";
import * as z from "zod";
import { acceptedVectors } from "./verify-vectors/accepted.ts";
import { cardVectors } from "./verify-vectors/cards.ts";
import { describeKey, OTHER_KEY, SIGNING_KEY } from "./verify-vectors/keys.ts";
import { claimVectors } from "./verify-vectors/refused-claims.ts";
import { malformedVectors } from "./verify-vectors/refused-forms.ts";
import { headerVectors } from "./verify-vectors/refused-headers.ts";
import { badSignatureVectors } from "./verify-vectors/refused-signatures.ts";
import { statusVectors } from "./verify-vectors/status-badges.ts";
import { statusListEncodings } from "./verify-vectors/status-encodings.ts";
import { hostileListVectors } from "./verify-vectors/status-hostile.ts";
import type { Vector } from "./verify-vectors/vector.ts";

/**
 * Writes `src/verify/vectors.json`: `node src/dev/make-verify-vectors.ts`. Only the ECDSA signatures differ from run to run,
 * so a case that differs from the published one in nothing else keeps its published signature. The tests check the result.
 */

const DESCRIPTION =
  "Test vectors for verifiers of badge signatures (JWS ES256, RFC 7515 and RFC 7518). Each case is self-contained: " +
  "verify `jwt` with the JWK Set `publicKeys` or with the key `publicKey` (base64 of the SPKI DER), for `applicationId`, " +
  "at `nowSeconds` (since 1970-01-01 UTC), with `clockToleranceSeconds` and, where they are present, `maxAgeSeconds`, " +
  "`badgeNumber`, `clientSignature`, `statusLists` (by URI), `missingStatusList` and `staleStatusList`. `expected` is ok or " +
  "the reason for the refusal; for ok, `claims` and `keyId` are what the JWT states, and `acceptedDespite` is what the " +
  "policy of the case let pass. `statusListFailure` is why the only list of the case cannot be read, for verifiers that " +
  "read lists by themselves. `statusListEncodings` are lists' bytes apart from any JWT: of `entries` of `bits` each, all " +
  "are 0 but `statuses`. `cards`, `refusedCards` and `unfitNumbers` are for encoders and decoders of card formats.";

const KEYS_WARNING =
  "TEST ONLY. These private keys are examples printed in RFC 7515 appendix A.3 and RFC 7517 appendix A.2: everyone knows " +
  "them. Never trust a signature made with one of them outside a test.";

const path = fileURLToPath(new URL("../verify/vectors.json", import.meta.url));
const publishedCase = z.looseObject({
  name: z.string(),
  jwt: z.string(),
  statusLists: z.record(z.string(), z.string()).exactOptional(),
});
const publishedSchema = z.object({ cases: z.array(publishedCase) });
const published = publishedSchema.parse(JSON.parse(readFileSync(path, "utf8")));
const byName = new Map(published.cases.map((vector) => [vector.name, vector]));

/** A JWT without its signature, compact or in JSON: ECDSA signatures are random, so they differ each time. */
function unsignedJwt(jwt: string): string {
  const [header, payload] = jwt.replace(/"signature":"[^"]*"/, "").split(".");
  return `${header}.${payload}`;
}

function unsigned({ jwt, statusLists = {}, ...rest }: Pick<Vector, "name" | "jwt" | "statusLists">): string {
  const lists = Object.entries(statusLists).map(([uri, list]) => [uri, unsignedJwt(list)]);
  return JSON.stringify({ ...rest, jwt: unsignedJwt(jwt), lists });
}

function asPublished(vector: Vector): Vector {
  const known = byName.get(vector.name);
  if (known === undefined || unsigned(known) !== unsigned(vector)) return vector;
  const { jwt, statusLists } = known;
  return { ...vector, jwt, ...(statusLists === undefined ? {} : { statusLists }) };
}

const made = [
  ...acceptedVectors(),
  ...malformedVectors(),
  ...headerVectors(),
  ...badSignatureVectors(),
  ...claimVectors(),
  ...statusVectors(),
  ...hostileListVectors(),
];
const vectors = {
  description: DESCRIPTION,
  testKeys: { warning: KEYS_WARNING, signing: describeKey(SIGNING_KEY), other: describeKey(OTHER_KEY) },
  cases: made.map(asPublished),
  statusListEncodings: statusListEncodings(),
  ...cardVectors(),
};

// A list of one word goes on one line, as the project's formatter writes it.
const json = JSON.stringify(vectors, null, 2).replace(/\[\s+("\w+")\s+\]/g, "[$1]");
writeFileSync(path, `${json}\n`);
console.log(`${vectors.cases.length} cases written`);
