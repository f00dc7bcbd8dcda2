import { runCommand, say, wholeNumber } from "../command-line.ts";
import { measureBytes } from "./bytes.ts";
import { measureLargest } from "./flood.ts";
import { report } from "./report.ts";

/** `npm run scale` prints the block in docs/scale.md. `npm run scale ROWS` measures the bytes of a row, in a local SQLite with that many rows. */
await runCommand(async () => {
  const [rows] = process.argv.slice(2).map(wholeNumber);
  say(rows === undefined ? report() : JSON.stringify({ usual: measureBytes(rows), largest: measureLargest(rows) }));
});
