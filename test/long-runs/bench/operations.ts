import { createPublicKey } from "node:crypto";
import { compactVerify } from "jose";
import { z } from "zod";
import type { Call, HttpResponse } from "./load.ts";
import type { BenchApplication } from "./sides.ts";

/** The applications of one side. */
export interface Applications {
  withWebhook: BenchApplication[];
  withoutWebhook: BenchApplication[];
}

/** What the clients of one side know: they remember what they were answered, and hold the side to it. */
export interface Clients {
  applications: Applications;
  /** Devices of the first application that got a badge, with its public key (SPKI DER, base64). */
  devices: { udid: string; userId: string; badgeId: string; publicKey: string }[];
  /** Unclaimed invitations of the first application. */
  invitations: { id: string; badgeId: string }[];
  /** Every badge number that was ever answered as new. */
  badgeIds: Set<string>;
  /** Counts what must be different each time. */
  counter: number;
}

export function newClients(applications: Applications): Clients {
  return { applications, devices: [], invitations: [], badgeIds: new Set(), counter: 0 };
}

/** A call and what must be true of its response. */
export interface Expectation {
  call: Call;
  /** @throws Error when the response is wrong */
  check(response: HttpResponse): void | Promise<void>;
}

export interface Operation {
  name: string;
  /** Whether each call makes a webhook. */
  sendsWebhooks?: true;
  /** Whether only the service knows such calls: then no other side is measured. */
  isServiceOnly?: true;
  /** The next call of these clients. @param place of the call among the `count` calls that are made together */
  next(clients: Clients, place: number, count: number): Expectation;
  /** An operation whose results this one needs, as many as it makes calls. */
  needs?: { operation: Operation; missing(clients: Clients, count: number): number };
}

/** The next calls, made together. */
export const nextCalls = ({ next }: Operation, clients: Clients, count: number): Expectation[] =>
  Array.from({ length: count }, (_, place) => next(clients, place, count));

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
    next(clients, place) {
      const applications = clients.applications[kind].slice(0, most);
      const application = applications[place % applications.length] ?? first(clients);
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

/** As many badges of the first application as a number of calls needs. */
const needsBadges = (needed: (count: number) => number): NonNullable<Operation["needs"]> => {
  return { operation: newBadgeOne, missing: ({ devices }, count) => Math.max(0, needed(count) - devices.length) };
};

function nextDevice(clients: Clients): Clients["devices"][number] {
  const device = clients.devices[clients.counter++ % clients.devices.length];
  if (!device) throw new Error("no device has a badge");
  return device;
}

export const existing: Operation = {
  name: "existing badge",
  needs: needsBadges(() => 1),
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
  needs: needsBadges(() => 1),
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
  needs: { operation: invite, missing: ({ invitations }, count) => Math.max(0, count - invitations.length) },
  next(clients) {
    const { id: invitationToken, badgeId } = clients.invitations.shift() ?? { id: "none is left", badgeId: "" };
    const userId = `guest-${clients.counter++}`;
    return {
      call: post("/v1/badge", first(clients), userId, { userId, metadata: METADATA, invitationToken }),
      check: granted(201, createdBadge, (body) => expectSame("a reserved number", body.badgeId, badgeId)),
    };
  },
};

/** Suspends a badge and resumes it with a later call, so each one writes; when that is sent, the first is answered. */
const suspend: Operation = {
  name: "suspend or resume",
  isServiceOnly: true,
  needs: needsBadges((count) => Math.ceil(count / 2)),
  next(clients, place, count) {
    // Rounded down: with an odd number of calls the last one resumes a badge twice, and none stays suspended.
    const half = Math.floor(count / 2);
    const badgeId = clients.devices[half === 0 ? 0 : place % half]?.badgeId ?? "";
    const [step, state] = place < half ? ["suspend", "suspended"] : ["resume", "active"];
    return {
      call: serverCall("PATCH", `/v1/badges/${badgeId}/${step}`, clients),
      check: granted(200, stepped, (body) => expectSame(step, `${body.id} ${body.state}`, `${badgeId} ${state}`)),
    };
  },
};

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
  existing,
  sign,
  pageOf(100),
  pageOf(1000),
  invite,
  claim,
  suspend,
  changes,
];
