import { createPublicKey } from "node:crypto";
import { compactVerify } from "jose";
import { z } from "zod";
import type { Call, Exchange, Expectation, HttpResponse } from "./load.ts";
import type { BenchApplication } from "./sides.ts";

/** The applications of one side. */
export interface Applications {
  withWebhook: BenchApplication[];
  withoutWebhook: BenchApplication[];
  /** Without a webhook, every other one in home 2 (contract section 17). */
  inTwoHomes: BenchApplication[];
}

/** Of a device. */
interface Badge {
  udid: string;
  userId: string;
  badgeId: string;
  /** SPKI DER, base64. */
  publicKey: string;
}

/** What the clients of one side know: they remember what they were answered, and hold the side to it. */
export interface Clients {
  applications: Applications;
  /** Devices of the first application whose badge is active. */
  devices: Badge[];
  /** Those of them whose badge is suspended. */
  suspended: Badge[];
  /** Unclaimed invitations of the first application. */
  invitations: { id: string; badgeId: string }[];
  /** Every badge number that was ever answered as new. */
  badgeIds: Set<string>;
  /** Counts what must be different each time. */
  counter: number;
}

export function newClients(applications: Applications): Clients {
  return { applications, devices: [], suspended: [], invitations: [], badgeIds: new Set(), counter: 0 };
}

export interface Operation {
  name: string;
  /** Whether each call makes a webhook. */
  sendsWebhooks?: true;
  /** Whether only the service knows such calls: then no other side is measured. */
  isServiceOnly?: true;
  /** The next call of these clients. */
  next(clients: Clients): Expectation;
  /** An operation whose results, kept in this list of the clients, this one uses up: one a call, or `one` for all calls. */
  needs?: { operation: Operation; list: "devices" | "suspended" | "invitations"; one?: true };
}

/** Calls that have to be made before `count` calls of an operation. */
export function neededCalls({ needs }: Operation, clients: Clients, count: number): Expectation[] {
  if (!needs) return [];
  return nextCalls(needs.operation, clients, (needs.one ? 1 : count) - clients[needs.list].length);
}

/** The next calls, made together. */
export const nextCalls = ({ next }: Operation, clients: Clients, count: number): Expectation[] =>
  Array.from({ length: Math.max(0, count) }, () => next(clients));

/** @returns what is wrong with the responses, in words */
export async function faultsOf(exchanges: readonly Exchange[]): Promise<string[]> {
  const faults: string[] = [];
  for (const { call, check, response } of exchanges) {
    try {
      await check(response);
    } catch (error) {
      faults.push(`${call.path}: ${error instanceof Error ? error.message : String(error)}`);
    }
  }
  return faults;
}

const METADATA = { deviceModel: "Pixel 9", os: "Android", osVersion: "16", sdkVersion: "3.2.1" };
const CLIENT_SIGNATURE = Buffer.alloc(72, "signature").toString("base64");
const EXPIRES_IN_MILLISECONDS = 24 * 3600 * 1000;

const createdBadge = z.object({ badgeId: z.string().regex(/^[1-9]\d*$/), publicKey: z.string().min(1) });
const existingBadge = z.object({ badgeId: z.string() });
const signature = z.object({ signature: z.string() });
const signedClaims = z.object({ sub: z.string() });
const invitation = z.object({ id: z.string(), badgeId: z.string(), expiresAt: z.string() });
const page = z.object({ badges: z.array(z.object({ id: z.string(), userId: z.string(), metadata: z.object() })) });
const stepped = z.object({ id: z.string(), state: z.enum(["active", "suspended"]) });
const changesPage = z.object({ changes: z.array(z.object({ id: z.string() })), more: z.boolean() });

/** A response with this status and a body of this form, which is then looked at. */
const granted =
  <Schema extends z.ZodType>(status: number, schema: Schema, look: (body: z.infer<Schema>) => void | Promise<void>) =>
  ({ status: actual, body }: HttpResponse) => {
    if (actual !== status) throw new Error(`${actual} instead of ${status}: ${body.slice(0, 200)}`);
    return look(schema.parse(JSON.parse(body)));
  };

function expectSame(what: string, actual: string | number, expected: string | number): void {
  if (actual !== expected) throw new Error(`${what}: ${actual} instead of ${expected}`);
}

const post = (path: string, { id }: BenchApplication, udid: string, body: unknown): Call => {
  return { method: "POST", path, headers: { applicationid: id, udid }, body: JSON.stringify(body) };
};

function serverCall(method: Call["method"], path: string, clients: Clients): Call {
  const { id, secret } = first(clients);
  return { method, path, headers: { applicationid: id, applicationsecret: secret } };
}

function first({ applications: { withWebhook } }: Clients): BenchApplication {
  const [application] = withWebhook;
  if (!application) throw new Error("a side has applications");
  return application;
}

function noteNew({ badgeIds }: Clients, badgeId: string): void {
  if (badgeIds.has(badgeId)) throw new Error(`badge number ${badgeId} was given out twice`);
  badgeIds.add(badgeId);
}

/** @param most applications that the devices belong to, in turn */
function newBadge(name: string, kind: keyof Applications, most: number): Operation {
  return {
    name,
    ...(kind === "withWebhook" && { sendsWebhooks: true }),
    ...(kind === "inTwoHomes" && { isServiceOnly: true }),
    next(clients) {
      const applications = clients.applications[kind].slice(0, most);
      const application = applications[clients.counter % applications.length] ?? first(clients);
      const [udid, userId] = [`device-${clients.counter}`, `user-${clients.counter++}`];
      return {
        call: post("/v1/badge", application, udid, { userId, metadata: METADATA }),
        check: granted(201, createdBadge, ({ badgeId, publicKey }) => {
          noteNew(clients, badgeId);
          if (application === first(clients)) clients.devices.push({ udid, userId, badgeId, publicKey });
        }),
      };
    },
  };
}

export const newBadgeOne = newBadge("new badge", "withWebhook", 1);

function nextDevice(clients: Clients): Badge {
  const device = clients.devices[clients.counter++ % clients.devices.length];
  if (!device) throw new Error("no device has a badge");
  return device;
}

export const existing: Operation = {
  name: "existing badge",
  needs: { operation: newBadgeOne, list: "devices", one: true },
  next(clients) {
    const { udid, userId, badgeId } = nextDevice(clients);
    return {
      call: post("/v1/badge", first(clients), udid, { userId, metadata: METADATA }),
      check: granted(200, existingBadge, (body) => expectSame("a device's badge", body.badgeId, badgeId)),
    };
  },
};

export const sign: Operation = {
  name: "sign",
  needs: { operation: newBadgeOne, list: "devices", one: true },
  next(clients) {
    const { udid, badgeId, publicKey } = nextDevice(clients);
    return {
      call: post("/v1/badge/sign", first(clients), udid, { base64: CLIENT_SIGNATURE }),
      check: granted(200, signature, async (body) => {
        const key = createPublicKey({ key: Buffer.from(publicKey, "base64"), format: "der", type: "spki" });
        const { payload } = await compactVerify(body.signature, key);
        expectSame("a signature's badge", signedClaims.parse(JSON.parse(Buffer.from(payload).toString())).sub, badgeId);
      }),
    };
  },
};

export const pageOf = (size: number): Operation => ({
  name: `page of ${size.toLocaleString("en-US")}`,
  next: (clients) => ({
    call: serverCall("GET", `/v1/badges?per_page=${size}`, clients),
    check: granted(200, page, ({ badges }) => expectSame("badges of a page", new Set(badges.map(idOf)).size, size)),
  }),
});

const idOf = ({ id }: { id: string }): string => id;

const invite: Operation = {
  name: "create an invitation",
  next(clients) {
    const expiresAt = new Date(Date.now() + EXPIRES_IN_MILLISECONDS).toISOString();
    return {
      call: post("/v1/invitation", first(clients), `server-${clients.counter++}`, { expiresAt }),
      check: granted(201, invitation, ({ id, badgeId }) => {
        noteNew(clients, badgeId);
        clients.invitations.push({ id, badgeId });
      }),
    };
  },
};

const claim: Operation = {
  name: "claim an invitation",
  sendsWebhooks: true,
  needs: { operation: invite, list: "invitations" },
  next(clients) {
    const { id: invitationToken, badgeId } = clients.invitations.shift() ?? { id: "none is left", badgeId: "" };
    const userId = `guest-${clients.counter++}`;
    return {
      call: post("/v1/badge", first(clients), userId, { userId, metadata: METADATA, invitationToken }),
      check: granted(201, createdBadge, (body) => expectSame("a reserved number", body.badgeId, badgeId)),
    };
  },
};

/** Moves badges from one list of the clients to the other, so that only active ones sign. */
const step = (name: "suspend" | "resume", needs: NonNullable<Operation["needs"]>): Operation => ({
  name: `${name} a badge`,
  isServiceOnly: true,
  needs,
  next(clients) {
    const { devices, suspended } = clients;
    const [from, to, state] = name === "suspend" ? [devices, suspended, "suspended"] : [suspended, devices, "active"];
    const badge: Badge = from.shift() ?? { udid: "", userId: "", badgeId: "none is left", publicKey: "" };
    return {
      call: serverCall("PATCH", `/v1/badges/${badge.badgeId}/${name}`, clients),
      check: granted(200, stepped, (body) => {
        expectSame(name, `${body.id} ${body.state}`, `${badge.badgeId} ${state}`);
        to.push(badge);
      }),
    };
  },
});

const suspend = step("suspend", { operation: newBadgeOne, list: "devices" });
const resume = step("resume", { operation: suspend, list: "suspended" });

const changes: Operation = {
  name: "changes, page of 100",
  isServiceOnly: true,
  next: (clients) => ({
    call: serverCall("GET", "/v1/changes?per_page=100", clients),
    check: granted(200, changesPage, (body) => expectSame("changes", new Set(body.changes.map(idOf)).size, 100)),
  }),
};

/** In the order in which they are measured and shown. */
export const OPERATIONS: readonly Operation[] = [
  newBadgeOne,
  newBadge("new badge, 10 applications", "withWebhook", 10),
  newBadge("new badge, no webhook", "withoutWebhook", 1),
  newBadge("new badge, 10 apps, no webhook", "withoutWebhook", 10),
  newBadge("the same, in two homes", "inTwoHomes", 10),
  existing,
  sign,
  pageOf(100),
  pageOf(1000),
  invite,
  claim,
  suspend,
  resume,
  changes,
];
