/**
 * Loaded into wrangler's process ahead of wrangler. When the program that started it is gone, however it ended, the
 * channel between them closes: then the whole process group goes, the runtime processes of wrangler included.
 */
const GRACE_MILLISECONDS = 2000;

process.on("disconnect", () => {
  process.kill(-process.pid, "SIGTERM");
  setTimeout(() => process.kill(-process.pid, "SIGKILL"), GRACE_MILLISECONDS);
});
