import { compactVerify, importSPKI } from "jose";
import { z } from "zod";
import type { Call, HttpResponse } from "./load-thread.ts";
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
  sendsWebhooks: boolean;
  /** Whether only the service knows such calls: then no other side is measured. */
  isServiceOnly?: true;
  /** The next `count` calls of these clients. */
  next(clients: Clients, count: number): Expectation[];
  /** An operation whose results this one needs, as many as it makes calls. */
  needs?: { operation: Operation; missing(clients: Clients, count: number): number };
}

const METADATA = { deviceModel: "Pixel 9", os: "Android", osVersion: "16", sdkVersion: "3.2.1" };
const CLIENT_SIGNATURE = Buffer.alloc(72, "signature").toString("base64");
const EXPIRES_IN_MILLISECONDS = 24 * 3600 * 1000;

const createdBadge = z.object({ badgeId: z.string().regex(/^[1-9]\d*$/), publicKey: z.string().min(1) });
const existingBadge = z.object({ badgeId: z.string() });
const signature = z.object({ signature: z.string() });
const invitation = z.object({ id: z.string(), badgeId: z.string(), expiresAt: z.string() });
const page = z.object({ badges: z.array(z.object({ id: z.string(), userId: z.string(), metadata: z.object() })) });

function parse<Schema extends z.ZodType>(response: HttpResponse, status: number, schema: Schema): z.infer<Schema> {
  if (response.status !== status)
    throw new Error(`${response.status} instead of ${status}: ${response.body.slice(0, 200)}`);
  return schema.parse(JSON.parse(response.body));
}

const post = (path: string, { id }: BenchApplication, udid: string, body: unknown): Call => ({
  method: "POST",
  path,
  headers: { applicationid: id, udid },
  body: JSON.stringify(body),
});

function first(applications: readonly BenchApplication[]): BenchApplication {
  const [application] = applications;
  if (!application) throw new Error("a side has applications");
  return application;
}

const times = <T>(count: number, make: (place: number) => T): T[] => Array.from({ length: count }, (_, at) => make(at));

function noteNew({ badgeIds }: Clients, badgeId: string): void {
  if (badgeIds.has(badgeId)) throw new Error(`badge number ${badgeId} was given out twice`);
  badgeIds.add(badgeId);
}

/** @param count of applications that the devices belong to, in turn */
function newBadge(name: string, kind: keyof Applications, count: number): Operation {
  const choose = (applications: Applications) => applications[kind].slice(0, count);
  return {
    name,
    sendsWebhooks: kind === "withWebhook",
    next(clients, calls) {
      const applications = choose(clients.applications);
      return times(calls, (place) => {
        const application = applications[place % applications.length] ?? first(applications);
        const udid = `device-${clients.counter}`;
        const userId = `user-${clients.counter++}`;
        return {
          call: post("/v1/badge", application, udid, { userId, metadata: METADATA }),
          check(response) {
            const { badgeId, publicKey } = parse(response, 201, createdBadge);
            noteNew(clients, badgeId);
            if (application === clients.applications.withWebhook[0]) {
              clients.devices.push({ udid, userId, badgeId, publicKey });
            }
          },
        };
      });
    },
  };
}

export const newBadgeOne = newBadge("new badge", "withWebhook", 1);

const missingDevices = ({ devices }: Clients): number => (devices.length > 0 ? 0 : 1);

export const existing: Operation = {
  name: "existing badge",
  sendsWebhooks: false,
  needs: { operation: newBadgeOne, missing: missingDevices },
  next: (clients, count) =>
    times(count, () => {
      const { udid, userId, badgeId } = nextDevice(clients);
      return {
        call: post("/v1/badge", first(clients.applications.withWebhook), udid, { userId, metadata: METADATA }),
        check(response) {
          const answered = parse(response, 200, existingBadge).badgeId;
          if (answered !== badgeId) throw new Error(`a device has badge ${badgeId}, was answered ${answered}`);
        },
      };
    }),
};

export const sign: Operation = {
  name: "sign",
  sendsWebhooks: false,
  needs: { operation: newBadgeOne, missing: missingDevices },
  next: (clients, count) =>
    times(count, () => {
      const { udid, badgeId, publicKey } = nextDevice(clients);
      return {
        call: post("/v1/badge/sign", first(clients.applications.withWebhook), udid, { base64: CLIENT_SIGNATURE }),
        async check(response) {
          const key = await importPublicKey(publicKey);
          const { payload } = await compactVerify(parse(response, 200, signature).signature, key);
          const { sub } = z.object({ sub: z.string() }).parse(JSON.parse(new TextDecoder().decode(payload)));
          if (sub !== badgeId) throw new Error(`a signature is for badge ${sub} instead of ${badgeId}`);
        },
      };
    }),
};

const publicKeys = new Map<string, Promise<CryptoKey>>();

function importPublicKey(spki: string): Promise<CryptoKey> {
  const known = publicKeys.get(spki);
  if (known) return known;
  const key = importSPKI(`-----BEGIN PUBLIC KEY-----\n${spki}\n-----END PUBLIC KEY-----`, "ES256");
  publicKeys.set(spki, key);
  return key;
}

function nextDevice(clients: Clients): Clients["devices"][number] {
  const device = clients.devices[clients.counter++ % clients.devices.length];
  if (!device) throw new Error("no device has a badge");
  return device;
}

export function pageOf(size: number): Operation {
  return {
    name: `page of ${size.toLocaleString("en-US")}`,
    sendsWebhooks: false,
    next: (clients, count) =>
      times(count, () => {
        const { id, secret } = first(clients.applications.withWebhook);
        return {
          call: {
            method: "GET",
            path: `/v1/badges?per_page=${size}`,
            headers: { applicationid: id, applicationsecret: secret },
          },
          check(response) {
            const ids = new Set(parse(response, 200, page).badges.map((badge) => badge.id));
            if (ids.size !== size) throw new Error(`a page of ${size} has ${ids.size} badges`);
          },
        };
      }),
  };
}

const invite: Operation = {
  name: "create an invitation",
  sendsWebhooks: false,
  next(clients, count) {
    const expiresAt = new Date(Date.now() + EXPIRES_IN_MILLISECONDS).toISOString();
    return times(count, () => ({
      call: post("/v1/invitation", first(clients.applications.withWebhook), `server-${clients.counter++}`, {
        expiresAt,
      }),
      check(response) {
        const { id, badgeId } = parse(response, 201, invitation);
        noteNew(clients, badgeId);
        clients.invitations.push({ id, badgeId });
      },
    }));
  },
};

const claim: Operation = {
  name: "claim an invitation",
  sendsWebhooks: true,
  needs: { operation: invite, missing: ({ invitations }, count) => Math.max(0, count - invitations.length) },
  next: (clients, count) =>
    clients.invitations.splice(0, count).map(({ id, badgeId }) => {
      const userId = `guest-${clients.counter++}`;
      const body = { userId, metadata: METADATA, invitationToken: id };
      return {
        call: post("/v1/badge", first(clients.applications.withWebhook), userId, body),
        check(response) {
          const claimed = parse(response, 201, createdBadge).badgeId;
          if (claimed !== badgeId) throw new Error(`an invitation reserved ${badgeId}, was answered ${claimed}`);
        },
      };
    }),
};

const stepped = z.object({ id: z.string(), state: z.enum(["active", "suspended"]) });

/** Suspends a badge and resumes it with the next call: each one writes. */
const suspend: Operation = {
  name: "suspend or resume",
  sendsWebhooks: false,
  isServiceOnly: true,
  needs: {
    operation: newBadgeOne,
    missing: ({ devices }, count) => Math.max(0, Math.ceil(count / 2) - devices.length),
  },
  next: (clients, count) =>
    times(count, (place) => {
      const { id, secret } = first(clients.applications.withWebhook);
      // Two calls of one badge lie apart, so the first is answered when the second is sent.
      const half = Math.ceil(count / 2);
      const badgeId = clients.devices[place % half]?.badgeId ?? "";
      const [step, state] = place < half ? ["suspend", "suspended"] : ["resume", "active"];
      return {
        call: {
          method: "PATCH",
          path: `/v1/badges/${badgeId}/${step}`,
          headers: { applicationid: id, applicationsecret: secret },
        },
        check(response) {
          const answered = parse(response, 200, stepped);
          if (answered.id !== badgeId || answered.state !== state) throw new Error(`${step}: ${response.body}`);
        },
      };
    }),
};

const changesPage = z.object({ changes: z.array(z.object({ id: z.string() })), more: z.boolean() });

const changes: Operation = {
  name: "changes, page of 100",
  sendsWebhooks: false,
  isServiceOnly: true,
  next: (clients, count) =>
    times(count, () => {
      const { id, secret } = first(clients.applications.withWebhook);
      const headers = { applicationid: id, applicationsecret: secret };
      return {
        call: { method: "GET", path: "/v1/changes?per_page=100", headers },
        check(response) {
          const ids = new Set(parse(response, 200, changesPage).changes.map((change) => change.id));
          if (ids.size !== 100) throw new Error(`a page of 100 changes has ${ids.size}`);
        },
      };
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
