import { readFileSync } from "node:fs";
import { join } from "node:path";
import { fileURLToPath } from "node:url";
import * as z from "zod";
import { describeError, UserError } from "../admin/command-line/errors.ts";

/**
 * `node src/dev/release-notes.ts v0.9.0` checks that everything is ready to be released as that version, and prints its notes.
 * It changes nothing and needs no network, so it can be run at any time.
 */

const PROJECT = fileURLToPath(new URL("../../", import.meta.url));

const read = (path: string): string => readFileSync(join(PROJECT, path), "utf8");

/** @throws UserError when the tag is not the version of every package, or go.mod names another repository than the one given */
function assertReleasable(tag: string, repository: string | undefined): void {
  const { version } = z.object({ version: z.string() }).parse(JSON.parse(read("package.json")));
  const ofPython = /^version = "(.*)"$/m.exec(read("src/verify/python/pyproject.toml"))?.[1];
  const [, module] = /^module (.*)$/m.exec(read("src/verify/go/go.mod")) ?? [];
  if (tag !== `v${version}`) throw new UserError(`The tag is ${tag}, but package.json has ${version}.`);
  if (ofPython !== version) throw new UserError(`pyproject.toml has ${ofPython}, but package.json has ${version}.`);
  // Go finds a module by its path, so a fork must change the path, also in the imports of the examples.
  const wanted = repository && `github.com/${repository}/src/verify/go`;
  if (wanted && module !== wanted) throw new UserError(`go.mod has the module ${module}, but it must be ${wanted}.`);
}

/** The section of the changelog. @throws UserError when it has none of that version */
function notesOf(tag: string): string {
  const version = tag.slice(1);
  const sections = read("CHANGELOG.md").split(/^## /m).slice(1);
  const section = sections.find((each) => /^\S+/.exec(each)?.[0] === version);
  if (section === undefined) throw new UserError(`CHANGELOG.md has no section for ${version}.`);
  return section.slice(section.indexOf("\n")).trim();
}

try {
  const [tag = ""] = process.argv.slice(2);
  assertReleasable(tag, process.env.GITHUB_REPOSITORY);
  process.stdout.write(`${notesOf(tag)}\n`);
} catch (error) {
  process.stderr.write(`${describeError(error)}\n`);
  process.exitCode = 1;
}
