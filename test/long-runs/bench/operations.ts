import assert from "node:assert/strict";
import { createPublicKey } from "node:crypto";
import { jwtVerify } from "jose";
import { z } from "zod";
import type { Call, Expectation } from "./load.ts";
import { type BenchApplication, METADATA, type SideName } from "./sides.ts";

/** What the clients of one side know: they remember what they were answered, and hold the side to it. */
export class Clients {
  readonly applications: readonly BenchApplication[];
  /** Of the first application. Public keys are SPKI DER, base64. */
  readonly devices: { udid: string; userId: string; badgeId: string; publicKey: string }[] = [];
  /** Unclaimed, of the first application. */
  readonly invitations: { id: string; badgeId: string }[] = [];
  /** Webhooks that the calls have made. */
  webhooks = 0;
  /** What must be different each time. */
  counter = 0;
  /** Of every login: a user token, where users are verified. */
  readonly loginHeaders: Record<string, string> = {};
  readonly #badgeIds = new Set<string>();

  constructor(applications: readonly BenchApplication[]) {
    this.applications = applications;
  }

  get first(): BenchApplication {
    return oneOf(this.applications, 0);
  }

  noteNew(badgeId: string): void {
    assert.match(badgeId, /^[1-9]\d*$/);
    assert(!this.#badgeIds.has(badgeId), `badge number ${badgeId} was given out twice`);
    this.#badgeIds.add(badgeId);
  }
}

function oneOf<T>(items: readonly T[], place: number): T {
  const item = items[place % items.length];
  assert(item !== undefined, "there is none of what a call needs");
  return item;
}

export interface Operation {
  name: string;
  /** If others serve it than service, floor and twin. */
  sides?: readonly SideName[];
  /** Of one measurement, if not as many as of others. */
  calls?: number;
  /** Makes the invitation that each call of this one uses up. */
  needs?: Operation;
  /** The next call of these clients. */
  next(clients: Clients): Expectation;
}

/** Of all responses; a member that is missing is not the one that is expected. */
const responseBody = z.object({
  id: z.string().default(""),
  badgeId: z.string().default(""),
  publicKey: z.string().default(""),
  signature: z.string().default(""),
  badges: z.array(z.object({ id: z.string(), userId: z.string(), metadata: z.object() })).default([]),
});

/** A call that gets this status, and a body that is then looked at. */
function granted(
  status: number,
  call: Call,
  look: (body: z.infer<typeof responseBody>) => void | Promise<void>,
): Expectation {
  return {
    call,
    check({ status: actual, body }) {
      assert.equal(actual, status, `${actual} instead of ${status}: ${body.slice(0, 200)}`);
      return look(responseBody.parse(JSON.parse(body)));
    },
  };
}

function post(path: string, { id }: BenchApplication, udid: string, content: object, more: Call["headers"] = {}): Call {
  const body = JSON.stringify(content);
  const headers = { applicationid: id, udid, "content-length": String(Buffer.byteLength(body)), ...more };
  return { method: "POST", path, headers, body };
}

const CLIENT_SIGNATURE = Buffer.alloc(72, "signature").toString("base64");
const EXPIRES_IN_MILLISECONDS = 24 * 3600 * 1000;

export const COMPARED: readonly SideName[] = ["service", "floor", "twin"];

/** @param most applications that the devices belong to, in turn */
const newBadge = (name: string, most: number): Operation => ({
  name,
  sides: [...COMPARED, "peer"],
  next(clients) {
    const application = oneOf(clients.applications.slice(0, most), clients.counter);
    const [udid, userId] = [`device-${clients.counter}`, `user-${clients.counter++}`];
    const call = post("/v1/badge", application, udid, { userId, metadata: METADATA }, clients.loginHeaders);
    return granted(201, call, ({ badgeId, publicKey }) => {
      clients.noteNew(badgeId);
      clients.webhooks++;
      if (application === clients.first) clients.devices.push({ udid, userId, badgeId, publicKey });
    });
  },
});

export const newBadgeOne = newBadge("new badge", 1);

export const existing: Operation = {
  name: "existing badge",
  next(clients) {
    const { udid, userId, badgeId } = oneOf(clients.devices, clients.counter++);
    const call = post("/v1/badge", clients.first, udid, { userId, metadata: METADATA }, clients.loginHeaders);
    return granted(200, call, (body) => assert.equal(body.badgeId, badgeId));
  },
};

export const sign: Operation = {
  name: "sign",
  next(clients) {
    const { udid, badgeId, publicKey } = oneOf(clients.devices, clients.counter++);
    const call = post("/v1/badge/sign", clients.first, udid, { base64: CLIENT_SIGNATURE });
    return granted(200, call, async ({ signature }) => {
      const key = createPublicKey({ key: Buffer.from(publicKey, "base64"), format: "der", type: "spki" });
      assert.equal((await jwtVerify(signature, key)).payload.sub, badgeId);
    });
  },
};

const pageOf = (name: string, size: number): Operation => ({
  name,
  next({ first: { id, secret } }) {
    const headers = { applicationid: id, applicationsecret: secret };
    const call = { method: "GET", path: `/v1/badges?per_page=${size}`, headers } as const;
    return granted(200, call, ({ badges }) => assert.equal(new Set(badges.map(({ id }) => id)).size, size));
  },
});

export const pageOf100 = pageOf("page of 100", 100);

const invite: Operation = {
  name: "create an invitation",
  next(clients) {
    const expiresAt = new Date(Date.now() + EXPIRES_IN_MILLISECONDS).toISOString();
    const call = post("/v1/invitation", clients.first, `server-${clients.counter++}`, { expiresAt });
    return granted(201, call, ({ id, badgeId }) => {
      clients.noteNew(badgeId);
      clients.invitations.push({ id, badgeId });
    });
  },
};

const claim: Operation = {
  name: "claim an invitation",
  needs: invite,
  next(clients) {
    const { id: invitationToken, badgeId } = oneOf(clients.invitations.splice(0, 1), 0);
    const userId = `guest-${clients.counter++}`;
    const call = post("/v1/badge", clients.first, userId, { userId, metadata: METADATA, invitationToken });
    return granted(201, call, (body) => {
      assert.equal(body.badgeId, badgeId);
      clients.webhooks++;
    });
  },
};

/** In the order in which they are measured and shown. */
export const OPERATIONS: readonly Operation[] = [
  newBadgeOne,
  newBadge("new badge, 10 applications", 10),
  existing,
  sign,
  pageOf100,
  pageOf("page of 1,000", 1000),
  invite,
  claim,
];
