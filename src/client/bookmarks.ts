import type { FetchResponse } from "./options.ts";

/** The state in which a call was sent. */
interface Begun {
  sent: string | undefined;
  /** How often a response had been missed. */
  drops: number;
}

/**
 * The bookmark of a device's last response (contract section 16): sent back, it lets the call be served by the nearest replica of the
 * database that has everything the device has seen.
 */
export class Bookmarks {
  #current: string | undefined;
  #drops = 0;

  /** @param current of an earlier response; anything else does no harm */
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
   * Keeps the bookmark of a successful response. Of responses to concurrent calls the newest one's counts, in whatever order
   * they come; D1's bookmarks sort by age (D1: Time Travel). If another call has missed its response since this one was sent,
   * this one's may be older than what that call has written.
   */
  take({ headers }: Pick<FetchResponse, "headers">, begun: Begun): void {
    const received = headers.get("bookmark");
    if (received === null) {
      // A service of an earlier release wrote something, and does not say what is as new.
      this.drop();
    } else if (begun.drops === this.#drops) {
      const isAlone = this.#current === begun.sent;
      if (isAlone || this.#current === undefined || received > this.#current) this.#current = received;
    }
  }

  /** A response was missed: what its call has written is newer than any bookmark here. */
  drop(): void {
    this.#current = undefined;
    this.#drops++;
  }
}
