import { generateKeyPairSync, randomBytes, sign } from "node:crypto";
import { mkdtempSync, rmSync } from "node:fs";
import { tmpdir } from "node:os";
import { join } from "node:path";
import { deflateSync } from "node:zlib";
import { DoorControl } from "./door-control.ts";

/**
 * `node src/examples/door-bench.ts [badges]` measures how long the example door takes for one badge signature. It uses a key
 * set, a status list of 2^17 badges of which a tenth have ended, and a different signature each time, without any network.
 */
const CHECKS = Number(process.argv[2] ?? 5000);
const WARM_UP_CHECKS = 500;
const ENTRIES = 131_072;
const ENDED = ENTRIES / 10;
const KEY_ID = "bench";
const APPLICATION_ID = "app_bench";
const SERVICE_URL = "https://badges.example";
const LIST_URI = `${SERVICE_URL}/v1/applications/${APPLICATION_ID}/status/0`;

const { privateKey, publicKey } = generateKeyPairSync("ec", { namedCurve: "P-256" });
const nowSeconds = Math.floor(Date.now() / 1000);

function jwt(typ: string, claims: object): string {
  const part = (value: object) => Buffer.from(JSON.stringify(value)).toString("base64url");
  const input = `${part({ alg: "ES256", kid: KEY_ID, typ })}.${part(claims)}`;
  const signature = sign("sha256", Buffer.from(input), { key: privateKey, dsaEncoding: "ieee-p1363" });
  return `${input}.${signature.toString("base64url")}`;
}

function badgeSignature(idx: number): string {
  return jwt("badge-signature+jwt", {
    sub: String(1_000_000_000 + idx),
    aud: APPLICATION_ID,
    iat: nowSeconds,
    client_signature: randomBytes(72).toString("base64"),
    status: { status_list: { idx, uri: LIST_URI } },
  });
}

function statusList(): string {
  const statuses = Buffer.alloc(ENTRIES / 4);
  for (let ended = 0; ended < ENDED; ended++) {
    const index = randomBytes(4).readUInt32LE() % ENTRIES;
    statuses.writeUInt8(statuses.readUInt8(index >> 2) | (1 << ((index & 3) * 2)), index >> 2);
  }
  const lst = deflateSync(statuses, { level: 9 }).toString("base64url");
  const times = { iat: nowSeconds, exp: nowSeconds + 86_400, ttl: 60 };
  return jwt("statuslist+jwt", { sub: LIST_URI, ...times, status_list: { bits: 2, lst } });
}

const list = statusList();
const keySet = JSON.stringify({ keys: [{ ...publicKey.export({ format: "jwk" }), kid: KEY_ID }] });

function serve(url: string): Promise<Response> {
  if (url === LIST_URI) return Promise.resolve(new Response(list));
  return Promise.resolve(url.endsWith("/jwks.json") ? new Response(keySet) : new Response(null, { status: 404 }));
}

async function measure(action: () => Promise<unknown>): Promise<number> {
  const start = performance.now();
  await action();
  return performance.now() - start;
}

const folder = mkdtempSync(join(tmpdir(), "door-bench-"));
try {
  const door = await DoorControl.open({
    serviceUrl: SERVICE_URL,
    applicationId: APPLICATION_ID,
    file: join(folder, "door.json"),
    log: console.error,
    fetch: serve,
  });
  const refreshed = await measure(() => door.refresh());
  const jwts = Array.from({ length: WARM_UP_CHECKS + CHECKS }, (_, index) => badgeSignature((index * 7919) % ENTRIES));
  const outcomes = { open: 0, revoked: 0 };
  const times: number[] = [];
  for (const each of jwts) {
    times.push(
      await measure(async () => {
        const result = await door.check(each);
        if (!result.ok && result.reason !== "revoked") throw new Error(`refused: ${result.reason}`);
        outcomes[result.ok ? "open" : "revoked"] += 1;
      }),
    );
  }
  const warm = times.slice(WARM_UP_CHECKS).sort((one, other) => one - other);
  const at = (share: number) => `${(warm[Math.floor((warm.length - 1) * share)] ?? Number.NaN).toFixed(3)} ms`;
  console.log(`list of ${list.length} characters read in ${refreshed.toFixed(1)} ms, written to disk`);
  console.log(
    `first check ${times[0]?.toFixed(3)} ms; then of ${warm.length}: median ${at(0.5)}, 99 % ${at(0.99)}, slowest ${at(1)}`,
  );
  console.log(`${outcomes.open} opened, ${outcomes.revoked} were refused as revoked`);
} finally {
  rmSync(folder, { recursive: true });
}
