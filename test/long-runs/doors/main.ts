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
const SUSPENDS = Number(process.argv[2] ?? 200);
/** The variable PUBLIC_URL of wrangler.toml: the addresses of status lists begin with it. */
const PUBLIC_URL = "http://localhost:8787";
/** Longer than a delta that comes in one message with another; and until other doors have called again. */
const pauseOf = (doors: number): number => 700 * (1 + Math.random()) + doors * 1.5;

const now = (): number => performance.timeOrigin + performance.now();

/** An application with status lists, the secrets of doors, and what suspends one badge after another. */
async function prepare(side: Side, doors: number) {
  const { id, secret: applicationSecret } = await makeApplication(side, null, true);
  const applicationId = parseApplicationId(id);
  if (applicationId === undefined) throw new Error("the script made an application without an ID");
  const made = await Promise.all(Array.from({ length: doors }, makeConsoleSecret));
  await side.homes.databaseFor(applicationId).run(async (orm) => {
    for (const [door, { row }] of made.entries()) {
      await orm.insert(doorSecret).values({ ...row, name: `door ${door}`, applicationId, createdAt: Date.now() });
    }
  });
  const baseUrl = `http://127.0.0.1:${side.port}`;
  const server = new ServerClient({ baseUrl, applicationId, applicationSecret });
  const badges: { badgeId: string; signature: string }[] = [];
  for (let place = 0; place < SUSPENDS; place++) {
    const device = new DeviceClient({ baseUrl, applicationId, udid: `phone-${place}` });
    const { badgeId } = await device.requestBadge({ userId: `user-${place}` });
    badges.push({ badgeId, signature: await device.sign("AAAA") });
  }
  return { applicationId, secrets: made.map(({ secret }) => secret), badges, server };
}

/** A door as src/examples has it, which is ready to decide. */
async function openDoor(side: Side, applicationId: string, secret: string | null, folder: string) {
  const door = await DoorControl.open({
    ...{ serviceUrl: PUBLIC_URL, applicationId, secret, file: join(folder, `${applicationId}.json`) },
    log: () => {},
    fetch: (url, init) => fetch(url.replace(PUBLIC_URL, `http://127.0.0.1:${side.port}`), init),
  });
  await door.refresh();
  return door;
}

/** @returns milliseconds from now until the door refuses the badge */
async function untilRefused(door: DoorControl, signature: string): Promise<number> {
  for (const start = now(); ; await wait(2)) {
    const decision = await door.check(signature, { maxAgeSeconds: 86_400 });
    if (!decision.ok && decision.reason === "suspended") return now() - start;
    if (!decision.ok) throw new Error(`a door refuses a badge: ${decision.reason}`);
  }
}

/** @returns milliseconds of the measured door, and of the last of the others */
async function measureListening(side: Side, doors: number, folder: string) {
  const { applicationId, secrets, badges, server } = await prepare(side, doors);
  const [own = "", ...others] = secrets;
  const door = await openDoor(side, applicationId, own, folder);
  void door.listen();
  // The others are in a process of their own, which tells when they are connected, and when the last of them has a change.
  const listening = others.length > 0 ? fork(join(import.meta.dirname, "listeners.ts")) : null;
  const nextArrival = async () => listening && arrival.parse((await once(listening, "message"))[0]);
  listening?.send({ port: side.port, applicationId, secrets: others } satisfies Doors);
  await nextArrival();
  await wait(3000);
  const [decisions, last]: [number[], number[]] = [[], []];
  try {
    for (const { badgeId, signature } of badges) {
      const told = nextArrival();
      await server.suspendBadge(badgeId);
      const respondedAt = now();
      decisions.push(await untilRefused(door, signature));
      const all = await told;
      if (all) last.push(all.lastAt - respondedAt);
      await wait(pauseOf(doors));
    }
  } finally {
    door.stop();
    listening?.kill("SIGKILL");
  }
  return { decisions, last };
}

/** @returns milliseconds of a door that has no secret */
async function measureLists(side: Side, folder: string): Promise<number[]> {
  const { applicationId, badges, server } = await prepare(side, 0);
  const door = await openDoor(side, applicationId, null, folder);
  void door.run();
  const decisions: Promise<number>[] = [];
  for (const { badgeId, signature } of badges) {
    await server.suspendBadge(badgeId);
    decisions.push(untilRefused(door, signature));
    // The door takes up to two minutes.
    await wait(500 + 1000 * Math.random());
  }
  return Promise.all(decisions).finally(() => door.stop());
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
