import { HOME_WARNING_PERCENT, MAX_DATABASE_BYTES } from "../shared/limits/platform-limits.ts";
import { HOUR_MILLISECONDS } from "../shared/time.ts";
import type { Home } from "./homes.ts";
import { log } from "./log.ts";
import { Database } from "./storage/database.ts";

const MINUTE_MILLISECONDS = 60_000;

/** Whether a tick is the first of its clock hour. @param time of the tick, in milliseconds */
export const isFirstOfHour = (time: number): boolean => time % HOUR_MILLISECONDS < MINUTE_MILLISECONDS;

/** Warns when a home's D1 is nearly full and another home is needed. */
export async function warnIfHomeFills({ number: home, d1 }: Pick<Home, "number" | "d1">): Promise<void> {
  try {
    // D1 reports the size of the database with every result (D1: Return object).
    const { meta } = await new Database(d1).run((at) => at.prepare("SELECT 1").run());
    const usedPercent = Math.floor((meta.size_after / MAX_DATABASE_BYTES) * 100);
    if (usedPercent >= HOME_WARNING_PERCENT) log("warn", { event: "home-fills-up", home, usedPercent });
  } catch (error) {
    log("warn", { event: "home-not-measured", home, error });
  }
}
