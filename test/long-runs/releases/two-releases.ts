import { execFileSync } from "node:child_process";
import { mkdtempSync, rmSync, symlinkSync } from "node:fs";
import { tmpdir } from "node:os";
import { join } from "node:path";
import { convertV4MiniflareOptions, Miniflare } from "miniflare";
import type { Homes } from "../../../src/admin/platform/homes.ts";
import { PROJECT } from "../../../src/admin/platform/paths.ts";
import { generateSealingKey } from "../../../src/shared/sealing.ts";
import { startReceiver } from "../bench/load.ts";
import { buildWorker, homesOf, makeTables, QUIET } from "../build.ts";
import { note } from "../command-line.ts";

type Release = "this" | "other";

/** A Worker of one release that calls the objects of another one. */
export interface Service {
  /** Of workerd itself. */
  origin: string;
  homes: Homes;
  /** What cron does once a minute. */
  tick(): Promise<unknown>;
  receiver: Awaited<ReturnType<typeof startReceiver>>;
}

type Run = <Result>(
  phase: { worker: Release; objects: Release },
  use: (service: Service) => Promise<Result>,
) => Promise<Result>;

/** The bindings of objects in wrangler.toml. */
const OBJECTS = { ALLOCATOR: "Allocator", LIVE: "Live", HOME_SCHEDULER: "HomeScheduler" };

/** The names of both Workers, whichever release they are of: the name of the second is part of where its objects are stored. */
const [WORKER, OWNER] = ["worker", "objects"];

/** Builds this checkout and another commit, and lets `use` run them on one state. */
export async function withReleases(reference: string, use: (run: Run) => Promise<void>): Promise<void> {
  const directory = mkdtempSync(join(tmpdir(), "badge-releases-"));
  const other = join(directory, "checkout");
  const receiver = await startReceiver();
  try {
    note(`Building this checkout and ${reference} …`);
    execFileSync("git", ["worktree", "add", "--quiet", "--detach", other, reference], { cwd: PROJECT });
    symlinkSync(join(PROJECT, "node_modules"), join(other, "node_modules"));
    const { privateKey, publicKey } = await generateSealingKey();
    const build = (folder: string, name: Release) => {
      const built = { entry: join(folder, "src/worker/index.ts"), configuration: join(folder, "wrangler.toml") };
      return buildWorker(built, join(directory, name), privateKey);
    };
    const workers = { this: await build(PROJECT, "this"), other: await build(other, "other") };
    let isMade = false;
    await use(async (phase, use) => {
      const objects = Object.entries(OBJECTS).map(([binding, className]) => [
        binding,
        { className, scriptName: OWNER, useSQLite: true },
      ]);
      const miniflare = new Miniflare(
        convertV4MiniflareOptions({
          workers: [
            {
              ...workers[phase.worker],
              name: WORKER,
              durableObjects: Object.fromEntries(objects),
              additionalUnboundDurableObjects: [],
              unsafeDirectSockets: [{ host: "127.0.0.1", port: 0 }],
            },
            { ...workers[phase.objects], name: OWNER, queueConsumers: {} },
          ],
          resourcePersistencePath: join(directory, "state"),
          ...QUIET,
          handleStructuredLogs: () => {},
        }),
      );
      try {
        const { origin } = await miniflare.unsafeGetDirectURL(WORKER);
        const homes = await homesOf(miniflare, WORKER);
        if (!isMade) await makeTables(homes, publicKey);
        isMade = true;
        const worker = await miniflare.getWorker(WORKER);
        return await use({ origin, homes, receiver, tick: () => worker.scheduled({ cron: "* * * * *" }) });
      } finally {
        await miniflare.dispose();
      }
    });
  } finally {
    receiver.close();
    execFileSync("git", ["worktree", "remove", "--force", other], { cwd: PROJECT });
    rmSync(directory, { recursive: true, force: true });
  }
}
