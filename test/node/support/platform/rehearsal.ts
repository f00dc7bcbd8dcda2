import { execFileSync, spawn } from "node:child_process";
import { once } from "node:events";
import { cpSync, existsSync, mkdirSync, readFileSync, symlinkSync } from "node:fs";
import { dirname, join } from "node:path";
import { createInterface } from "node:readline";
import { text } from "node:stream/consumers";
import { PROJECT } from "../../../../src/admin/platform/paths.ts";
import type { Printed } from "../script.ts";
import { PlatformStandIn } from "./stand-in.ts";

/** A fresh copy of the repository beside an empty account. */
export class Rehearsal {
  readonly platform: PlatformStandIn;
  /** Folder of the copy. */
  readonly repository: string;

  private constructor(repository: string, platform: PlatformStandIn) {
    this.repository = repository;
    this.platform = platform;
  }

  static async start(folder: string): Promise<Rehearsal> {
    const repository = join(folder, "repository");
    copyRepository(repository);
    return new Rehearsal(repository, await PlatformStandIn.start(join(folder, "platform")));
  }

  stop(): Promise<void> {
    return this.platform.stop();
  }

  /** wrangler.toml of the copy. */
  configuration(): string {
    return readFileSync(join(this.repository, "wrangler.toml"), "utf8");
  }

  /** Runs a command of the script as `npm run admin` does. */
  async admin(...words: string[]): Promise<Printed> {
    const child = this.#spawn(words);
    const [stdout, stderr] = await Promise.all([text(child.stdout), text(child.stderr), once(child, "close")]);
    return { code: child.exitCode ?? "killed", stdout, stderr };
  }

  /** As `npm run deploy` does. */
  deploy(...words: string[]): Promise<Printed> {
    return this.admin("deploy", "--env", "production", "--address", this.platform.address, ...words);
  }

  /** Kills `npm run deploy` when it has begun this many steps. */
  async deployKilledAfter(steps: number): Promise<void> {
    const place = ["--address", this.platform.address, "--location", "weur"];
    const child = this.#spawn(["deploy", "--env", "production", ...place]);
    const ended = once(child, "close");
    let begun = 0;
    for await (const line of createInterface({ input: child.stderr })) {
      if (/^[✓…]/.test(line)) begun++;
      if (begun === steps) child.kill("SIGKILL");
    }
    await ended;
  }

  #spawn(words: readonly string[]) {
    return spawn(process.execPath, ["--disable-warning=ExperimentalWarning", "src/admin/main.ts", ...words], {
      cwd: this.repository,
      stdio: ["ignore", "pipe", "pipe"],
      env: { ...process.env, ...this.platform.environment },
    });
  }
}

/** What a deployment reads. */
const DEPLOYED = /^(src|migrations|wrangler\.toml|package(-lock)?\.json|tsconfig\.json)/;

/** A clone after `npm ci`. */
function copyRepository(to: string): void {
  const listed = execFileSync("git", ["ls-files", "--cached", "--others", "--exclude-standard", "-z"], {
    cwd: PROJECT,
    encoding: "utf8",
  });
  for (const path of listed.split("\0")) {
    if (!DEPLOYED.test(path) || !existsSync(join(PROJECT, path))) continue;
    mkdirSync(dirname(join(to, path)), { recursive: true });
    cpSync(join(PROJECT, path), join(to, path));
  }
  cpSync(join(PROJECT, "dist/assets"), join(to, "dist/assets"), { recursive: true });
  symlinkSync(join(PROJECT, "node_modules"), join(to, "node_modules"));
}
