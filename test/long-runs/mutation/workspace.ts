import { cpSync, mkdirSync, mkdtempSync, readdirSync, readFileSync, rmSync, symlinkSync, writeFileSync } from "node:fs";
import { tmpdir } from "node:os";
import { join } from "node:path";
import type { Mutant } from "./mutants.ts";

const COPIED = /^(src|test|migrations|.*\.(json|toml|ts|yaml))$/;

/** A copy of the project in a temporary folder: mutants never come near the working tree. */
export class Workspace {
  readonly folder: string;

  constructor(project: string) {
    this.folder = mkdtempSync(join(tmpdir(), "mutation-"));
    for (const name of readdirSync(project).filter((one) => COPIED.test(one))) {
      cpSync(join(project, name), join(this.folder, name), { recursive: true });
    }
    symlinkSync(join(project, "dist"), join(this.folder, "dist"));
    // Package by package, so that what vitest keeps beside them stays in here.
    mkdirSync(join(this.folder, "node_modules"));
    for (const name of readdirSync(join(project, "node_modules"))) {
      if (/^\.(?!bin)/.test(name)) continue;
      symlinkSync(join(project, "node_modules", name), join(this.folder, "node_modules", name));
    }
  }

  /** Every TypeScript file of `src`, by its path in the project, in order. */
  sources(): string[] {
    return readdirSync(join(this.folder, "src"), { recursive: true, encoding: "utf8" })
      .filter((file) => file.endsWith(".ts"))
      .map((file) => `src/${file.replaceAll("\\", "/")}`)
      .sort();
  }

  read(file: string): string {
    return readFileSync(join(this.folder, file), "utf8");
  }

  /** Runs something while one file is changed. */
  async during<T>({ file, start, end, replacement }: Mutant, run: () => Promise<T>): Promise<T> {
    const original = this.read(file);
    writeFileSync(join(this.folder, file), original.slice(0, start) + replacement + original.slice(end));
    try {
      return await run();
    } finally {
      writeFileSync(join(this.folder, file), original);
    }
  }

  remove(): void {
    rmSync(this.folder, { recursive: true, force: true });
  }
}
