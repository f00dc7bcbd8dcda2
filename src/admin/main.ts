import "./platform/quick-loading.ts";
import { addApplicationCommands } from "./commands/application.ts";
import { createProgram, run } from "./program.ts";

const program = createProgram();
addApplicationCommands(program);

await run(program, process.argv.slice(2));
