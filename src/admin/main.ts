import "./platform/quick-loading.ts";
import { createAdminProgram } from "./commands/all.ts";
import { run } from "./program.ts";

await run(createAdminProgram(), process.argv.slice(2));
