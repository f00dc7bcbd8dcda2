import { Agent } from "node:http";
import { z } from "zod";
import { prepareContestants } from "./contestants.ts";
import { type Clients, existing, type Operation, pageOf, sign } from "./operations.ts";
import { DRIVE_PATH, type Drive } from "./own-cost/drive.ts";
import { WrongAnswer } from "./rounds.ts";
import { type Answer, type Call, send } from "./send.ts";
import type { Side, SideName } from "./side.ts";

/** The calls whose own cost is measured, by the names they have in the figures. */
export const OWN_COST_OPERATIONS: Readonly<Record<string, Operation>> = {
  login: existing,
  signature: sign,
  page: pageOf(100),
};

/** A side whose Worker is called by a driver in its own isolate (own-cost/driver.ts). */
interface Driver {
  side: Side;
  agent: Agent;
  clients: Clients;
}

export interface Drivers {
  service: Driver;
  floor: Driver;
  /** The floor again, in another process. */
  twin: Driver;
}

const SIDES = ["serviceOwnCost", "floorOwnCost", "twinOwnCost"] as const satisfies readonly SideName[];

/** Builds and starts the Workers, each with one application. */
export async function startDrivers(
  directory: string,
  inspects: boolean,
  started: (side: Side) => void,
): Promise<Drivers> {
  const preparation = { directory, inspects, consumes: false, started };
  const contestants = await prepareContestants(SIDES, preparation, async (_, make) => ({
    withWebhook: [await make(0, null)],
    withoutWebhook: [],
  }));
  const driver = (wanted: SideName): Driver => {
    const found = contestants.find(({ side }) => side.name === wanted);
    if (!found) throw new Error(`${wanted} was not started`);
    return { side: found.side, clients: found.clients, agent: new Agent({ keepAlive: true, maxSockets: 1 }) };
  };
  return { service: driver("serviceOwnCost"), floor: driver("floorOwnCost"), twin: driver("twinOwnCost") };
}

const driven = z.object({ status: z.number(), body: z.string() });

export type Subject = Pick<Drive, "subject" | "logs">;

/** Lets a Worker be called `times` times, one call after the other, and checks the last response. @throws WrongAnswer */
export async function drive(driver: Driver, name: string, times: number, subject: Subject): Promise<void> {
  const operation = OWN_COST_OPERATIONS[name];
  if (!operation) throw new Error(`no operation is named ${name}`);
  const { needs } = operation;
  if (needs && needs.missing(driver.clients, 1) > 0) await callOnce(driver, needs.operation);
  const [expected] = operation.next(driver.clients, 1);
  if (!expected) throw new Error(`${name} has no call`);
  const order: Drive = { call: withLength(expected.call), times, ...subject };
  const answer = await request(driver, { method: "POST", path: DRIVE_PATH, headers: {}, body: JSON.stringify(order) });
  if (answer.status !== 200) throw new WrongAnswer(`${driver.side.name}, ${name}: ${answer.status} ${answer.body}`);
  if (subject.subject === "worker")
    await expected.check({ ...driven.parse(JSON.parse(answer.body)), retryAfter: null });
}

/** As a call comes over a connection: a body without its length would be read as a stream. */
function withLength(call: Call): Call {
  if (call.body === undefined) return call;
  return { ...call, headers: { ...call.headers, "content-length": String(Buffer.byteLength(call.body)) } };
}

async function callOnce(driver: Driver, operation: Operation): Promise<void> {
  for (const { call, check } of operation.next(driver.clients, 1)) await check(await request(driver, call));
}

const request = ({ agent, side }: Driver, call: Call): Promise<Answer> => send(agent, side.port, call);
