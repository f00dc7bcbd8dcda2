import { ChildProcess } from "node:child_process";
import { subscribe } from "node:diagnostics_channel";
import { basename } from "node:path";

// Loaded into wrangler's process before wrangler.

const GRACE_MILLISECONDS = 2000;

/**
 * The channel to the program that started wrangler closes however that program ends. Then the whole process group ends,
 * including the processes that wrangler started.
 */
process.on("disconnect", () => {
  process.kill(-process.pid, "SIGTERM");
  setTimeout(() => process.kill(-process.pid, "SIGKILL"), GRACE_MILLISECONDS);
});

/**
 * wrangler runs the Worker in child processes, workerd. When one of them is killed (by the system when memory is short,
 * say), wrangler starts another but keeps sending requests to the first, which never responds. So this notifies `npm start`
 * when a workerd ends that wrangler did not stop.
 */
subscribe("child_process", (message) => {
  const child = typeof message === "object" && message !== null && "process" in message ? message.process : undefined;
  if (!(child instanceof ChildProcess)) return;
  child.once("exit", (code, signal) => {
    // `killed` means that this process sent the signal.
    if (child.killed || basename(child.spawnfile) !== "workerd") return;
    process.send?.({ workerdEndedBy: signal ?? `exit code ${code}` });
  });
});
