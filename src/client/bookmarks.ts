import type { FetchResponse } from "./options.ts";

/**
 * The bookmark of a device's last response (contract section 16): sent back, it lets the nearest copy of the database respond
 * that has everything the device has seen.
 */
export class Bookmarks {
  /** Undefined: the next call is for the original. */
  current: string | undefined;

  /** @param current of an earlier response; anything else does no harm */
  constructor(current: string | undefined) {
    this.current = current;
  }

  /**
   * Keeps a response's bookmark. Of responses to concurrent calls the newest one's counts, in whatever order they come; D1's
   * bookmarks sort by age (D1: Time Travel).
   *
   * @param sent what the call was sent with
   */
  take({ headers }: Pick<FetchResponse, "headers">, sent: string | undefined): void {
    const received = headers.get("bookmark") ?? undefined;
    const isAlone = this.current === sent;
    if (isAlone || (received !== undefined && this.current !== undefined && received > this.current)) {
      this.current = received;
    }
  }

  /** A response was missed: what its call has written is newer than any bookmark here. */
  drop(): void {
    this.current = undefined;
  }
}
