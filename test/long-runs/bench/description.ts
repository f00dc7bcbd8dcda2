/** What `npm run bench -- --help` says. */
export const DESCRIPTION = `Measures what the service's own code costs, and what its design gains.

Workers run on the same runtime, each in a process of its own with a D1 of its
own on disk, built alike, and answer the same calls of 64 clients:

  service  src/worker/index.ts, built as for a deployment
  floor    test/long-runs/bench/floor.ts, the smallest hand-written Worker that makes the
           same platform calls: no router, no validation, no query builder;
           its deliveries are the service's
  twin     the floor once more: floor against floor is what noise looks like
  peer     test/long-runs/bench/peer.ts, the design most people would write: Hono and D1,
           a counter row, webhooks sent after the answer

A round measures every operation on every side; the sides follow each other
directly, who is first rotates. What is shown are medians of the rounds' ratios
with their 95 % intervals. A row is a tie when its interval overlaps that of
floor against floor.

Ratios are the result, absolute times are not: D1, objects, queues and rate
limits are simulated locally, on the one thread of each runtime, and cost
every side the same. The CPU ratio hardly changes when others use the machine.

Every answer is checked: its status, that no badge number comes twice, that a
device keeps its number and that signatures verify. Rate limits are asked and
never refuse. Every side sends its webhooks while it is measured, and its CPU
time counts until the last one has arrived. The service writes one log line a
request (discarded here), floor and peer write none.

With --own-cost, service and floor are called in their own isolates, by a
driver on the same runtime, with D1 and rate limits memoised and log lines
discarded: what is left is the CPU time of the Worker's code, of WebCrypto and
of the runtime's requests and responses. Figures are of the fifth of many short
measurements that was disturbed least; floor against floor is shown beside.

--json writes {measuredAt, machine, plan, operations, measurements}: the ratios
shown, and each single measurement (operation, side, round, calls, rps, p50Ms,
p99Ms, cpuMs); with --own-cost {measuredAt, machine, isCpuTime, operations:
[{name, serviceMicroseconds, floorMicroseconds, …, measurements}]}.`;
