import { DurableObject } from "cloudflare:workers";
import { homeOf } from "../../shared/homes.ts";
import { type ApplicationId, parseApplicationId } from "../../shared/identifiers.ts";
import {
  DOOR_CONNECTED_MILLISECONDS,
  LIVE_COALESCE_MILLISECONDS,
  LIVE_COMPARE_MILLISECONDS,
  LIVE_RETRY_MILLISECONDS,
  MAX_LIVE_CALLS,
  MAX_SIGNED_DELTAS,
} from "../../shared/limits/live-limits.ts";
import { happenedWithin } from "../../shared/time.ts";
import type { Application } from "../applications/application-cache.ts";
import { type Context, createContext } from "../context.ts";
import { findHome } from "../homes.ts";
import { log } from "../log.ts";
import { LruCache } from "../lru-cache.ts";
import { type Delta, deltaFor, isCurrent, type Snapshot, signDelta } from "./door-delta.ts";
import { DoorIds } from "./door-ids.ts";
import { type Attachment, attachment, listener, type Message, NORMAL_CLOSURE, type SeenDoor } from "./messages.ts";
import { SeenDoors } from "./seen.ts";
import { Snapshots } from "./snapshots.ts";

/** A waiting listener. */
interface Waiting extends Attachment {
  socket: WebSocket;
}

/**
 * The listeners for changes of status in one application; the object is named by the application's ID. It has a
 * hibernating WebSocket for each call that the Worker holds, so it sleeps between calls and alarms. It always reads the
 * changes from D1, so a lost wake-up, an eviction or a restored D1 loses nothing.
 */
export class Live extends DurableObject<Env> {
  readonly #seen = new SeenDoors(this.ctx.storage.sql);
  #snapshots: Snapshots | undefined;
  /** Signed deltas of a snapshot by their `since`, shared by doors with equal changes. */
  readonly #signed = new WeakMap<Snapshot, LruCache<Promise<string>>>();
  /** Time of the alarm in milliseconds; null if it is not set; undefined until it is read. */
  #alarmAt: number | null | undefined;
  /** Upper bound of the number of waiting listeners: the last count, plus all listeners accepted since. */
  #maxWaiting = Number.POSITIVE_INFINITY;
  #doorIds: DoorIds | undefined;

  /** Accepts the WebSocket of a call; 503 if too many listeners wait. */
  override async fetch(request: Request): Promise<Response> {
    const { searchParams } = new URL(request.url);
    const applicationId = this.#adopt(searchParams.get("application") ?? "");
    const { door, have } = listener.parse(JSON.parse(searchParams.get("listener") ?? "null"));
    const replaced = door === null ? [] : this.#waiting(door.id);
    if (replaced.length === 0 && this.#isFull()) return new Response(null, { status: 503 });
    this.#maxWaiting++;
    for (const { socket } of replaced) send(socket, { refused: "RATE_LIMITED" });
    const { 0: client, 1: socket } = new WebSocketPair();
    this.ctx.acceptWebSocket(socket, door === null ? [] : [door.id]);
    const since = Date.now();
    socket.serializeAttachment({ door, have, since } satisfies Attachment);
    if (door !== null) this.#seen.noteStart(door.id, { seenAt: since, have });
    await this.#ensureAlarm(since + LIVE_COMPARE_MILLISECONDS);
    this.ctx.waitUntil(this.#admit(applicationId, { socket, door, have, since }));
    return new Response(null, { status: 101, webSocket: client });
  }

  /** Reports a change of status in D1. Changes that follow immediately are sent together with it. */
  async wake(): Promise<void> {
    this.#snapshots?.outdate();
    if (this.#sockets().length > 0) await this.#ensureAlarm(Date.now() + LIVE_COALESCE_MILLISECONDS);
  }

  /**
   * Each door's last call, and whether the door has the last change of status.
   *
   * @param ids IDs of doors' secrets
   * @returns no entry for a door that has not called yet
   */
  async seen(applicationIdText: string, ids: readonly string[]): Promise<SeenDoor[]> {
    const applicationId = this.#adopt(applicationIdText);
    const found = ids.flatMap((id) => {
      const [waiting] = this.#waiting(id);
      const seen = waiting ? { seenAt: waiting.since, have: waiting.have } : this.#seen.find(id);
      return seen ? [{ id, ...seen }] : [];
    });
    const now = Date.now();
    const isConnected = ({ seenAt }: { seenAt: number }) => happenedWithin(seenAt, now, DOOR_CONNECTED_MILLISECONDS);
    const connected = found.filter(isConnected);
    // A door that has been away for long lacks many changes, which need not be read: it is not current.
    if (connected.length === 0) return found.map((door) => ({ ...door, isCurrent: false }));
    const snapshots = this.#snapshotsOf(applicationId);
    // D1 may have a change whose wake-up is on its way.
    snapshots.outdate();
    const snapshot = await snapshots.read(Math.min(...connected.map(({ have }) => have)));
    return found.map((door) => ({ ...door, isCurrent: isConnected(door) && isCurrent(snapshot, door.have) }));
  }

  /** Never throws: the platform drops an alarm that has failed six times (Durable Objects: Alarms). */
  override async alarm(): Promise<void> {
    this.#alarmAt = null;
    const applicationId = this.#applicationId();
    if (applicationId === undefined || this.#sockets().length === 0) return;
    let pause = LIVE_COMPARE_MILLISECONDS;
    try {
      this.#snapshotsOf(applicationId).outdate();
      const [listeners, now] = [this.#waiting(), Date.now()];
      await this.#serve(applicationId, listeners);
      await this.#dropRetired(applicationId, listeners, now);
    } catch (error) {
      log("warn", { event: "live-failed", application: applicationId, error });
      pause = LIVE_RETRY_MILLISECONDS;
    }
    if (this.#sockets().length > 0) await this.#ensureAlarm(Date.now() + pause);
  }

  override webSocketClose(socket: WebSocket, code: number): void {
    this.#end(socket, code !== NORMAL_CLOSURE);
  }

  override webSocketError(socket: WebSocket): void {
    this.#end(socket, true);
  }

  /** @param isBroken the door has gone: it may be its last call for long */
  #end(socket: WebSocket, isBroken: boolean): void {
    this.#noteEnd(attachment.parse(socket.deserializeAttachment()), isBroken);
    close(socket);
  }

  /** Notes a door's call again when it ends: if the object has slept since it began, its memory of the call is lost. */
  #noteEnd({ door, have, since }: Attachment, isBroken = false): void {
    if (door !== null) this.#seen.noteEnd(door.id, { seenAt: since, have }, isBroken);
  }

  /** Sends a new listener the changes that it lacks: at once, or at the alarm if D1 does not respond. */
  async #admit(applicationId: ApplicationId, waiting: Waiting): Promise<void> {
    try {
      if (await this.#dropRetired(applicationId, [waiting], Date.now() - LIVE_COMPARE_MILLISECONDS)) return;
      const snapshots = this.#snapshotsOf(applicationId);
      // The listener may have a change that is newer than the last read: from a list, or from another response.
      const isNewer = waiting.have > (await snapshots.read(waiting.have)).lastChange;
      // The alarm reads D1 for all doors: a made-up number must not cause a read for each call.
      if (isNewer) await this.#ensureAlarm(Date.now() + LIVE_COALESCE_MILLISECONDS);
      else await this.#serve(applicationId, [waiting]);
    } catch (error) {
      log("warn", { event: "live-failed", application: applicationId, error });
      await this.#ensureAlarm(Date.now() + LIVE_RETRY_MILLISECONDS);
    }
  }

  /** Sends each listener the changes that it lacks. @throws Unavailable */
  async #serve(applicationId: ApplicationId, listeners: readonly Waiting[]): Promise<void> {
    if (listeners.length === 0) return;
    const lowest = listeners.reduce((least, { have }) => Math.min(least, have), Number.POSITIVE_INFINITY);
    const snapshot = await this.#snapshotsOf(applicationId).read(lowest);
    for (const waiting of listeners) {
      const delta = deltaFor(snapshot, waiting.have);
      if (delta === null) continue;
      send(waiting.socket, { jwt: await this.#sign(applicationId, snapshot, delta) });
      this.#noteEnd(waiting);
    }
  }

  #sign(applicationId: ApplicationId, snapshot: Snapshot, delta: Delta): Promise<string> {
    const known = this.#signed.get(snapshot) ?? new LruCache<Promise<string>>(MAX_SIGNED_DELTAS);
    this.#signed.set(snapshot, known);
    const since = String(delta.since);
    const signed = known.get(since) ?? this.#signNew(applicationId, snapshot, delta);
    known.set(since, signed);
    signed.catch(() => known.delete(since));
    return signed;
  }

  async #signNew(applicationId: ApplicationId, { readAt }: Snapshot, delta: Delta): Promise<string> {
    const context = this.#open(applicationId);
    return signDelta(context, await findApplication(context, applicationId), delta, readAt);
  }

  /**
   * Ends the calls of doors whose secret was retired.
   *
   * @param readSince see `DoorIds`
   * @returns whether there were any
   * @throws Unavailable
   */
  async #dropRetired(applicationId: ApplicationId, listeners: readonly Waiting[], readSince: number): Promise<boolean> {
    const doors = listeners.flatMap(({ socket, door, since }) =>
      door === null ? [] : [{ socket, id: door.id, since }],
    );
    if (doors.length === 0) return false;
    const retired = await this.#doorIdsOf(applicationId).findRetired(doors, readSince);
    for (const { socket, id } of doors) {
      if (!retired.has(id)) continue;
      send(socket, { refused: "INVALID_CREDENTIALS" });
      this.#seen.forget(id);
    }
    return retired.size > 0;
  }

  /** @param doorId ID of a door's secret; if omitted, all listeners are returned */
  #waiting(doorId?: string): Waiting[] {
    return this.#sockets(doorId).map((socket) => ({ ...attachment.parse(socket.deserializeAttachment()), socket }));
  }

  #sockets(doorId?: string): WebSocket[] {
    return this.ctx.getWebSockets(doorId).filter(({ readyState }) => readyState === WebSocket.OPEN);
  }

  /** Counts only when the upper bound reaches the limit, because counting many listeners takes long. */
  #isFull(): boolean {
    if (this.#maxWaiting >= MAX_LIVE_CALLS) this.#maxWaiting = this.#sockets().length;
    return this.#maxWaiting >= MAX_LIVE_CALLS;
  }

  #open(applicationId: ApplicationId): Context {
    const home = findHome(this.env, homeOf(applicationId));
    if (!home) throw new Error("the application's home is not bound");
    return createContext(this.env, (work) => this.ctx.waitUntil(work), home);
  }

  #snapshotsOf(applicationId: ApplicationId): Snapshots {
    this.#snapshots ??= new Snapshots(this.ctx.storage.kv, applicationId, () => this.#open(applicationId).db);
    return this.#snapshots;
  }

  #doorIdsOf(applicationId: ApplicationId): DoorIds {
    this.#doorIds ??= new DoorIds(applicationId, () => this.#open(applicationId).db);
    return this.#doorIds;
  }

  /** Checks that the object belongs to this application, and stores the ID for the alarm. */
  #adopt(text: string): ApplicationId {
    const id = parseApplicationId(text);
    const known = this.#applicationId();
    if (id === undefined || (known !== undefined && known !== id)) {
      throw new Error("the object belongs to another application");
    }
    if (known === undefined) this.ctx.storage.kv.put("application", id);
    return id;
  }

  #applicationId(): ApplicationId | undefined {
    return parseApplicationId(String(this.ctx.storage.kv.get("application") ?? ""));
  }

  /** Makes the alarm fire at this time at the latest. @param at milliseconds */
  async #ensureAlarm(at: number): Promise<void> {
    if (this.#alarmAt === undefined) this.#alarmAt = await this.ctx.storage.getAlarm();
    if (this.#alarmAt !== null && this.#alarmAt <= at) return;
    this.#alarmAt = at;
    try {
      await this.ctx.storage.setAlarm(at);
    } catch (error) {
      // The alarm may be set or not, so the next call asks.
      this.#alarmAt = undefined;
      throw error;
    }
  }
}

async function findApplication(context: Context, id: ApplicationId): Promise<Application> {
  const { applicationCache, db, now } = context;
  const known = applicationCache.peek(id, now());
  const application = known === undefined || known === "unknown" ? await applicationCache.reload(db, id, now()) : known;
  if (!application) throw new Error("there is no such application");
  return application;
}

/** Sends the only message of a call, and closes its WebSocket. The caller may have gone meanwhile. */
function send(socket: WebSocket, message: Message): void {
  if (socket.readyState !== WebSocket.OPEN) return;
  socket.send(JSON.stringify(message));
  close(socket);
}

function close(socket: WebSocket): void {
  try {
    socket.close(NORMAL_CLOSURE);
  } catch {
    // It is closed already.
  }
}
