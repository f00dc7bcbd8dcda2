import { Agent } from "node:http";
import { performance } from "node:perf_hooks";
import { parentPort } from "node:worker_threads";
import { type Answer, type Call, send } from "./send.ts";

/** Calls to one server by a number of clients; each client sends its next call when its last was answered. */
export interface Burst {
  port: number;
  clients: number;
  calls: readonly Call[];
}

export interface BurstResult {
  /** In the order of the calls. */
  answers: Answer[];
  /** Milliseconds from the first byte sent to the last byte read, one a call. */
  latencies: Float64Array<ArrayBuffer>;
  seconds: number;
  /** Share of the time in which this thread was busy: near 1 it would be the bottleneck itself. */
  utilization: number;
}

// The load generator has a thread of its own, so that nothing else of the benchmark delays it.
parentPort?.on("message", async (burst: Burst) => {
  const result = await run(burst);
  parentPort?.postMessage(result, [result.latencies.buffer]);
});

/** Connections to the server of the last burst, for the next one if that is to the same. */
let connections: { port: number; agent: Agent } | undefined;

function agentFor(port: number, clients: number): Agent {
  if (connections?.port === port) return connections.agent;
  connections?.agent.destroy();
  connections = { port, agent: new Agent({ keepAlive: true, maxSockets: clients, scheduling: "fifo" }) };
  return connections.agent;
}

async function run({ port, clients, calls }: Burst): Promise<BurstResult> {
  const agent = agentFor(port, clients);
  const answers: Answer[] = [];
  const latencies = new Float64Array(calls.length);
  let next = 0;
  const client = async () => {
    for (let place = next++; place < calls.length; place = next++) {
      const call = calls[place];
      if (!call) break;
      const startedAt = performance.now();
      answers[place] = await send(agent, port, call);
      latencies[place] = performance.now() - startedAt;
    }
  };
  const loop = performance.eventLoopUtilization();
  const startedAt = performance.now();
  await Promise.all(Array.from({ length: clients }, client));
  const seconds = (performance.now() - startedAt) / 1000;
  const { utilization } = performance.eventLoopUtilization(loop);
  return { answers, latencies, seconds, utilization };
}
