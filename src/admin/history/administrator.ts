import { userInfo } from "node:os";
import type { Actor } from "../../shared/actor.ts";

/** Who gives a command of the script (contract section 23). @param name the terminal's user unless it is given */
export const administrator = (name: string = terminalUser()): Actor => ({ kind: "administrator", name });

function terminalUser(): string {
  try {
    return userInfo().username;
  } catch {
    // A process in a container may have a user that the system does not know.
    return process.env.USER ?? "unknown";
  }
}
