import { readFileSync } from "node:fs";
import { describe, expect, it } from "vitest";
import {
  CLIENT_IP_CALLS_PER_MINUTE,
  DEVICE_CALLS_PER_MINUTE,
  REFUSED_CALLS_PER_MINUTE,
} from "../../src/shared/limits.ts";

/** One `[[ratelimits]]` of wrangler.toml. */
const RATE_LIMIT =
  /name = "(?<name>\w+_LIMIT)"\nnamespace_id = "\d+"\nsimple = \{ limit = (?<limit>\d+), period = 60 \}/g;

describe("the rate limits in the reference (contract section 7)", () => {
  it("equal the platform's limits locally: those of a deployment may be its own", () => {
    const toml = readFileSync(new URL("../../wrangler.toml", import.meta.url), "utf8");
    const [config = ""] = toml.split(/^\[env\./m);
    const limits = [...config.matchAll(RATE_LIMIT)].map(({ groups }) => `${groups?.name} ${groups?.limit}`);
    expect([DEVICE_CALLS_PER_MINUTE, CLIENT_IP_CALLS_PER_MINUTE, REFUSED_CALLS_PER_MINUTE]).toEqual([60, 1200, 120]);
    expect(limits).toEqual(["DEVICE_LIMIT 60", "CLIENT_IP_LIMIT 1200", "REFUSED_CALL_LIMIT 120"]);
    expect(config.match(/\[\[ratelimits\]\]/g)).toHaveLength(limits.length);
  });
});
