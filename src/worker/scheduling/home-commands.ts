import { SCRIPT_COMMANDS_PER_READ } from "../../shared/limits/allocator-limits.ts";
import { HOME_RECIPIENT, homeRequest } from "../../shared/script-commands.ts";
import { log } from "../log.ts";
import { readCommands, storeResult } from "../storage/command-rows.ts";
import type { Database } from "../storage/database.ts";
import { registerCopy } from "../storage/number-ranges.ts";
import type { NumberRegister } from "./number-register.ts";

/**
 * Carries out the script's open commands for home 1's scheduler, in their order. A restored D1 may lack registrations,
 * so the register and D1's copy are compared before a command is decided.
 *
 * @throws Unavailable; the next wake-up or tick continues
 */
export async function carryOutHomeCommands(db: Database, register: NumberRegister): Promise<void> {
  const copy = registerCopy(db);
  for (;;) {
    const rows = await readCommands(db, HOME_RECIPIENT, SCRIPT_COMMANDS_PER_READ);
    if (rows.length === 0) return;
    await register.compare(copy);
    for (const { id, command } of rows) {
      const request = homeRequest.safeParse(JSON.parse(command)).data;
      if (!request) log("error", { event: "command-unreadable", home: 1, command: id });
      await storeResult(db, id, request ? await register.execute(copy, request.command) : { kind: "failed" });
    }
  }
}
