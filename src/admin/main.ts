import "./platform/quick-loading.ts";

// Not a static import: Node resolves those before the import above has run.
const { createAdminProgram, run } = await import("./program.ts");

await run(createAdminProgram(), process.argv.slice(2));
// When a database could not be opened at the first try, wrangler leaves a server open.
process.exit();
