import { createAdminProgram, run } from "./program.ts";

// If nobody reads the progress any more, the command still goes on.
process.stderr.on("error", () => {});

// Whoever reads the output may stop reading, as `head` does.
process.stdout.once("error", (error: NodeJS.ErrnoException) => {
  if (error.code === "EPIPE") process.exit();
  process.stderr.write(`The result cannot be written (${error.code}), and what is shown only once is lost.\n`);
  process.exit(1);
});

await run(createAdminProgram(), process.argv.slice(2));
// A write that is still under way may fail.
await new Promise<void>((resolve) => process.stdout.write("", () => resolve()));
// If a database could not be opened at the first try, wrangler leaves a server running.
process.exit();
