import { sql } from "drizzle-orm";
import { applicationHead } from "../../shared/schema.ts";
import { Unavailable } from "../platform.ts";

/** Whether the application may be read: after a restore D1 lacks changes until the allocator has sent them again (contract section 21). */
export const isReadable = sql<number>`${applicationHead.sequence} >= ${applicationHead.readableFrom}`;

/** @throws Unavailable while D1 lacks changes of the application */
export function requireReadable(head: { isReadable: number } | undefined): void {
  if (head?.isReadable === 0) throw new Unavailable("D1", new Error("D1 lacks changes since a restore"));
}
