import { Agent, request } from "node:http";
import { performance } from "node:perf_hooks";
import { setTimeout as wait } from "node:timers/promises";
import * as z from "zod";

/**
 * A process of doors that listen and decide nothing, so that they take little of the machine (contract section 26). It is given its
 * doors in a message, and sends one when all of them are connected, and when all of them have a change.
 */

const doors = z.object({ port: z.int(), applicationId: z.string(), secrets: z.array(z.string()) });

export type Doors = z.infer<typeof doors>;

/** When the last door had a change, in milliseconds since 1970. */
export const arrival = z.object({ lastAt: z.number() });

const delta = z.object({ change: z.int(), entries: z.array(z.unknown()) });

const agent = new Agent({ keepAlive: true });

async function call({ port, applicationId }: Doors, secret: string, have: number): Promise<z.infer<typeof delta>> {
  const headers = { applicationid: applicationId, applicationsecret: secret };
  const { promise, resolve, reject } = Promise.withResolvers<string>();
  const sent = request({ agent, host: "127.0.0.1", port, path: `/v1/live?have=${have}`, headers }, async (response) => {
    const text = Buffer.concat(await response.toArray()).toString();
    if (response.statusCode === 200) resolve(text);
    else reject(new Error(text));
  });
  sent.once("error", reject).end();
  return delta.parse(JSON.parse(Buffer.from((await promise).split(".")[1] ?? "", "base64url").toString()));
}

/** How many doors have each change. */
const counts = new Map<number, number>();

async function listen(all: Doors, secret: string): Promise<never> {
  for (let have = 0; ; ) {
    const { change, entries } = await call(all, secret, have).catch(() => ({ change: 0, entries: [] }));
    if (change === 0) await wait(500 + Math.random() * 500);
    // With its first response it is connected.
    else if (have === 0) note(all, 0);
    else if (change > have && entries.length > 0) note(all, change);
    have = change === 0 ? have : change;
  }
}

function note({ secrets }: Doors, change: number): void {
  const count = (counts.get(change) ?? 0) + 1;
  counts.set(change, count);
  if (count < secrets.length) return;
  counts.delete(change);
  process.send?.({ lastAt: performance.timeOrigin + performance.now() } satisfies z.infer<typeof arrival>);
}

process.once("message", (message) => {
  const all = doors.parse(message);
  for (const secret of all.secrets) void listen(all, secret);
});

// The measuring process has ended.
process.once("disconnect", () => process.exit());
