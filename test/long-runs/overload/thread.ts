import { parentPort, workerData } from "node:worker_threads";
import { compactVerify, importSPKI } from "jose";
import { z } from "zod";
import { callAll, closedLoop, type Load, type OpenLoop, openLoop } from "./loops.ts";
import { Phones } from "./phones.ts";

/** What the load generator is asked for, one after the other. */
export type Order =
  | { kind: "closed"; seconds: number }
  /** Replies when the last call was answered or given up. */
  | { kind: "light"; seconds: number; rate: number }
  /** Replies when the last call became due: others may follow while phones still wait. */
  | { kind: "overload"; seconds: number; rate: number; connections: number; timeoutMilliseconds: number }
  /** Replies when no phone of the overload waits any more. */
  | { kind: "end" }
  /** Phones that were never answered ask again, at most so many. */
  | { kind: "again"; most: number }
  | { kind: "findings" };

/** What the phones know at the end. */
export interface Findings {
  answered: [userId: string, badgeId: string][];
  unanswered: number;
  wrong: string[];
  wrongCount: number;
  verifiedSignatures: number;
}

export type Reply = { kind: "progress"; load: Load } | { kind: "load"; load: Load } | ({ kind: "findings" } & Findings);

const CONNECTIONS = 64;
const PATIENT_MILLISECONDS = 20_000;

const { port, application, seed } = z
  .object({ port: z.number(), application: z.object({ id: z.string(), publicKey: z.string() }), seed: z.number() })
  .parse(workerData);
const phones = new Phones(application, seed);

const say = (reply: Reply): void => parentPort?.postMessage(reply);

// A thread of its own, so that nothing else of the run delays the calls.
parentPort?.on("message", async (order: Order) => {
  if (order.kind === "findings") say({ kind: "findings", ...(await findings()) });
  else say({ kind: "load", load: await follow(order) });
});

const patient = { port, connections: CONNECTIONS, timeoutMilliseconds: PATIENT_MILLISECONDS, seconds: 0 };
let overload: OpenLoop | undefined;

async function follow(order: Exclude<Order, { kind: "findings" }>): Promise<Load> {
  switch (order.kind) {
    case "closed":
      return closedLoop({ ...patient, seconds: order.seconds }, phones);
    case "light":
      return openLoop({ ...patient, seconds: order.seconds }, order.rate, phones).ended;
    case "overload":
      return startOverload(openLoop({ port, ...order }, order.rate, phones));
    case "end":
      if (overload === undefined) throw new Error("there was no overload");
      return overload.ended;
    case "again":
      return callAll(patient, phones, phones.asksAgain(order.most));
  }
}

/** @returns what came of it when its last call became due */
async function startOverload(loop: OpenLoop): Promise<Load> {
  overload = loop;
  // Latencies are many numbers, and of no use before the end.
  const soFar = (): Load => ({ ...loop.load, latencies: [] });
  const reports = setInterval(() => say({ kind: "progress", load: soFar() }), 1000);
  await loop.offered;
  clearInterval(reports);
  return soFar();
}

async function findings(): Promise<Findings> {
  const pem = `-----BEGIN PUBLIC KEY-----\n${application.publicKey}\n-----END PUBLIC KEY-----`;
  const key = await importSPKI(pem, "ES256");
  const forged: string[] = [];
  for (const signature of phones.signatures) await compactVerify(signature, key).catch(() => forged.push(signature));
  return {
    answered: phones.answered,
    unanswered: phones.unansweredCount,
    wrong: [...phones.wrong, ...forged.slice(0, 1).map((signature) => `does not verify: ${signature}`)],
    wrongCount: phones.wrongCount + forged.length,
    verifiedSignatures: phones.signatures.length - forged.length,
  };
}
