import { mkdtempSync, rmSync } from "node:fs";
import { connect } from "node:net";
import { tmpdir } from "node:os";
import { join } from "node:path";
import { setTimeout as sleep } from "node:timers/promises";
import { decodeJwt } from "jose";
import { afterAll, beforeAll, describe, expect, it } from "vitest";
import * as z from "zod";
import { DeviceClient, ServerClient } from "../../src/client/index.ts";
import { findPython } from "../../src/dev/verify-in-language.ts";
import { type RunningProgram, startProgram } from "./support/program.ts";
import { closeHomes, runScriptHere } from "./support/script.ts";
import { type RunningService, startService } from "./support/service.ts";

const folder = mkdtempSync(join(tmpdir(), "live-"));

let service: RunningService;
let server: ServerClient;
let phones = 0;
const doors: RunningProgram[] = [];

/** A process is started with the machine's other work. */
const PATIENCE = 240_000;

beforeAll(async () => {
  service = await startService();
  const { applicationId, applicationSecret } = service.demo;
  const { code, stderr } = await admin("application", "update", applicationId, "--status-list");
  expect(`${code} ${stderr}`).toMatch(/^0 /);
  server = new ServerClient({ baseUrl: service.origin, applicationId, applicationSecret });
}, PATIENCE);

afterAll(async () => {
  for (const { child } of doors) child.kill("SIGKILL");
  await closeHomes();
  await service?.kill();
  service?.remove();
  rmSync(folder, { recursive: true, force: true });
}, PATIENCE);

const added = z.object({ applicationSecret: z.string(), role: z.literal("door") });

const admin = (...words: string[]) => runScriptHere(words, join(service.folder, "state"));

/** The script gives a door a secret. */
async function addDoor(name: string): Promise<string> {
  const { stdout } = await admin("secret", "add", service.demo.applicationId, "--door", name, "--json");
  return added.parse(JSON.parse(stdout)).applicationSecret;
}

/** A phone with a badge, whose signatures name its status list: the service has heard of the setting. */
async function newPhone() {
  const { origin: baseUrl, demo } = service;
  const device = new DeviceClient({ baseUrl, applicationId: demo.applicationId, udid: `phone-${++phones}` });
  const { badgeId } = await device.requestBadge({ userId: `user-${phones}` });
  const sign = () => device.sign("AAAA");
  while (decodeJwt(await sign()).status === undefined) await sleep(500);
  return { badgeId, sign };
}

const python = findPython();
const PROGRAMS = [
  [process.execPath, "src/examples/door.ts"],
  ...(python === null ? [] : [[python, "-B", "src/examples/door.py"]]),
];

/** An example of a door as a process. */
function startDoor(program: readonly string[], file: string, secret: string) {
  const { origin, demo } = service;
  const words = ["--service", origin, "--application", demo.applicationId, "--file", file, "--max-age", "3600"];
  const door = startProgram([...program, ...words], { env: { DOOR_SECRET: secret } });
  doors.push(door);
  const { child, said, untilSaid } = door;
  /** What it prints of a signature. */
  const decision = async (signature: string) => {
    said.out = "";
    child.stdin.write(`${signature}\n`);
    await untilSaid(/\n/, "out");
    return said.out;
  };
  return {
    ...{ untilSaid, kill: () => child.kill("SIGKILL") },
    /** Asks until it decides so: a list that it reads every minute may bring a change before a delta does. */
    async comesToDecide(signature: string, expected: string) {
      while (!(await decision(signature)).includes(expected)) await sleep(200);
    },
    decides: async (signature: string, expected: string) => expect(await decision(signature)).toContain(expected),
  };
}

describe("connected doors over a real network (contract section 26)", { timeout: PATIENCE }, () => {
  it("connected doors refuse a suspended badge at once, whatever is killed, and go on with their file without the network", async () => {
    const phone = await newPhone();
    const signature = await phone.sign();
    const open: (() => ReturnType<typeof startDoor>)[] = [];
    for (const [place, program] of PROGRAMS.entries()) {
      const [file, secret] = [join(folder, `${place}.json`), await addDoor(`Door ${place}`)];
      open.push(() => startDoor(program, file, secret));
    }
    const opened = open.map((each) => each());
    for (const door of opened) {
      await door.untilSaid(/Ready/);
      await door.decides(signature, "open: badge");
    }
    await server.suspendBadge(phone.badgeId);
    for (const door of opened) await door.comesToDecide(signature, "closed: suspended");
    await service.kill();
    for (const door of opened) {
      await door.untilSaid(/not connected/);
      await door.decides(signature, "closed: suspended");
      door.kill();
    }
    const restarted = open.map((each) => each());
    for (const door of restarted) {
      await door.untilSaid(/Ready/);
      await door.decides(signature, "closed: suspended");
    }
    service = await service.restart();
    await server.resumeBadge(phone.badgeId);
    for (const door of restarted) await door.comesToDecide(signature, "open: badge");
    const listed: unknown[] = [];
    for await (const each of server.listDoors().doors()) listed.push(each);
    expect(listed).toMatchObject(PROGRAMS.map((_, place) => ({ name: `Door ${place}`, seenAt: expect.any(String) })));
    for (const door of restarted) door.kill();
  });

  it("connected doors are served beside one that never reads", async () => {
    const { origin } = service;
    const { hostname, port, host } = new URL(origin);
    const { applicationId, applicationSecret } = service.demo;
    const listen = async (have: unknown) => {
      const headers = { applicationid: applicationId, applicationsecret: applicationSecret };
      return decodeJwt(await (await fetch(`${origin}/v1/live?have=${have}`, { headers })).text());
    };
    const phone = await newPhone();
    const { change } = await listen(0);
    const deaf = await addDoor("Deaf");
    const sockets = Array.from({ length: 20 }, () => {
      const socket = connect(Number(port), hostname).on("error", () => {});
      const headers = [`host: ${host}`, `applicationid: ${applicationId}`, `applicationsecret: ${deaf}`];
      // Calls one after the other on each connection, whose responses nobody takes.
      const request = `GET /v1/live HTTP/1.1\r\n${headers.join("\r\n")}\r\n\r\n`;
      socket.pause().write(request.repeat(5));
      return socket;
    });
    const neighbour = listen(change);
    await server.suspendBadge(phone.badgeId);
    expect(await neighbour).toMatchObject({ entries: [[0, expect.any(Number), 2]] });
    for (const socket of sockets) socket.destroy();
  });
});
