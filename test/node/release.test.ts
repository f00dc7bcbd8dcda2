import { spawnSync } from "node:child_process";
import { readdirSync, readFileSync } from "node:fs";
import { join } from "node:path";
import { describe, expect, it } from "vitest";
import { RELEASE_NUMBER } from "../../src/admin/deploy/release-number.ts";
import { PROJECT } from "../../src/admin/platform/paths.ts";

const REPOSITORY = "badge-distribution/badge-distribution-service";

/** What the workflow runs before it publishes anything. */
function notes(tag: string, repository: string) {
  const { status, stdout, stderr } = spawnSync(process.execPath, ["src/dev/release-notes.ts", tag], {
    cwd: PROJECT,
    encoding: "utf8",
    env: { ...process.env, GITHUB_REPOSITORY: repository },
  });
  return { status, stdout, stderr };
}

describe("a release", () => {
  it("release-notes.ts prints the notes of one version, without a heading", () => {
    const { status, stdout } = notes(`v${RELEASE_NUMBER}`, REPOSITORY);
    expect(status).toBe(0);
    expect(stdout).not.toMatch(/^## /m);
    expect(stdout).toMatch(/^The first version\./);
  });

  it.each([
    ["v0.9.99", REPOSITORY, /^The tag is v0\.9\.99, but package\.json has /],
    [
      `v${RELEASE_NUMBER}`,
      "acme/badges",
      /^go\.mod has the module .*, but it must be github\.com\/acme\/badges\/src\/verify\/go\.\n$/,
    ],
  ])("the release %s of %s is refused before anything is published", (tag, repository, reason) => {
    expect(notes(tag, repository)).toMatchObject({ status: 1, stdout: "", stderr: expect.stringMatching(reason) });
  });

  it("workflows use other people's actions only at a fixed commit, because a tag can be moved", () => {
    const folder = join(PROJECT, ".github/workflows");
    const used = readdirSync(folder).flatMap((name) => [
      ...readFileSync(join(folder, name), "utf8").matchAll(/uses: (?!\.\/)(\S+)/g),
    ]);
    expect(used.length).toBeGreaterThan(3);
    for (const [, action] of used) expect(action).toMatch(/@[0-9a-f]{40}$/);
  });
});
