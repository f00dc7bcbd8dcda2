import { existsSync, readFileSync, writeFileSync } from "node:fs";
import { fileURLToPath } from "node:url";
import * as z from "zod";
import { describeKey, SIGNING_KEY } from "./verify-vectors/keys.ts";
import { PHONE_KEY, possessionVectors } from "./verify-vectors/possession.ts";

/** Writes `src/verify/vectors-possession.json`: `node src/dev/make-possession-vectors.ts`. The tests check the result. */

const DESCRIPTION =
  "Test vectors for doors that challenge phones (README, section The door's challenge). Each case is self-contained: " +
  "verify `badgeSignature` with the key `publicKey` (base64 of the SPKI DER), for `applicationId`, at `nowSeconds` (since " +
  "1970-01-01 UTC), with `clockToleranceSeconds`; then `response` as the response to `challenge`, which the door `doorId` " +
  "sent. `expected` is ok or the reason for the refusal.";

const KEYS_WARNING =
  "TEST ONLY. These private keys are examples printed in RFC 7515 appendix A.3 and RFC 6979 appendix A.2.5: everyone " +
  "knows them. Never trust a signature made with one of them outside a test.";

const path = fileURLToPath(new URL("../verify/vectors-possession.json", import.meta.url));
const publishedSchema = z.object({ cases: z.array(z.object({ badgeSignature: z.string(), response: z.string() })) });
const published = existsSync(path) ? publishedSchema.parse(JSON.parse(readFileSync(path, "utf8"))).cases : [];

const cases = possessionVectors(published.flatMap(({ badgeSignature, response }) => [badgeSignature, response]));
const vectors = {
  description: DESCRIPTION,
  testKeys: { warning: KEYS_WARNING, signing: describeKey(SIGNING_KEY), phone: describeKey(PHONE_KEY) },
  cases,
};
writeFileSync(path, `${JSON.stringify(vectors, null, 2)}\n`);
console.log(`${cases.length} cases written`);
