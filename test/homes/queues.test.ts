import { env } from "cloudflare:workers";
import { expect, it } from "vitest";
import { queueOf } from "../../src/worker/homes.ts";

it("a home in a jurisdiction sends to its own queue, any other home to home 1's (contract sections 17 and 25)", () => {
  const own = { send: () => {}, sendBatch: () => {} };
  // Where such a home is deployed, the types have its queue.
  const bound = Object.assign({}, env, { WEBHOOKS_2: own });
  expect([1, 2, 3].map((home) => queueOf(bound, home) === env.WEBHOOKS)).toEqual([true, false, true]);
  expect(queueOf(bound, 2)).toBe(own);
});
