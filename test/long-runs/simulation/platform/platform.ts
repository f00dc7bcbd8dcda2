import type { Dice } from "../../dice.ts";
import type { Trace } from "../trace.ts";
import type { D1Server } from "./d1.ts";
import type { Faults } from "./faults.ts";
import type { Network } from "./network.ts";
import type { ObjectHost } from "./objects.ts";
import type { QueueServer } from "./queue.ts";
import type { Timeline } from "./timeline.ts";
import type { Wire } from "./wire.ts";

/** What Cloudflare is to the service. */
export interface Platform {
  timeline: Timeline;
  trace: Trace;
  faults: Faults;
  wire: Wire;
  d1: D1Server;
  objects: ObjectHost;
  queue: QueueServer;
  network: Network;
  /** The service's own dice: `Math.random` and `crypto.getRandomValues`. */
  serviceDice: Dice;
}
