import type { ApplicationId } from "../../shared/identifiers.ts";
import { LIVE_HOLD_MILLISECONDS } from "../../shared/limits/live-limits.ts";
import { type Home, objectOf } from "../homes.ts";
import { log } from "../log.ts";
import { callOnce, Unavailable } from "../platform.ts";
import type { Live } from "./live.ts";
import { type Listener, type Message, message, NORMAL_CLOSURE, type SeenDoor } from "./messages.ts";

/**
 * Calls the objects that send doors the changes of a home's applications. Each call gets a new stub, because a broken
 * stub stays broken. A failed call is not retried: a door calls again.
 */
export class LiveClient {
  readonly #namespace: DurableObjectNamespace<Live>;
  readonly #home: Pick<Home, "number" | "place">;

  constructor(namespace: DurableObjectNamespace<Live>, home: Pick<Home, "number" | "place">) {
    this.#namespace = namespace;
    this.#home = home;
  }

  /**
   * Waits until the object has a message for the listener.
   *
   * @returns null after `LIVE_HOLD_MILLISECONDS` without one
   * @throws Unavailable if too many listeners wait, or the object ends meanwhile
   */
  async listen(applicationId: ApplicationId, listener: Listener): Promise<Message | null> {
    const until = Date.now() + LIVE_HOLD_MILLISECONDS;
    const query = new URLSearchParams({ application: applicationId, listener: JSON.stringify(listener) });
    const init = { headers: { Upgrade: "websocket" } };
    const { webSocket: socket } = await callOnce("live", () =>
      this.#stub(applicationId).fetch(`https://live/?${query}`, init),
    );
    if (!socket) throw new Unavailable("live", new Error("too many calls are held"));
    return firstMessage(socket, until - Date.now());
  }

  /** Reports a change of status in D1. If the call fails, the object finds the change within half a minute. */
  async wake(applicationId: ApplicationId): Promise<void> {
    try {
      await this.#stub(applicationId).wake();
    } catch (error) {
      log("warn", { event: "live-not-woken", application: applicationId, error });
    }
  }

  /** @param ids IDs of doors' secrets @throws Unavailable */
  seen(applicationId: ApplicationId, ids: string[]): Promise<SeenDoor[]> {
    return callOnce("live", () => this.#stub(applicationId).seen(applicationId, ids));
  }

  #stub(applicationId: ApplicationId): DurableObjectStub<Live> {
    return objectOf(this.#namespace, this.#home, applicationId);
  }
}

function firstMessage(socket: WebSocket, milliseconds: number): Promise<Message | null> {
  const { promise, resolve, reject } = Promise.withResolvers<Message | null>();
  const timer = setTimeout(() => resolve(null), milliseconds);
  socket.addEventListener("message", ({ data }) => {
    try {
      resolve(message.parse(JSON.parse(String(data))));
    } catch (error) {
      // During a deployment the object may be of another release.
      reject(new Unavailable("live", error));
    }
  });
  const fail = () => reject(new Unavailable("live", new Error("the object has ended")));
  socket.addEventListener("close", fail);
  socket.addEventListener("error", fail);
  socket.accept();
  return promise.finally(() => {
    clearTimeout(timer);
    try {
      socket.close(NORMAL_CLOSURE);
    } catch {
      // The object has closed it.
    }
  });
}
