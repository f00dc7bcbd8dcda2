import { spawnSync } from "node:child_process";
import { PROJECT } from "./paths.ts";

/** How a commit relates to this checkout; `unknown` if one of the two has no commit. */
export type Containment = "contained" | "older" | "foreign" | "unknown";

const git = (cwd: string, ...words: string[]) =>
  spawnSync("git", words, { cwd, encoding: "utf8", stdio: ["ignore", "pipe", "ignore"] });

/** The commit of this checkout, ignoring uncommitted changes; null when it is not a clone (an archive, say). */
export function checkoutCommit(folder = PROJECT): string | null {
  // Only this folder's own repository counts, not one of a folder above it.
  const { status, stdout } = git(folder, "rev-parse", "--show-cdup", "HEAD");
  const [up, commit = ""] = stdout.split("\n");
  return status === 0 && up === "" && /^[0-9a-f]{40,64}$/.test(commit) ? commit : null;
}

/** Whether this checkout contains a commit, and if not, whether that commit comes after it. */
export function containsCommit(commit: string | null, folder = PROJECT): Containment {
  if (commit === null || checkoutCommit(folder) === null) return "unknown";
  if (git(folder, "merge-base", "--is-ancestor", commit, "HEAD").status === 0) return "contained";
  return git(folder, "merge-base", "--is-ancestor", "HEAD", commit).status === 0 ? "older" : "foreign";
}
