import "./platform/quick-loading.ts";
import { createAdminProgram } from "./commands/all.ts";
import { run } from "./program.ts";

await run(createAdminProgram(), process.argv.slice(2));
// wrangler leaves a server open when a database could not be opened at the first try.
process.exit();
