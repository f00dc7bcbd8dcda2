import { stripVTControlCharacters } from "node:util";

/** wrangler puts these in front of what the Worker writes with console.error and console.warn. */
const LEVEL = /^(?:✘ \[ERROR\]|▲ \[WARNING\]) (?=\{)/;
/** Starts a message of wrangler's own that a person must see: the Worker does not build, or it threw. */
const TROUBLE = /^(?:✘ |\[wrangler:error\])/;
/** What the runtime says of a caller that hung up: no trouble. */
const HANG_UP = /\bdisconnected: /;
/** Starts any message of wrangler's own. */
const MESSAGE = /^(?:✘ |▲ |⎔ |\[wrangler|[A-Za-z⛅])/;

/**
 * Picks the lines to show out of wrangler's: the Worker's log, which is JSON, and trouble. The rest is wrangler talking
 * about itself.
 *
 * @returns a function from one line to the line to show, or null
 */
export function createLogFilter(): (line: string) => string | null {
  let inTrouble = false;
  return (raw) => {
    const line = stripVTControlCharacters(raw).replace(LEVEL, "");
    if (line.startsWith("{")) {
      inTrouble = false;
      return line;
    }
    if (TROUBLE.test(line)) inTrouble = !HANG_UP.test(line);
    else if (MESSAGE.test(line)) inTrouble = false;
    return inTrouble && line.trim() !== "" ? line : null;
  };
}
