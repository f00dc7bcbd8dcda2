import { ADMIN } from "../command-line/shell.ts";
import type { ShownApplication } from "./record.ts";

/** Explains what `--require-proof` means for the application's existing badges. */
export function requiredProofText({ applicationId, bindUntil: until }: ShownApplication, unbound: number): string {
  if (unbound === 0) return "Every badge of the application is bound to a key.";
  const first = `${unbound} ${unbound === 1 ? "badge is" : "badges are"} not bound to a key.`;
  const refused = "In half a minute, every login and signature with such a badge gets 401 INVALID_PROOF";
  const isOpen = until !== null && Date.parse(until) > Date.now();
  if (isOpen) {
    return `${first} ${refused}, until a login with a proof binds it: --bind-until allows that until ${until}.`;
  }
  return `${first} ${refused}, until it is bound. To let the first login with a proof bind
  each of them: ${ADMIN} application update ${applicationId} --bind-until TIME
  one of them, within 24 hours: ${ADMIN} badge rebind NUMBER
Or undo this with --no-require-proof.`;
}
