import { say } from "../command-line.ts";
import { measureBytes } from "./bytes.ts";
import { measureLargest } from "./flood.ts";
import { report } from "./report.ts";

/** `npm run scale` prints docs/scale.md's block, and `npm run scale ROWS` the bytes of a row, measured on so many in a local SQLite. */
const [rows] = process.argv.slice(2).map(Number);
say(rows === undefined ? report() : JSON.stringify({ usual: measureBytes(rows), largest: measureLargest(rows) }));
