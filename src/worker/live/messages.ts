import * as z from "zod";

/** A listener, as the Worker describes it to the object. `have` is the last change that the listener has. */
export const listener = z.object({
  door: z.object({ id: z.string(), name: z.string() }).nullable(),
  have: z.int().nonnegative(),
});

export type Listener = z.infer<typeof listener>;

/** The attachment of a WebSocket, at most 2 KB (Durable Objects: WebSockets). `since`: time of its call, milliseconds. */
export const attachment = listener.extend({ since: z.int() });

export type Attachment = z.infer<typeof attachment>;

/** The code with which either side ends a call (RFC 6455 section 7.4.1). A broken connection ends with another one. */
export const NORMAL_CLOSURE = 1000;

/** The only message that a listener gets: a delta, or the code with which its call is refused. */
export const message = z.union([
  z.object({ jwt: z.string() }),
  z.object({ refused: z.enum(["RATE_LIMITED", "INVALID_CREDENTIALS"]) }),
]);

export type Message = z.infer<typeof message>;

/** A door's last call, and the change that it had then. */
export interface SeenDoor {
  id: string;
  /** Milliseconds. */
  seenAt: number;
  have: number;
  isCurrent: boolean;
}
