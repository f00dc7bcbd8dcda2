import type { FetchResponse } from "./options.ts";

/** The bookmark state at the time of a request. */
interface Begun {
  sent: string | undefined;
  /** Number of missed responses so far. */
  drops: number;
}

/**
 * The bookmark of a device's last response. Sent back, it lets the nearest replica serve the call, if that replica has
 * everything the device has seen.
 */
export class Bookmarks {
  #current: string | undefined;
  #drops = 0;

  /** @param current of an earlier response; other text is harmless */
  constructor(current: string | undefined) {
    this.#current = current;
  }

  /** Undefined: the next call sends none. */
  get current(): string | undefined {
    return this.#current;
  }

  /** Called when a request is sent; `take` needs the result. */
  begin(): Begun {
    return { sent: this.#current, drops: this.#drops };
  }

  /**
   * Keeps the bookmark of a successful response. Concurrent responses may come in any order, and the newest bookmark
   * counts; D1's bookmarks sort by age (D1: Time Travel). If another call has missed its response since this request
   * was sent, this bookmark may be older than that call's write.
   */
  take({ headers }: Pick<FetchResponse, "headers">, begun: Begun): void {
    const received = headers.get("bookmark");
    if (received === null) {
      // The response has no bookmark, so ours may be older than the call's write.
      this.drop();
    } else if (begun.drops === this.#drops) {
      const isUnchanged = this.#current === begun.sent;
      if (isUnchanged || received > (this.#current ?? "")) this.#current = received;
    }
  }

  /** A response was missed, so its call's write may be newer than the stored bookmark. */
  drop(): void {
    this.#current = undefined;
    this.#drops++;
  }
}
