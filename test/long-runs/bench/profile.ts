import { once } from "node:events";
import { z } from "zod";
import type { Side } from "./sides.ts";

const message = z.object({ id: z.number().optional(), result: z.unknown().optional() });
const stopped = z.object({ profile: z.unknown() });

const SAMPLING_MICROSECONDS = 200;

/**
 * Records where a side's Worker spends its time while `work` runs, by the inspector of workerd (Chrome DevTools
 * Protocol, domain Profiler). Waiting counts as idle; while the inspector listens, log lines cost more than without it.
 *
 * @returns a .cpuprofile, which Chrome's developer tools and editors open
 */
export async function profile(side: Side, work: () => Promise<unknown>): Promise<string> {
  const socket = new WebSocket(`${(await side.inspectorUrl()).origin}/core:user:${side.name}`);
  await once(socket, "open");
  let lastId = 0;
  const ask = (method: string, params = {}) =>
    new Promise<unknown>((resolve) => {
      const asked = ++lastId;
      socket.addEventListener("message", ({ data }) => {
        const { id, result } = message.parse(JSON.parse(String(data)));
        if (id === asked) resolve(result);
      });
      socket.send(JSON.stringify({ id: asked, method, params }));
    });
  await ask("Profiler.enable");
  await ask("Profiler.setSamplingInterval", { interval: SAMPLING_MICROSECONDS });
  await ask("Profiler.start");
  await work();
  const recorded = stopped.parse(await ask("Profiler.stop"));
  socket.close();
  return JSON.stringify(recorded.profile);
}
