import type { Load } from "./load.ts";
import { pack } from "./pack.ts";
import { D1_READ_MILLISECONDS, D1_WRITE_MILLISECONDS, LIMITS, MAX_USE } from "./platform.ts";

/** A limit of the platform, and how much of it is used: 1 is all. */
export interface Use {
  limit: "D1 time" | "D1 storage" | "object calls" | "object storage" | "queue messages";
  used: number;
}

export interface Plan {
  d1: number;
  objects: number;
  queues: number;
  /** Pieces of the largest application, each with an object, a sub-range of its numbers and a place in one D1. */
  shardsOfLargest: number;
  /** Applications of more than one piece. */
  split: number;
  /** D1s if logins, signatures and pages are read from replicas. */
  d1WithReplicas: number;
  /** The fullest of all D1s, objects and queues, as a share of its limit. */
  fullest: number;
}

/** How much of each limit a load uses, the fullest first. @param reads whether D1's primary answers reads too */
export function usesOf(load: Load, reads: "primary" | "replicas"): [Use, ...Use[]] {
  const readTime = reads === "primary" ? load.d1Reads * D1_READ_MILLISECONDS : 0;
  const time: Use = { limit: "D1 time", used: (readTime + load.d1Writes * D1_WRITE_MILLISECONDS) / 1000 };
  const others: Use[] = [
    { limit: "D1 storage", used: load.d1Gigabytes / LIMITS.D1_GIGABYTES },
    { limit: "object calls", used: load.objectCalls / LIMITS.OBJECT_CALLS_PER_SECOND },
    { limit: "object storage", used: load.objectGigabytes / LIMITS.OBJECT_GIGABYTES },
    { limit: "queue messages", used: load.queueMessages / LIMITS.QUEUE_MESSAGES_PER_SECOND },
  ];
  const [first = time, ...rest] = [time, ...others].sort((one, other) => other.used - one.used);
  return [first, ...rest];
}

/** D1s, objects and queues such that none uses more than `MAX_USE` of its limits. */
export function planFor(loads: readonly Load[]): Plan {
  const pieces = piecesOf(loads, "primary");
  const d1 = pack(pieces.map(({ sizes }) => sizes));
  const messages = loads.reduce((all, { queueMessages }) => all + queueMessages, 0);
  const queues = Math.max(1, Math.ceil(messages / LIMITS.QUEUE_MESSAGES_PER_SECOND / MAX_USE));
  const perObject = pieces.map(({ object }) => object);
  return {
    d1: d1.length,
    objects: pieces.length,
    queues,
    shardsOfLargest: pieces[0]?.of ?? 0,
    split: loads.filter((load) => shardsOf(load, "primary") > 1).length,
    d1WithReplicas: pack(piecesOf(loads, "replicas").map(({ sizes }) => sizes)).length,
    fullest:
      MAX_USE * Math.max(...d1.flat(), ...perObject, messages / queues / LIMITS.QUEUE_MESSAGES_PER_SECOND / MAX_USE),
  };
}

/** The queue is shared by all and is no reason to split an application. */
function shardsOf(load: Load, reads: "primary" | "replicas"): number {
  const uses = usesOf(load, reads).filter(({ limit }) => limit !== "queue messages");
  return Math.max(1, ...uses.map(({ used }) => Math.ceil(used / MAX_USE)));
}

/** Applications cut into equal pieces that fit, their sizes as shares of what may be used: of a D1, and of an object. */
function piecesOf(loads: readonly Load[], reads: "primary" | "replicas") {
  return loads.flatMap((load) => {
    const shards = shardsOf(load, reads);
    const used = new Map(usesOf(load, reads).map((use) => [use.limit, use.used / shards / MAX_USE]));
    const size = (limit: Use["limit"]) => used.get(limit) ?? 0;
    const sizes = [size("D1 time"), size("D1 storage")];
    const object = Math.max(size("object calls"), size("object storage"));
    return Array.from({ length: shards }, () => ({ of: shards, sizes, object }));
  });
}
