import { once } from "node:events";
import { existsSync, mkdtempSync, readFileSync, rmSync, statSync, writeFileSync } from "node:fs";
import { createServer, request, type Server } from "node:http";
import { tmpdir } from "node:os";
import { join } from "node:path";
import { afterAll, afterEach, beforeEach, describe, expect, it } from "vitest";
import { createDoorResponse, type ProofKey, webCryptoProofKey } from "../../src/client/index.ts";
import { listenSomewhere } from "../../src/dev/demo/listen.ts";
import { findPython } from "../../src/dev/verify-in-language.ts";
import { DoorControl, type DoorOptions } from "../../src/examples/door-control.ts";
import { readDoorFile, writeDoorFile } from "../../src/examples/door-file.ts";
import { createChallenge } from "../../src/verify/index.ts";
import { ACTIVE, APPLICATION_ID, DoorService, newKey, REVOKED, SUSPENDED } from "./support/door-service.ts";
import { type RunningProgram, startProgram } from "./support/program.ts";

const root = mkdtempSync(join(tmpdir(), "door-"));
afterAll(() => rmSync(root, { recursive: true, force: true }));

/** A minute, an hour and a day, in milliseconds. */
const [MINUTE, HOUR, DAY] = [60_000, 3_600_000, 86_400_000];

let now = 0;
let elapsed = 0;
let folder = "";
const file = () => join(folder, "door.json");
let service: DoorService;
/** What the service on a port sends for every request, instead of a response. */
let rawBytes: string | null = null;
const logged: string[] = [];

beforeEach(() => {
  now = 1_800_000_000_000;
  elapsed = 0;
  folder = mkdtempSync(join(root, "test-"));
  service = new DoorService(() => now);
  rawBytes = null;
  logged.length = 0;
});

function pass(milliseconds: number): void {
  now += milliseconds;
  elapsed += milliseconds;
}

function openDoor(changes: Partial<DoorOptions> = {}): Promise<DoorControl> {
  return DoorControl.open({
    serviceUrl: service.url,
    applicationId: APPLICATION_ID,
    file: file(),
    log: (line) => logged.push(line),
    fetch: service.fetch,
    now: () => now,
    elapsed: () => elapsed,
    ...changes,
  });
}

function goDown(): void {
  service.interfere = () => {
    throw new TypeError("fetch failed", { cause: new Error("connect ECONNREFUSED") });
  };
}

async function outcome(door: DoorControl, index = 0): Promise<string> {
  const result = await door.check(service.badgeSignature(index));
  return result.ok ? "open" : result.reason;
}

describe("a door that keeps keys and status lists (contract section 14)", () => {
  it("a door opens for active and resumed badges, not for revoked or suspended ones, also after a restart without the network", async () => {
    service.statuses.set(1, REVOKED).set(2, SUSPENDED);
    const door = await openDoor();
    expect(await door.refresh()).toBe(true);
    const outcomes = async (of: DoorControl) => [await outcome(of, 0), await outcome(of, 1), await outcome(of, 2)];
    expect(await outcomes(door)).toEqual(["open", "revoked", "suspended"]);
    service.statuses.set(0, REVOKED).set(2, ACTIVE);
    pass(30_000);
    await door.refresh();
    expect(logged).toEqual([]);
    goDown();
    pass(2 * HOUR);
    const restarted = await openDoor();
    for (const each of [door, restarted]) {
      expect(await each.refresh()).toBe(false);
      expect(await outcomes(each)).toEqual(["revoked", "revoked", "open"]);
    }
    expect(logged.at(-1)).toBe("not refreshed: fetch failed: connect ECONNREFUSED");
  });

  it("a door refuses every badge once its list has expired", async () => {
    const door = await openDoor();
    await door.refresh();
    goDown();
    pass(DAY + 59_000);
    expect(await outcome(door)).toBe("open");
    pass(1000);
    expect(await outcome(door)).toBe("status-stale");
    const accepted = await door.check(service.badgeSignature(0), { staleStatusList: "accept" });
    expect(accepted).toMatchObject({ ok: true, acceptedDespite: "status-stale" });
  });

  it("a door downloads lists until one does not exist, and keeps a list that it did not reach", async () => {
    service.statuses.set(1, REVOKED);
    const door = await openDoor();
    await door.refresh();
    const paths = ["jwks.json", "status/0", "status/1"].map((path) => `/v1/applications/${APPLICATION_ID}/${path}`);
    expect(service.requested).toEqual(paths);
    const jwt = service.badgeSignature(1);
    service.hasStatusLists = false;
    expect(await door.refresh()).toBe(true);
    expect(await outcome(door), "a badge without a list").toBe("open");
    expect(await door.check(jwt)).toEqual({ ok: false, reason: "revoked" });
  });
});

/** Not fetch, which sets `Host` itself. */
async function statusOf(url: string, method: string, headers: Record<string, string>): Promise<number> {
  const [response] = await once(request(url, { method, headers }).end(), "response");
  response.resume();
  return response.statusCode;
}

async function newPhoneKey(): Promise<ProofKey> {
  return webCryptoProofKey(
    await crypto.subtle.generateKey({ name: "ECDSA", namedCurve: "P-256" }, false, ["sign", "verify"]),
  );
}

/** What a phone with this key presents when it is given a challenge. */
async function present(key: ProofKey, challenge: string, badgeSignature = service.badgeSignature(0)) {
  const response = await createDoorResponse({ key, challenge, applicationId: APPLICATION_ID, badgeSignature });
  return { badgeSignature, response };
}

describe("a door that challenges the phone (contract section 15)", () => {
  const DOOR_ID = "lobby-1";
  let phone: ProofKey;
  let door: DoorControl;

  beforeEach(async () => {
    phone = await newPhoneKey();
    service.boundKey = phone.publicJwk;
    door = await openDoor();
    await door.refresh();
  });

  async function outcomeOf(presented: { badgeSignature: string; response: string }): Promise<string> {
    const result = await door.checkPhone(presented, DOOR_ID);
    return result.ok ? "open" : result.reason;
  }

  it("a door opens once for the phone with the badge's key, whatever is presented in between, and for no copy", async () => {
    const first = await present(phone, door.challenge(DOOR_ID));
    for (let count = 0; count < 100; count++) door.challenge(DOOR_ID);
    expect(await outcomeOf({ ...first, response: "x" })).toBe("malformed-response");
    const copied = await present(await newPhoneKey(), door.challenge(DOOR_ID), first.badgeSignature);
    expect(await outcomeOf(copied)).toBe("bad-response-signature");
    expect(await Promise.all([outcomeOf(first), outcomeOf(first)])).toEqual(["open", "wrong-challenge"]);
    door.challenge(DOOR_ID);
    expect(await outcomeOf(first)).toBe("wrong-challenge");
  });

  it("a door accepts a response for ten seconds, and only to its own challenge", async () => {
    const made = await present(phone, createChallenge({ doorId: DOOR_ID, now }));
    expect(await outcomeOf(made)).toBe("wrong-challenge");
    const late = await present(phone, door.challenge(DOOR_ID));
    pass(10_000);
    expect(await outcomeOf(late)).toBe("expired-challenge");
    const elsewhere = await present(phone, door.challenge("lobby-2"));
    expect(await outcomeOf(elsewhere)).toBe("wrong-challenge");
  });

  it("a challenging door refuses a revoked badge even from its own phone, and an unbound badge", async () => {
    service.statuses.set(3, REVOKED);
    await door.refresh();
    expect(await outcomeOf(await present(phone, door.challenge(DOOR_ID), service.badgeSignature(3)))).toBe("revoked");
    service.boundKey = null;
    expect(await outcomeOf(await present(phone, door.challenge(DOOR_ID)))).toBe("not-bound");
  });
});

describe("when a door downloads (contract sections 3 and 14)", () => {
  const keySets = () => service.requested.filter((path) => path.endsWith("/jwks.json")).length;

  it("a door downloads the key set every five minutes, even if its clock is set back, and its lists at every refresh", async () => {
    const door = await openDoor();
    for (let time = 0; time < 10; time++) {
      await door.refresh();
      pass(30_000);
    }
    expect(keySets()).toBe(1);
    now -= 365 * DAY;
    await door.refresh();
    expect(keySets()).toBe(2);
    expect(service.requested.filter((path) => path.endsWith("/status/0"))).toHaveLength(11);
  });

  it("a door downloads the key set earlier when a badge or a list has an unknown key", async () => {
    const door = await openDoor();
    await door.refresh();
    service.keys.push(newKey("second"));
    expect(await outcome(door)).toBe("unknown-key");
    await door.refresh();
    expect(keySets()).toBe(2);
    expect(await outcome(door)).toBe("open");
    service.keys.push(newKey("third"));
    await door.refresh();
    expect(keySets()).toBe(2);
    await door.refresh();
    expect(keySets()).toBe(3);
    expect(await outcome(door)).toBe("open");
  });

  it("a door stops trusting a key that is no longer published", async () => {
    const door = await openDoor();
    await door.refresh();
    const stolen = service.badgeSignature(0);
    service.keys = [newKey("second")];
    pass(5 * MINUTE);
    await door.refresh();
    expect(await door.check(stolen)).toEqual({ ok: false, reason: "unknown-key" });
  });

  it("a refresh joins one that is already running", async () => {
    const door = await openDoor();
    expect(await Promise.all([door.refresh(), door.refresh()])).toEqual([true, true]);
    expect(keySets()).toBe(1);
  });
});

describe("the file of a door", () => {
  it("a door's file is written at once when a badge has ended, and otherwise every ten minutes", async () => {
    const door = await openDoor();
    await door.refresh();
    const first = readFileSync(file(), "utf8");
    pass(9 * MINUTE);
    await door.refresh();
    expect(readFileSync(file(), "utf8")).toBe(first);
    service.statuses.set(9, REVOKED);
    await door.refresh();
    const second = readFileSync(file(), "utf8");
    expect(second).not.toBe(first);
    pass(10 * MINUTE);
    await door.refresh();
    expect(readFileSync(file(), "utf8")).not.toBe(second);
  });

  it("a door does not start with the file of another application's door, which would lose it", async () => {
    const other = '{"applicationId":"app_other","keys":{"keys":[{}]},"statusLists":{}}';
    writeFileSync(file(), other);
    await expect(openDoor()).rejects.toThrow(`${file()} is of another application: give another --file`);
    expect(readFileSync(file(), "utf8")).toBe(other);
  });

  it("a door's file is whole, and each write succeeds, while another program writes the same file", async () => {
    const content = { applicationId: APPLICATION_ID, keys: { keys: [{}] }, statusLists: {}, deltas: [] };
    const { child, ended, said, untilSaid } = run(
      ...[process.execPath, "--input-type=module", "-e"],
      `import { writeDoorFile } from ${JSON.stringify(`${EXAMPLES}door-file.ts`)};
      let isOver = false;
      process.stdin.on("end", () => { isOver = true; }).resume();
      while (!isOver) {
        await writeDoorFile(process.argv[1], ${JSON.stringify(content)});
        console.log("written");
      }`,
      file(),
    );
    await untilSaid(/written/);
    for (let time = 0; time < 30; time++) {
      await writeDoorFile(file(), content);
      expect(await readDoorFile(file())).toEqual(content);
    }
    child.stdin.end();
    expect(await ended, said.err).toBe(0);
  });
});

const EXAMPLES = new URL("../../src/examples/", import.meta.url).pathname;
const DOOR_TS = [process.execPath, `${EXAMPLES}door.ts`];
const python = findPython();
const DOOR_PY = [python ?? "", "-B", `${EXAMPLES}door.py`];

/** The programs that have called the service on its port. */
let agents: (string | undefined)[] = [];

/** Tests of a group have the service on a port of this computer, at this computer's time. */
function serveOnPort(): void {
  let server: Server;
  beforeEach(async () => {
    agents = [];
    now = Date.now();
    server = createServer(async (request, response) => {
      agents.push(request.headers["user-agent"]);
      if (rawBytes !== null) return void request.socket.end(rawBytes);
      const down = () => new Response(null, { status: 503 });
      const reply = await service.fetch(`${service.url}${request.url}`).catch(down);
      response.writeHead(reply.status).end(await reply.text());
    });
    service.url = await listenSomewhere(server);
  });
  afterEach(() => {
    server.closeAllConnections();
    server.close();
  });
}

/** What a newly started door decides about a badge, and what it says of problems. */
async function decidedByNode(index = 0): Promise<{ outcome: string; said: string }> {
  const before = logged.length;
  const door = await openDoor({ fetch });
  await door.refresh();
  return { outcome: await outcome(door, index), said: logged.slice(before).join("\n") };
}

/** One process for many doors, each of which loads its file, refreshes and decides once. */
const DRIVER = `
import pathlib, sys
sys.path.append(sys.argv[1])
import door
sys.stderr = sys.stdout
for line in sys.stdin:
    service, application, file, signature = line.split()
    opened = door.Door(service, application, pathlib.Path(file), 60, None)
    opened.refresh()
    print(opened.decide(signature), flush=True)`;
let driver: RunningProgram | undefined;
afterAll(() => void driver?.child.kill());

/** The same of door.py. */
async function decidedByPython(index = 0): Promise<{ outcome: string; said: string }> {
  driver ??= startProgram([python ?? "", "-B", "-c", DRIVER, EXAMPLES]);
  driver.said.out = "";
  const words = [`${service.url}/`, APPLICATION_ID, file(), service.badgeSignature(index)];
  driver.child.stdin.write(`${words.join(" ")}\n`);
  const [, said = "", open, reason = ""] = await driver.untilSaid(
    /^(.*?)(?:(open): badge \d+|closed: (\S+))\n$/s,
    "out",
  );
  return { outcome: open ?? reason, said };
}

describe.each([
  { example: "door-control.ts", decided: decidedByNode },
  ...(python === null ? [] : [{ example: "door.py", decided: decidedByPython }]),
])("what a door of src/examples/$example does not let itself be told (contract section 14)", ({ decided }) => {
  serveOnPort();
  const replace = (name: string, response: () => Response) => {
    service.interfere = (path) => (path.endsWith(name) ? response() : undefined);
  };

  it("keeps its list when an older one is played again, or one lacks a change, as from another data centre's cache, unless it is a minute newer (section 21)", async () => {
    service.change = 500;
    now -= 1000;
    const old = service.statusList();
    now += 1000;
    service.statuses.set(4, REVOKED);
    expect((await decided(4)).outcome).toBe("revoked");
    replace("/status/0", () => new Response(old));
    const replayed = await decided(4);
    expect(replayed.outcome).toBe("revoked");
    if (decided === decidedByNode)
      expect(replayed.said).toBe(`${service.listUri} is older than the one before, which stays`);
    service.interfere = () => undefined;
    service.change = 499;
    service.statuses.delete(4);
    for (const [seconds, expected] of [
      [0, "revoked"],
      [59, "revoked"],
      [1, "open"],
    ] as const) {
      now += seconds * 1000;
      expect((await decided(4)).outcome).toBe(expected);
    }
  });

  it("forgets the deltas whose changes the service has lost (section 21)", async () => {
    service.change = 400;
    await decided();
    const stored = JSON.parse(readFileSync(file(), "utf8"));
    writeFileSync(file(), JSON.stringify({ ...stored, deltas: [service.delta(400, 500, { 4: SUSPENDED })] }));
    expect((await decided(4)).outcome).toBe("suspended");
    now += MINUTE;
    expect((await decided(4)).outcome).toBe("open");
    goDown();
    expect((await decided(4)).outcome).toBe("open");
    expect(JSON.parse(readFileSync(file(), "utf8"))).toMatchObject({ deltas: [] });
  });

  it("keeps its list when it gets one by a stranger's key, or a login page", async () => {
    service.statuses.set(4, REVOKED);
    await decided();
    for (const [list, reason] of [
      [new DoorService(() => now).statusList(), "bad-signature"],
      ["<!doctype html>", "malformed"],
    ]) {
      replace("/status/0", () => new Response(list));
      const said = expect.stringContaining(`${service.listUri} is refused (${reason}); the one before stays`);
      expect(await decided(4)).toEqual({ outcome: "revoked", said });
    }
  });

  it("keeps its keys when it gets none, an error, or what is too large or nested too deeply, and still refreshes its lists", async () => {
    await decided();
    service.statuses.set(4, REVOKED);
    for (const response of [
      () => Response.json({ keys: [] }),
      () => Response.json({ error: "UNAVAILABLE" }, { status: 503 }),
      () => new Response("x".repeat(600_000)),
      () => new Response("[".repeat(100_000)),
    ]) {
      replace("/jwks.json", response);
      expect(await decided(4)).toEqual({ outcome: "revoked", said: expect.stringContaining("not refreshed") });
    }
  });

  it("uses what it has stored when the response is not HTTP, or breaks off", async () => {
    await decided();
    for (const bytes of ["garbage\r\n\r\n", "HTTP/1.1 200 OK\r\nTransfer-Encoding: chunked\r\n\r\n5\r\nab"]) {
      rawBytes = bytes;
      expect(await decided()).toEqual({ outcome: "open", said: expect.stringContaining("not refreshed") });
    }
  });

  it("without the network opens for nobody when its file lacks a change or was changed, and opens when the network is back (section 26)", async () => {
    service.change = 10;
    await decided();
    const stored = JSON.parse(readFileSync(file(), "utf8"));
    const [header = "", payload = "", signature = ""] = service.statusList().split(".");
    const text = Buffer.from(payload, "base64url").toString().replace('"ttl":60', '"ttl":61');
    const forged = [header, Buffer.from(text).toString("base64url"), signature].join(".");
    for (const [damage, reason] of [
      [{ deltas: [service.delta(12, 13, {})] }, "lacks changes that are known"],
      [{ deltas: ["x"] }, "door.json is ignored"],
      // A stranger's key has the same ID.
      [
        { deltas: [Object.assign(new DoorService(() => now), { url: service.url }).delta(10, 13, {})] },
        "door.json is ignored",
      ],
      [{ statusLists: { [service.listUri]: forged } }, "is refused (bad-signature)"],
    ] as const) {
      const damaged = { ...stored, ...damage };
      writeFileSync(file(), JSON.stringify(damaged));
      goDown();
      expect(await decided()).toEqual({ outcome: "status-unknown", said: expect.stringContaining(reason) });
      expect(JSON.parse(readFileSync(file(), "utf8"))).toEqual(damaged);
      service.interfere = () => undefined;
      service.change = 13;
      expect((await decided()).outcome).toBe("open");
    }
  });

  it("ignores a file that is damaged, and decides without a place to store it", async () => {
    for (const damaged of [
      '{"keys":{"keys":[',
      `{"applicationId":"${APPLICATION_ID}","keys":{"keys":"x"},"statusLists":{}}`,
    ]) {
      writeFileSync(file(), damaged);
      expect(await decided()).toEqual({ outcome: "open", said: expect.stringContaining(`${file()} is ignored: `) });
    }
    folder = join(folder, "missing");
    expect(await decided()).toEqual({ outcome: "open", said: expect.stringMatching(/door\.json\.\d+\.new/) });
  });
});

const running: RunningProgram[] = [];
afterEach(() => {
  for (const { child } of running.splice(0)) child.kill();
});

function run(...command: string[]): RunningProgram {
  const program = startProgram(command);
  running.push(program);
  return program;
}

const ofDoor = () => ["--service", `${service.url}/`, "--application", APPLICATION_ID, "--file", file()];

/** What a door prints for lines on its standard input. */
async function printed(program: string[], ...lines: string[]): Promise<{ out: string; err: string }> {
  const { child, said, ended } = run(...program, ...ofDoor());
  child.stdin.end(Buffer.from(lines.map((line) => `${line}\n`).join(""), "latin1"));
  expect(await ended).toBe(0);
  return { out: said.out, err: said.err };
}

const READY = /^Ready: keys: 1, status lists: 1.*\.\n$/;

describe.each([
  { example: "door.ts", program: DOOR_TS },
  ...(python === null ? [] : [{ example: "door.py", program: DOOR_PY }]),
])("the program src/examples/$example (contract section 14)", ({ program }) => {
  serveOnPort();

  it("prints what it does with each line, also without the service, with what it has stored, and refuses an old photograph (section 27)", async () => {
    service.statuses.set(6, REVOKED);
    const lines = [service.badgeSignature(0), service.badgeSignature(6), "\xff\xfe is no text"];
    now -= 65_000;
    lines.push(service.badgeSignature(0));
    now += 65_000;
    const out = expect.stringMatching(
      /^open: badge 1000000000\nclosed: revoked.*\nclosed: malformed.*\nclosed: too-old.*\n$/,
    );
    expect(await printed(program, ...lines)).toEqual({ out, err: expect.stringMatching(READY) });
    goDown();
    expect(await printed(program, ...lines)).toEqual({ out, err: expect.stringContaining("not refreshed") });
    expect(statSync(file()).mode & 0o777).toBe(0o600);
  });

  it("forgets the lists of the service's former address, and has a change within seconds also if a new key signs it (section 26)", async () => {
    service.change = 9;
    await printed(program);
    service.url = service.url.replace("127.0.0.1", "localhost");
    service.change = 10;
    service.live = (have) => {
      if (have !== 10) return new Promise(() => {});
      // The door has the key set by now.
      if (service.keys.length === 1) service.keys.push(newKey("second"));
      return new Response(service.delta(10, 11, { 0: SUSPENDED }));
    };
    const { untilSaid } = run(...program, ...ofDoor(), "--secret", "secret\r\n");
    await untilSaid(/change 11: 1 badges have another status/);
    expect(service.requested.find((path) => path.startsWith("/v1/live"))).toBe("/v1/live?have=10");
  });

  it("works without a connection if its secret is blank, and does not start with one of two lines, nor print it (section 26)", async () => {
    const ends = async (secret: string) => {
      const { child, said, ended } = run(...program, ...ofDoor(), "--secret", secret);
      child.stdin.end();
      return { code: await ended, said: said.err };
    };
    expect(await ends(" \n")).toEqual({ code: 0, said: expect.stringMatching(READY) });
    const { code, said } = await ends("s3cr3t\ns3cr3t");
    expect(code).toBeGreaterThan(0);
    expect(said).toContain("not one line of printable ASCII characters");
    expect(said).not.toContain("s3cr3t");
  });
});

it.skipIf(!existsSync("/dev/full"))("door.ts goes on deciding when its messages cannot be written", async () => {
  const words = ["--service", "http://127.0.0.1:9", "--application", APPLICATION_ID, "--file", file()];
  const { child, ended, untilSaid } = run("sh", "-c", 'exec "$0" "$@" 2>/dev/full', ...DOOR_TS, ...words);
  child.stdin.write("x\n");
  await untilSaid(/closed: malformed/, "out");
  child.stdin.end();
  expect(await ended).toBe(0);
});

describe.skipIf(python === null)("the program src/examples/door.py (contract section 26)", () => {
  serveOnPort();

  it("door.py says that a connected door needs status lists (section 26)", async () => {
    service.hasStatusLists = false;
    const { untilSaid } = run(...DOOR_PY, ...ofDoor(), "--secret", "secret");
    await untilSaid(/not connected: there are no status lists; does the application publish them/);
  });

  it("door.py calls again after any number of failures (section 26)", async () => {
    const failing = `
import pathlib, sys, time, urllib.error
sys.path.append(sys.argv[1])
import door
failures = iter([OSError("no network"), urllib.error.HTTPError("", 503, "", None, None)] * 550 + [SystemExit(7)])
def fail(self):
    raise next(failures)
door.Door._listen_once = fail
time.sleep = lambda seconds: None
door.Door("https://badges.example", "app", pathlib.Path("missing.json"), 60, "secret").listen()`;
    const { ended } = run(python ?? "", "-B", "-c", failing, EXAMPLES);
    expect(await ended).toBe(7);
  });

  it.skipIf(!existsSync("/dev/full"))(
    "door.py goes on refreshing and listening when its messages cannot be written",
    async () => {
      const mute = `
import os, pathlib, sys, time
sys.path.append(sys.argv[1])
import door
sys.stderr = open("/dev/full", "w")
failures = iter([OSError("no network"), SystemExit])
def fail(self):
    raise next(failures)
door.Door._listen_once = fail
time.sleep = lambda seconds: None
opened = door.Door("http://127.0.0.1:9", "app", pathlib.Path("missing.json"), 60, "secret")
opened.refresh()
try:
    opened.listen()
except SystemExit:
    os._exit(7)`;
      const { ended } = run(python ?? "", "-B", "-c", mute, EXAMPLES);
      expect(await ended).toBe(7);
    },
  );

  it("door.py does not call as urllib, which Cloudflare's zones refuse", async () => {
    const { untilSaid } = run(...DOOR_PY, ...ofDoor());
    await untilSaid(/Ready/);
    expect(agents).not.toEqual([]);
    for (const agent of agents) expect(agent).not.toMatch(/^Python-urllib/);
  });
});

describe("src/examples/door.ts on a port of this computer", () => {
  serveOnPort();

  /** Starts it. @returns where it waits */
  async function openPort(...more: string[]) {
    const { child, said, untilSaid } = run(...DOOR_TS, ...ofDoor(), "--port", "0", ...more);
    const [, url = ""] = await untilSaid(/Waiting for badge signatures on (\S+)\n/);
    const post = async (path: string, body = "") => {
      const response = await fetch(`${url}${path}`, { method: "POST", body });
      return { status: response.status, ...(await response.json()) };
    };
    return { child, said, untilSaid, url, post };
  }

  const OPEN = { status: 200, open: true, badgeNumber: "1000000000" };
  const closed = (reason: string) => ({ status: 403, open: false, reason });

  it("door.ts --port accepts badge signatures by POST", async () => {
    service.statuses.set(6, REVOKED);
    const { post } = await openPort();
    expect(await post("", `${service.badgeSignature(0)}\n`)).toEqual(OPEN);
    expect(await post("", service.badgeSignature(6))).toEqual(closed("revoked"));
    expect(await post("", "x".repeat(1_000_000))).toEqual(closed("malformed"));
  });

  it("door.ts --challenge challenges phones by POST and by lines, only for programs on this computer, and other calls do not block it (contract section 15)", async () => {
    const phone = await newPhoneKey();
    service.boundKey = phone.publicJwk;
    const { child, said, untilSaid, url, post } = await openPort("--challenge", "lobby-1");
    const asked = await post("challenge");
    expect(asked).toEqual({ status: 200, challenge: expect.stringMatching(/^badge-possession-v1\.lobby-1\./) });
    const statuses: number[] = [];
    for (const [method, path, headers] of [
      ["GET", "", {}],
      ["GET", "challenge", {}],
      ["PUT", "", {}],
      ["POST", "favicon.ico", {}],
      ["POST", "challenge?x", {}],
      ["POST", "", { origin: "https://evil.example" }],
      ["POST", "", { host: "evil.example:8080" }],
      ["POST", "", { host: "127.0.0.1.evil.example" }],
    ] as const) {
      statuses.push(await statusOf(`${url}${path}`, method, headers));
    }
    expect(statuses).toEqual([405, 405, 405, 404, 404, 403, 421, 421]);
    for (let count = 0; count < 20; count++) {
      await statusOf(url, "POST", {});
      await statusOf(`${url}challenge`, "POST", {});
    }
    // What was refused at the port was no attempt.
    expect(said.out.match(/^closed/gm)).toHaveLength(20);
    const { badgeSignature, response } = await present(phone, asked.challenge);
    expect(await post("", `${badgeSignature} ${response}\n`)).toEqual(OPEN);
    expect(await post("", `${badgeSignature} ${response}\n`)).toEqual(closed("wrong-challenge"));
    expect(await post("", badgeSignature)).toEqual(closed("malformed-response"));

    child.stdin.write("challenge\n");
    const [, challenge = ""] = await untilSaid(/challenge: (\S+)\n/);
    const shown = await present(phone, challenge);
    child.stdin.write(`${shown.badgeSignature} ${shown.response}\n`);
    await untilSaid(/challenge: \S+\nopen: badge 1000000000\n$/, "out");
  });
});

describe("the programs of a door", () => {
  it.each([
    { program: DOOR_PY, words: ["--max-age", "nan"], problem: "--max-age" },
    { program: DOOR_PY, words: ["--max-age", "-1"], problem: "--max-age" },
    { program: DOOR_TS, words: ["--max-age", "Infinity"], problem: "--max-age is not a number" },
    { program: DOOR_TS, words: ["--challenge", "a.b"], problem: "--challenge takes a door's ID" },
  ])("a door program does not start with options that it cannot use: $words", async ({ program, words, problem }) => {
    if (program === DOOR_PY && python === null) return;
    const { said, ended } = run(...program, ...ofDoor(), ...words);
    expect(await ended).toBeGreaterThan(0);
    expect(said).toMatchObject({ out: "", err: expect.stringContaining(problem) });
  });

  it("src/examples/door-bench.ts measures the example door", async () => {
    const { said, ended } = run(process.execPath, `${EXAMPLES}door-bench.ts`, "50");
    expect(await ended).toBe(0);
    expect(said.out).toMatch(/of 50: median \d+\.\d+ ms/);
  });
});
