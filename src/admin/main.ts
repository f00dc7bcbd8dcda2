import { createAdminProgram, run } from "./program.ts";

await run(createAdminProgram(), process.argv.slice(2));
// If a database could not be opened at the first try, wrangler leaves a server running.
process.exit();
