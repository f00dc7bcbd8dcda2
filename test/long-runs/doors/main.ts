/**
 * Measures the time from the response of a suspend to the decision of a door: one that has a secret, beside others that listen
 * (contract section 26), and one that only reads status lists.
 */
import { fork } from "node:child_process";
import { once } from "node:events";
import { mkdtempSync, rmSync } from "node:fs";
import { tmpdir } from "node:os";
import { join } from "node:path";
import { setTimeout as wait } from "node:timers/promises";
import { fileURLToPath } from "node:url";
import { DeviceClient, ServerClient } from "../../../src/client/index.ts";
import { DoorControl } from "../../../src/examples/door-control.ts";
import { makeConsoleSecret } from "../../../src/shared/credentials.ts";
import { parseApplicationId } from "../../../src/shared/identifiers.ts";
import { doorSecret } from "../../../src/shared/schema.ts";
import { percentile } from "../bench/rounds.ts";
import { makeApplication, type Side, withSides } from "../bench/sides.ts";
import { note, runCommand, say, table } from "../command-line.ts";
import { arrival, type Doors } from "./listeners.ts";

/** Doors that listen, the measured one among them. */
const LISTENERS = [1, 1000];
/** Badges that are suspended, for each number of doors. */
const SUSPENDS = 200;

/** The variable PUBLIC_URL of wrangler.toml: the addresses of status lists begin with it. */
const PUBLIC_URL = "http://localhost:8787";
/** Between two looks of the measured door at a badge. */
const LOOK_MILLISECONDS = 2;
/** Longer than a delta that comes in one message with another; and until other doors have called again. */
const PAUSE_MILLISECONDS = 700;
const PAUSE_OF_DOOR_MILLISECONDS = 1.5;
/** Between two suspends of the door that reads lists; it takes up to two minutes. */
const LISTS_PAUSE_MILLISECONDS = 1000;
const INSERTED_AT_ONCE = 15;

interface Badge {
  badgeId: string;
  signature: string;
}

const now = (): number => performance.timeOrigin + performance.now();

/** An application with status lists, badges with their signatures, and doors with secrets. */
async function prepare(side: Side, doors: number) {
  const { id, secret } = await makeApplication(side, null, { statusList: true });
  const applicationId = parseApplicationId(id);
  if (applicationId === undefined) throw new Error("the script made an application without an ID");
  const secrets: string[] = [];
  await side.homes.databaseFor(applicationId).run(async (orm) => {
    while (secrets.length < doors) {
      const made = await Promise.all(
        Array.from({ length: Math.min(INSERTED_AT_ONCE, doors - secrets.length) }, makeConsoleSecret),
      );
      const rows = made.map(({ row }, index) => ({
        ...row,
        ...{ name: `door ${secrets.length + index}`, applicationId, createdAt: Date.now() },
      }));
      await orm.insert(doorSecret).values(rows);
      secrets.push(...made.map(({ secret }) => secret));
    }
  });
  const baseUrl = `http://127.0.0.1:${side.port}`;
  const badges: Badge[] = [];
  for (let place = 0; place < SUSPENDS; place++) {
    const device = new DeviceClient({ baseUrl, applicationId, udid: `phone-${place}` });
    const { badgeId } = await device.requestBadge({ userId: `user-${place}` });
    badges.push({ badgeId, signature: await device.sign("AAAA") });
  }
  return {
    applicationId,
    secrets,
    badges,
    server: new ServerClient({ baseUrl, applicationId, applicationSecret: secret }),
  };
}

/** A door as src/examples has it, which is ready to decide. */
async function openDoor(
  side: Side,
  applicationId: string,
  secret: string | null,
  folder: string,
): Promise<DoorControl> {
  const door = await DoorControl.open({
    ...{ serviceUrl: PUBLIC_URL, applicationId, secret, file: join(folder, `${applicationId}.json`) },
    log: () => {},
    fetch: (url, init) => fetch(url.replace(PUBLIC_URL, `http://127.0.0.1:${side.port}`), init),
  });
  await door.refresh();
  return door;
}

/** Until the door refuses the badge. */
async function refusedAt(door: DoorControl, { signature }: Badge): Promise<number> {
  for (;;) {
    const decision = await door.check(signature, { maxAgeSeconds: 86_400 });
    if (!decision.ok && decision.reason === "suspended") return now();
    if (!decision.ok) throw new Error(`a door refuses a badge: ${decision.reason}`);
    await wait(LOOK_MILLISECONDS);
  }
}

/** The doors that listen beside the measured one, in a process of their own. */
function startListeners(doors: Doors) {
  const child = fork(fileURLToPath(new URL("./listeners.ts", import.meta.url)));
  child.send(doors);
  return {
    /** When the others are connected; and then, when the last of them had the next change. */
    next: async () => arrival.parse((await once(child, "message"))[0]),
    stop: () => child.kill("SIGKILL"),
  };
}

/** @returns milliseconds of the measured door, and of the last of the others */
async function measureListening(side: Side, doors: number, folder: string) {
  const { applicationId, secrets, badges, server } = await prepare(side, doors);
  const [own = "", ...others] = secrets;
  const door = await openDoor(side, applicationId, own, folder);
  void door.listen();
  const listening = others.length > 0 ? startListeners({ port: side.port, applicationId, secrets: others }) : null;
  await listening?.next();
  await wait(3000);
  const [decisions, last]: [number[], number[]] = [[], []];
  try {
    for (const badge of badges) {
      const told = listening?.next();
      await server.suspendBadge(badge.badgeId);
      const respondedAt = now();
      decisions.push((await refusedAt(door, badge)) - respondedAt);
      const others = await told;
      if (others) last.push(others.lastAt - respondedAt);
      await wait(PAUSE_MILLISECONDS + doors * PAUSE_OF_DOOR_MILLISECONDS + Math.random() * PAUSE_MILLISECONDS);
    }
  } finally {
    door.stop();
    listening?.stop();
  }
  return { decisions, last };
}

/** @returns milliseconds of a door that has no secret */
async function measureLists(side: Side, folder: string): Promise<number[]> {
  const { applicationId, badges, server } = await prepare(side, 0);
  const door = await openDoor(side, applicationId, null, folder);
  void door.run();
  const decisions: Promise<number>[] = [];
  for (const badge of badges) {
    await server.suspendBadge(badge.badgeId);
    const respondedAt = now();
    decisions.push(refusedAt(door, badge).then((at) => at - respondedAt));
    await wait(LISTS_PAUSE_MILLISECONDS * (0.5 + Math.random()));
  }
  const milliseconds = await Promise.all(decisions);
  door.stop();
  return milliseconds;
}

const rowOf = (name: string, values: readonly number[]): string[] => [
  name,
  ...[0.5, 0.99, 1].map((share) => Math.round(percentile(values, share)).toLocaleString("en")),
];

await runCommand(() =>
  withSides(["service"], { consumes: false }, async ([side]) => {
    if (!side) return;
    const folder = mkdtempSync(join(tmpdir(), "doors-"));
    const rows: string[][] = [];
    try {
      for (const doors of LISTENERS) {
        note(`${doors} doors …`);
        const { decisions, last } = await measureListening(side, doors, folder);
        rows.push(rowOf(`one of ${doors} doors: its decision`, decisions));
        if (last.length > 0) rows.push(rowOf("  the last one has the change", last));
      }
      note("lists …");
      rows.push(rowOf("a door without a secret", await measureLists(side, folder)));
      say(table(["milliseconds after a suspend", "p50", "p99", "most"], rows));
    } finally {
      rmSync(folder, { recursive: true, force: true });
    }
  }),
);
