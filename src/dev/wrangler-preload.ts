import { ChildProcess } from "node:child_process";
import { subscribe } from "node:diagnostics_channel";
import { basename } from "node:path";

/**
 * Loaded into wrangler's process ahead of wrangler. When the program that started it is gone, however it ended, the
 * channel between them closes: then the whole process group goes, the runtime processes of wrangler included.
 */
const GRACE_MILLISECONDS = 2000;

process.on("disconnect", () => {
  process.kill(-process.pid, "SIGTERM");
  setTimeout(() => process.kill(-process.pid, "SIGKILL"), GRACE_MILLISECONDS);
});

/**
 * Loaded into wrangler's process ahead of wrangler. wrangler runs the Worker in processes of their own, workerd. When
 * one of them is killed (by the system, say, for want of memory), wrangler starts another and goes on sending requests
 * to the first: nothing is answered any more. So the end of a workerd that wrangler did not ask for is told to `npm
 * start`.
 */
subscribe("child_process", (message) => {
  const child = typeof message === "object" && message !== null && "process" in message ? message.process : undefined;
  if (!(child instanceof ChildProcess)) return;
  child.once("exit", (code, signal) => {
    // `killed` says that this process sent the signal.
    if (child.killed || basename(child.spawnfile) !== "workerd") return;
    process.send?.({ workerdEndedBy: signal ?? `exit code ${code}` });
  });
});
