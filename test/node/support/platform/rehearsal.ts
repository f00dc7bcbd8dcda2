import { cpSync, readFileSync, symlinkSync, writeFileSync } from "node:fs";
import { join } from "node:path";
import { pathToFileURL } from "node:url";
import { PROJECT } from "../../../../src/admin/platform/paths.ts";
import { captured, type Printed } from "../script.ts";
import { undeployed } from "../undeployed.ts";
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
    const rehearsal = new Rehearsal(repository, await PlatformStandIn.start(join(folder, "platform")));
    rehearsal.configure(undeployed(rehearsal.configuration()));
    return rehearsal;
  }

  stop(): Promise<void> {
    return this.platform.stop();
  }

  /** wrangler.toml of the copy. */
  configuration(): string {
    return readFileSync(join(this.repository, "wrangler.toml"), "utf8");
  }

  /** What somebody writes into it. */
  configure(text: string): void {
    writeFileSync(join(this.repository, "wrangler.toml"), text);
  }

  /** Runs a command of the copy's script, in this process: one of its own takes seconds to load wrangler. */
  admin(...words: string[]): Promise<Printed> {
    Object.assign(process.env, this.platform.environment);
    return this.#run(words);
  }

  /** The same before anybody has logged in. */
  adminBeforeLogin(...words: string[]): Promise<Printed> {
    for (const name of Object.keys(this.platform.environment)) delete process.env[name];
    return this.#run(words);
  }

  async #run(words: string[]): Promise<Printed> {
    const path = pathToFileURL(join(this.repository, "src/admin/program.ts")).href;
    const script: typeof import("../../../../src/admin/program.ts") = await import(/* @vite-ignore */ path);
    return captured(() => script.run(script.createAdminProgram(), words));
  }

  /** As `npm run deploy` does. */
  deploy(...words: string[]): Promise<Printed> {
    return this.admin("deploy", "--env", "production", "--address", this.platform.address, ...words);
  }
}

/** A clone after `npm ci`, as far as a deployment and this suite read it. */
function copyRepository(to: string): void {
  const folders = ["src", "test", "migrations", "dist/assets"];
  for (const path of [...folders, "package.json", "package-lock.json", "tsconfig.json", "wrangler.toml"]) {
    cpSync(join(PROJECT, path), join(to, path), { recursive: true });
  }
  symlinkSync(join(PROJECT, "node_modules"), join(to, "node_modules"));
}
