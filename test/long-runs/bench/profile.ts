import { once } from "node:events";
import { z } from "zod";
import type { Side } from "./sides.ts";

const response = z.object({ result: z.object({ profile: z.unknown() }) });

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
  // One request at a time, and nothing enabled that tells events: the next message is the response.
  const ask = async (method: string, params = {}): Promise<unknown> => {
    socket.send(JSON.stringify({ id: 1, method, params }));
    const [{ data }] = await once(socket, "message");
    return JSON.parse(String(data));
  };
  await ask("Profiler.enable");
  await ask("Profiler.setSamplingInterval", { interval: SAMPLING_MICROSECONDS });
  await ask("Profiler.start");
  await work();
  const { result } = response.parse(await ask("Profiler.stop"));
  socket.close();
  return JSON.stringify(result.profile);
}
