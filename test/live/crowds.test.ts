import { describe, expect, it } from "vitest";
import { takeStep } from "../badges/life-support.ts";
import { useQuietLog } from "../invitations/support/log.ts";
import type { TestApplication } from "../support/application.ts";
import { byEffort } from "../support/effort.ts";
import { serverHeaders } from "../support/http.ts";
import {
  addDoor,
  deltaOf,
  endLive,
  heldCalls,
  listen,
  liveOf,
  outcomeOf,
  untilHeld,
  withBadge,
  withHeldDoor,
  withLists,
} from "./support.ts";

useQuietLog();

/** Contract section 26. */
const MAX_CALLS = 5000;
const LIMIT = { timeout: 120_000 };

/** Connects to the object as the Worker does for a server's call, so that many are quick. @returns the client's side */
async function connect({ id }: TestApplication, have: number): Promise<WebSocket> {
  const query = new URLSearchParams({ application: id, listener: JSON.stringify({ door: null, have }) });
  const { webSocket } = await liveOf({ id }).fetch(`https://live/?${query}`, { headers: { Upgrade: "websocket" } });
  if (!webSocket) throw new Error("the object did not take the call");
  webSocket.accept();
  return webSocket;
}

describe("more calls than are held for one application (contract section 26)", () => {
  it(
    "calls from the 5,001st on get 503 with Retry-After; a door's next call takes the place of its own, and held ones are served",
    LIMIT,
    async () => {
      const { application, number, have, door, held: own } = await withHeldDoor();
      const sockets: WebSocket[] = [];
      while (sockets.length < MAX_CALLS - 1) {
        const some = Array.from({ length: Math.min(500, MAX_CALLS - 1 - sockets.length) });
        sockets.push(...(await Promise.all(some.map(() => connect(application, have)))));
      }
      const refused = await listen(serverHeaders(application), `have=${have}`);
      expect([outcomeOf(refused), refused.headers.has("retry-after")]).toEqual(["503 UNAVAILABLE", true]);
      expect(outcomeOf(await listen(await addDoor(application, "South"), `have=${have}`))).toBe("503 UNAVAILABLE");
      const next = listen(door, `have=${have}`);
      expect(outcomeOf(await own)).toBe("429 RATE_LIMITED");
      expect(await heldCalls(application)).toBe(MAX_CALLS);
      // Another application has its own.
      const other = await withLists();
      const elsewhere = listen(serverHeaders(other), "have=1");
      sockets[0]?.close(1000);
      await untilHeld(application, MAX_CALLS - 1);
      const last = listen(serverHeaders(application), `have=${have}`);
      await untilHeld(application, MAX_CALLS);
      const told = new Set<WebSocket>();
      for (const socket of sockets) socket.addEventListener("message", () => void told.add(socket));
      await takeStep(application, number, "suspend");
      expect(deltaOf(await next).entries).toHaveLength(1);
      expect(deltaOf(await last).entries).toHaveLength(1);
      await untilHeld(application, 0);
      while (told.size < MAX_CALLS - 2) await scheduler.wait(5);
      await elsewhere;
    },
  );
});

/** Doors of one application, and calls of one door at once. */
const [DOORS, CALLS] = byEffort([400, 200], [2000, 1000]);

describe("many doors (contract section 26)", () => {
  it(
    "doors get 503 when the object ends, as in a deployment or a restart; all come back, and no change is lost to any",
    LIMIT,
    async () => {
      const { application, number, have } = await withBadge();
      const call = () => listen(serverHeaders(application), `have=${have}`);
      const first = Array.from({ length: DOORS }, call);
      await untilHeld(application, DOORS);
      await endLive(application);
      const outcomes = (await Promise.all(first)).map(outcomeOf);
      expect(new Set(outcomes)).toEqual(new Set(["503 UNAVAILABLE"]));
      // Half of them are back before the change, and half after it.
      const early = Array.from({ length: DOORS / 2 }, call);
      await untilHeld(application, DOORS / 2);
      await takeStep(application, number, "suspend");
      const late = Array.from({ length: DOORS / 2 }, call);
      const deltas = (await Promise.all([...early, ...late])).map(deltaOf);
      expect(new Set(deltas.map(({ since, entries }) => `${since} ${entries.length}`))).toEqual(new Set([`${have} 1`]));
    },
  );
});

describe("a door that calls many times at once (contract section 26)", () => {
  it(
    "a door that calls many times at once gets 429 for all calls but the last one, and its neighbour is served",
    LIMIT,
    async () => {
      const { application, number, have } = await withBadge();
      const [north, south] = [await addDoor(application, "North"), await addDoor(application, "South")];
      const neighbour = listen(south, `have=${have}`);
      await untilHeld(application, 1);
      const calls = Array.from({ length: CALLS }, () => listen(north, `have=${have}`));
      let ended = 0;
      for (const each of calls) void each.then(() => ended++);
      while (ended < CALLS - 1) await scheduler.wait(5);
      await untilHeld(application, 2);
      await takeStep(application, number, "suspend");
      const texts = (await Promise.all(calls)).map((each) => (each.status === 200 ? "200" : outcomeOf(each)));
      const counts = Map.groupBy(texts, (text) => text);
      expect([counts.get("200")?.length, counts.get("429 RATE_LIMITED")?.length]).toEqual([1, CALLS - 1]);
      expect(deltaOf(await neighbour).entries).toHaveLength(1);
    },
  );
});
