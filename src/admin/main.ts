import "./platform/quick-loading.ts";

// Not a static import: the modules of those are looked up before the line above has run.
const { createAdminProgram, run } = await import("./program.ts");

await run(createAdminProgram(), process.argv.slice(2));
// wrangler leaves a server open when a database could not be opened at the first try.
process.exit();
